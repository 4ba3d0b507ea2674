"""Backs up native rows for a person, and merges them: rows that are here win, and nothing removed comes back.

Owns `backups/` of the state folder; the file's format is that of `storage.database.native_backup`.
"""
