"""How fast signet-sync is, measured against a straight-line baseline in the same run."""
