"""Reads and edits the text of entity files, pure: grammar, edits, drift, lint."""
