"""Remembers statements; promotes memories that are recalled often into MEMORY.md.

Promises that a memory stays until it is forgotten, and is then gone. Owns the tables of `memories.store`, which are
native: no rebuild drops them. docs/recall.md describes promotion, which users know as dreaming.
"""
