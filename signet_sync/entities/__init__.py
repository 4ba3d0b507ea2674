"""Keeps curated files about the user, parts of a subject and relationships, with a log of every event.

Owns `entities/` of a workspace and the tables garden_files, garden_chain, garden_drift and garden_days.
docs/entities.md tells of it.
"""
