"""Commits the workspace to a git repository, and reads and forgets its history.

Owns `.git` of a workspace where it created it, and the tables of `history.store`. Documented in docs/history.md.
"""
