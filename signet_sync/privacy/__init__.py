"""Removes a session, redacts a secret, scrubs what was removed from every file of ours, lifts a removal.

docs/operations.md tells of it.
"""
