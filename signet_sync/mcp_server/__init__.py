"""Serves an agent's memory as tools of the Model Context Protocol."""
