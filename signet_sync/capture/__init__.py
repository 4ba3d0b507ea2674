"""Captures sessions of coding agents: hook, spool, worker, transcript parsers, and where harnesses keep transcripts.

Promises that a hook never waits and never fails a session, and that our own answers are no memory. Owns the spool and
the record of what sessions were told in the state folder, and the tables captures and live_transcripts. Documented in
docs/harnesses.md.
"""
