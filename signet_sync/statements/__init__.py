"""Knows what sessions state: who says it, where, and what of it still holds."""
