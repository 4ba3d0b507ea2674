"""Brings sessions of coding agents in: hook, spool, worker, parsers of transcripts, where these lie.

Owns the spool in the state folder and the tables captures and live_transcripts. docs/harnesses.md tells of it.
"""
