"""Brings over what another program remembers: each thing once, after a backup, with a report of every row.

Promises that the other program's files are only read. Owns nothing. docs/coming-from.md describes it to users.
"""
