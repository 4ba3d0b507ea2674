"""Remembers statements; promotes memories that are recalled often into MEMORY.md.

Tables: those of `memories.store`. docs/recall.md describes promotion, which users know as dreaming.
"""
