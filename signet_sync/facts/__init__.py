"""Derives facts from artifacts: statements under headings, their topics, and which fact supersedes which.

Tables: those of `facts.store`.
"""
