"""Parses the transcripts of coding agents, pure, one module each, into one form of conversation."""
