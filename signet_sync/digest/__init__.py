"""Tells what came out of a session, by rules: one sentence, a status, and few statements, each with its speaker.

What was done comes from deeds (commits, pull requests, edits), what came out from the agent's last reports, what is
stated only from forms that are right on real sessions. It reads a transcript and returns values; no disk, no clock.
"""
