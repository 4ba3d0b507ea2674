"""Reads and writes files: safe paths, atomic publication, displaced saves, the state folder and its locks.

Promises that no path leaves the workspace or follows a link, that a file is written whole or not at all and survives a
loss of power, and that no save of an editor is lost. Owns the layout of the state folder and `.signet/tmp`; rows are in
`storage.database`. It does not know what a file of the vault means.
"""
