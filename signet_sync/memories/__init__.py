"""Keeps what was asked to be remembered, forgets it, pins it; promotes what is recalled often into MEMORY.md.

Tables: those of `memories.store`. docs/recall.md tells of promotion, which users know as dreaming.
"""
