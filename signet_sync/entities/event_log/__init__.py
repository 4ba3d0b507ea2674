"""Reads and writes the append-only event log of entities: lines, hash chain, replay, files."""
