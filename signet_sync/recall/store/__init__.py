"""Runs the queries that find things: full text, lists of sessions, references."""
