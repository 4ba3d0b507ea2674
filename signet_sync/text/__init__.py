"""Works on text, pure: secrets, sentences, chunks, tags, an estimate of tokens.

Promises that no secret that it knows passes, and that every function is linear and gives the same everywhere. Owns no
table; its word lists are beside the modules.
"""
