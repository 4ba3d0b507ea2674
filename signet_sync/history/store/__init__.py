"""Stores what commits contain already.

Tables: history_told, history_files.
"""
