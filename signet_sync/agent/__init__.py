"""The agent: the only one that does anything. It walks between desks and doors; each module follows a desk of its name."""
