"""Brings over what another program remembers: each thing once, after a backup, with a report of every row.

docs/coming-from-signet.md and docs/coming-from.md describe it to users.
"""
