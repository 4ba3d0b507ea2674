"""Rows of the history: what commits hold already.

Tables: history_told, history_files.
"""
