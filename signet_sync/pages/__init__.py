"""Composes and publishes pages: MEMORY.md, the session log, DREAMS.md, and the context given to a session.

Promises that equal content is not written again, and that what a person writes outside the managed block stays. Owns
`MEMORY.md`, `DREAMS.md`, `ledger/` and the tables of `pages.store`. It renders what others state, and states nothing.
"""
