"""Answers questions from memory: query, ranking, passages, search, expand, open; pins what a handle refers to.

Owns no table; reads those of other packages. See docs/recall.md.
"""
