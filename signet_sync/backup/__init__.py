"""Backs up, exports and imports what is in rows alone.

Owns `backups/` of the state folder and the format of a bundle.
"""
