"""Parses, edits, compares and checks the text of entity files; pure."""
