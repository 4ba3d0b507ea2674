"""Asks a language model: prompts in; summaries, sentences and statements out.

Owns no table. No lock is held while a model is asked.
"""
