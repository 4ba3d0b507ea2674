"""Answers questions from memory: query, ranking, passages, search, expand, open.

Owns no table; reads those of other packages. See docs/recall.md.
"""
