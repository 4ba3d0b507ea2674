"""Ends and compacts sessions: input, write flow, journal, live turns.

Promises that an ending that was accepted becomes files whatever dies, and only once. Owns transcripts, summaries and
manifests in `memory/`, the journal and the files of live turns in the state folder. It does not know harnesses.
"""
