"""Brings over what another program remembers: each thing once, with a report of every row, and undone on request.

Tables: migrated_memories, migrated_files. docs/coming-from-signet.md and docs/coming-from.md describe it to users.
"""
