"""Reads and writes git repositories as bytes, objects and refs; runs nothing that a repository configures.

Opens nothing that a repository names.
"""
