"""Formats the output of `check` and `status` for other programs."""
