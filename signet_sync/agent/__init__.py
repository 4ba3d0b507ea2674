"""Keeps the name under which released versions load all of a newer one, to try it."""
