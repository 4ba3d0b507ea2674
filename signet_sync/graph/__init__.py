"""Derives the temporal graph: nodes of sessions, threads of projects, roll-ups of weeks and quarters.

Promises that an update gives the rows of a rebuild. Owns the tables of `graph.store`. It is described in
docs/internals/memory-model.md.
"""
