"""Stores facts, topics and mentions.

Tables: entities (topics), entity_mentions, entity_attributes (facts), attribute_sources.
"""
