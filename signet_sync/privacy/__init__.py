"""Removes sessions, redacts secrets, scrubs what was removed from every file that we write, undoes removals.

Described in docs/operations.md.
"""
