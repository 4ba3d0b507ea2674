"""Derives the temporal graph: nodes of sessions, threads, roll-ups of weeks and quarters.

Tables: those of `graph.store`. docs/memory-model.md tells of it.
"""
