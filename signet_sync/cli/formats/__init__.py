"""Forms in which `check` and `status` print for other programs."""
