"""Serves an agent's memory as tools and resources of the Model Context Protocol (extra `mcp`)."""
