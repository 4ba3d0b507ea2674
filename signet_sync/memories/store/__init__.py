"""Stores memories, recall events and promotions, all native rows.

Tables: memories, memory_sources, forgotten_memories, recall_events, dream_sweeps, memory_promotions.
"""
