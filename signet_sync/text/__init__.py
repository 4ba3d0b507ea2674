"""Works on text, pure: secrets, sentences, pieces, tags, an estimate of tokens.

Owns no table; its word lists lie beside the modules.
"""
