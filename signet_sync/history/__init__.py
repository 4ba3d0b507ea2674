"""Commits the workspace to a git repository, and reads and forgets its history.

Promises that nothing a repository names is run or followed, and that what was removed leaves it only when a person
says so. Owns `.git` of a workspace where it created it, and the tables of its store. Documented in
docs/history.md.
"""
