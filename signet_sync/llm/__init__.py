"""Asks a language model: prompts in; summaries, sentences and statements out.

Promises that nothing is sent that a person's own settings do not allow, and nothing beyond the budget. Owns the count
of tokens in the state folder. No lock is held while a model is asked.
"""
