"""Answers questions from memory: query, ranking, passages, search, expand, open; pins what a handle refers to.

Promises one search for command, tools, page and prompts, and that nothing crosses agents. Owns no table; reads those of
other packages. See docs/recall.md.
"""
