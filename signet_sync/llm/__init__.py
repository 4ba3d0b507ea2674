"""Asks a language model: prompts in; summaries, sentences and facts out.

Owns no table; nothing waits for it inside a lock.
"""
