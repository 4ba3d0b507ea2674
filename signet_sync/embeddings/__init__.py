"""Finds by vectors what is similar in meaning to a question, where the settings name a model. Off by default.

Promises that without a model nothing is loaded, sent or slower. Owns the table vectors: a row for each text, which goes
with it. Only the resident agent loads a model or asks a server.
"""
