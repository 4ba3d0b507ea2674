"""Derives facts from artifacts: statements under headings, what they are about, by whom they are superseded.

Tables: those of `facts.store`.
"""
