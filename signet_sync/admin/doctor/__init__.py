"""Examines an installation end to end, names remedies and applies those that are safe."""
