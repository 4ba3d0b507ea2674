"""Puts our hooks and MCP server into the settings of coding agents, looks at them, takes them out.

Changes no byte that is not ours.
"""
