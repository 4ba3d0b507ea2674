"""Keeps track of removals: tombstone files, their mirror in the database, copies of them from other machines.

Owns `memory/tombstones/` and the table memory_artifact_tombstones.
"""
