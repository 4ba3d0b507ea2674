"""Backs up, exports and imports native rows.

Owns `backups/` of the state folder and the format of a bundle.
"""
