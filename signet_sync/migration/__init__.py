"""Brings over what another program remembers: each thing once, after a backup, with a report of every row.

docs/coming-from.md describes it to users.
"""
