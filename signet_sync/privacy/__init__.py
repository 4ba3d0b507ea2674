"""Removes sessions, forgets memories, redacts secrets; scrubs these from every file that we write; undoes removals.

Promises that no byte of what was removed stays in any file of ours, that a killed removal is finished by the next pass,
and that files of others are named and not touched. Owns no table: it asks `sync.tombstones` and the stores of features.
Described in docs/operations.md.
"""
