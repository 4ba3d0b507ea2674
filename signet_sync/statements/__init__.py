"""Derives facts from artifacts: statements under headings, their topics, and which of them are current.

Tables: those of `facts.store`.
"""
