"""Removes sessions, forgets memories, redacts secrets; scrubs these from every file that we write; undoes removals.

Described in docs/operations.md.
"""
