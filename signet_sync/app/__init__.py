"""Connects all packages: registry of the pipeline, opening of a workspace, daemon, scheduler.

Owns the heartbeat and the snapshot of an unchanged workspace in the state folder.
"""
