"""Removes sessions in many workspaces: finds them, writes a plan, and once that is approved carries it out.

What removes them from a folder is the operation of `remove`; from an object store, a tombstone and deletions, each on
the condition that nothing has changed. The plan, its approval and the journal are files beside each other.
"""
