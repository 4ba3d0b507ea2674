"""Stores facts, topics, mentions and relations.

Tables: entities (topics), entity_mentions, entity_attributes (facts), attribute_sources, relations.
"""
