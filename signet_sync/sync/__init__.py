"""Runs what takes part in a pass: interfaces of its stages, and how rows follow from rows. Names no feature."""
