"""Rows of facts.

Tables: entities, entity_mentions, entity_attributes, attribute_sources, relations.
"""
