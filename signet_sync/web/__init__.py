"""Shows one workspace in a browser on this machine, and takes a person's word there (extra `ui`).

Promises that only the bearer of the token is let in, that a view only reads, and that stored text is never markup of
ours. Owns nothing: an action is an operation that a command has, too.
"""
