"""Answers questions from memory: query, ranking, passages, search, expand, open.

Owns no table; reads those of others. docs/recall.md tells of it.
"""
