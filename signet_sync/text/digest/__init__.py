"""Derives the outcome of a session from its transcript by rules, without calling a model.

Pure. Cues and weights are in files beside the modules.
"""
