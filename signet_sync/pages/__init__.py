"""Composes and publishes pages: MEMORY.md, session log, DREAMS.md, and what a session is told.

Owns `MEMORY.md`, `DREAMS.md`, `ledger/` and the tables of `pages.store`.
"""
