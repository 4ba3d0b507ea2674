"""Derives the temporal graph: nodes of sessions, threads, roll-ups of weeks and quarters; and statements.

Tables: those of `graph.store`. It is described in docs/internals/memory-model.md.
"""
