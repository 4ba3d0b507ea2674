"""Desks that distil artifacts: items under known headings, things that are spoken of, and how they hang together."""
