"""Native rows of memories.

Tables: memories, memory_sources, forgotten_memories, pins, recall_events, dream_sweeps, memory_promotions.
"""
