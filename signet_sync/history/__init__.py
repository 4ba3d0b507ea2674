"""Commits the workspace to a git repository, reads, restores and purges its history.

Owns `.git` of a workspace where it made it, and the tables of `history.store`. docs/history.md tells of it.
"""
