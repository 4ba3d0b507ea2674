"""Makes the sample workspace from the tables beside the modules."""
