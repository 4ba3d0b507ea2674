"""Reads and writes every byte format of a workspace, pure: artifact, frontmatter, body, file name, id, managed block.

Promises that what is written is read back alike, here and by Signet, and that no input raises anything but the errors
that it names. Owns no table and touches no disk, clock or database.
"""
