"""Stores the temporal graph.

Tables: session_summaries, session_summary_children, thread_sessions, memory_thread_heads.
"""
