"""Reads and writes files: safe paths, atomic publication, displaced saves, the state folder and its locks.

Owns the layout of the state folder; rows are in `storage.database`.
"""
