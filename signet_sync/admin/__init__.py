"""Reports on an installation and removes it: status, statistics, doctor, hooks, eject, demo."""
