"""Works on text, pure: secrets, sentences, chunks, tags, the digest of a session, an estimate of tokens.

Owns no table; its word lists are beside the modules.
"""
