"""Entities at work: the agent's walk between the desk of the same name, the vault, and the index."""
