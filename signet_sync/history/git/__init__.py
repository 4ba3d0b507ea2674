"""Reads and writes git repositories as bytes, objects and refs.

Runs nothing that a repository configures and opens nothing that it names.
"""
