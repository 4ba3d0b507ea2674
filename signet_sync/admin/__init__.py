"""Tells how an installation fares, and takes it off: status, statistics, doctor, hooks, eject, demo."""
