"""Reads and writes the append-only log of an entity's events: lines, chain, replay, files."""
