"""Stores rows of sessions: live turns, answers of write flows, what came of each session.

Tables: flow_results, session_transcripts, live_files.
"""
