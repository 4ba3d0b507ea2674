"""Ends and compacts sessions: input, write flow, journal, live turns.

Owns transcripts, summaries and manifests in `memory/`, the journal and the files of live turns in the state folder.
"""
