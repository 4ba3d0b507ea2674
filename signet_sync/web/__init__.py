"""Shows one workspace in a browser on this machine, read-only (extra `ui`)."""
