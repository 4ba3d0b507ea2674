"""Composes and publishes pages: MEMORY.md, the session log, DREAMS.md, and the context given to a session.

Owns `MEMORY.md`, `DREAMS.md`, `ledger/` and the tables of `pages.store`.
"""
