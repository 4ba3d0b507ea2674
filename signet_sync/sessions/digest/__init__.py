"""Derives from a transcript by rules, without a model, what a session came to.

Pure; its cues and weights lie beside the modules.
"""
