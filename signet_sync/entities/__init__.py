"""Keeps curated files about the user, parts and relationships, and logs every change to them.

Promises that a person's words are never overwritten, and that each edit can be taken back. Owns `entities/` of a
workspace and the tables garden_files, garden_chain, garden_drift and garden_days. Documented in docs/entities.md.
"""
