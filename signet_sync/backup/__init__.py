"""Backs up native rows and restores them. Owns `backups/` of the state folder."""
