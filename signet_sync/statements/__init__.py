"""Knows what sessions state: who says it, where, and what of it still holds.

Promises that every statement has a speaker, and that what a person took back never returns. Owns the tables of
`statements.store` and `memory/words/`. Whether a statement still holds is decided here alone.
"""
