"""Rows of sessions: live turns, answers to ended sessions, what came of each.

Tables: flow_results, session_transcripts, live_files.
"""
