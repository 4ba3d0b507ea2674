"""Captures sessions of coding agents: hook, spool, worker, transcript parsers, and where harnesses keep transcripts.

Owns the spool in the state folder and the tables captures and live_transcripts. Documented in docs/harnesses.md.
"""
