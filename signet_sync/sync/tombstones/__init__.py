"""Keeps track of removals: tombstone files, their mirror in the database, copies of them from other machines.

Owns `memory/tombstones/` and the tables memory_artifact_tombstones, removed_handles and removed_lines. Who wants to
know asks `removals.read_in_force` in a pass, `files.is_removed` for one session, `removals.all_tombstones` for all;
`files.put` and `files.lift` write what a person decides, `removals.remove_covered` deletes rows.
"""
