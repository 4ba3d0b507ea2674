"""The page for people: one workspace, shown read-only in a browser on this machine (extra `ui`)."""
