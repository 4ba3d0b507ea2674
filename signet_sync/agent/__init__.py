"""The agent: the only one that does anything; it walks between desks and doors, a module for each desk of its name."""
