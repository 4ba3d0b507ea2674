"""Keeps the name under which released versions look for a newer one's schema."""
