"""Stores what sessions state, and what a person or agent did to it: tables statements, statement_marks, pins."""
