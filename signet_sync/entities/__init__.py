"""Entities: curated files about the user, parts of a subject and relationships, as text in and text out. Pure."""
