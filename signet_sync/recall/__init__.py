"""Desks of retrieval: what a query asks for, and which of what was found answers it."""
