"""Asks a language model: prompts in; summaries, sentences and facts out.

Owns no table. No lock is held while a model is asked.
"""
