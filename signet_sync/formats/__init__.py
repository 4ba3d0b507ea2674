"""Reads and writes every byte format of a workspace, pure: artifact, frontmatter, body, file name, id, managed block.

Owns no table and touches no disk.
"""
