"""Stores the temporal graph and a model's wordings of it.

Tables: session_summaries, session_summary_children, thread_sessions, memory_thread_heads, node_wordings,
extractions, model_rests.
"""
