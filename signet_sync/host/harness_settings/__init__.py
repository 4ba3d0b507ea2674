"""Adds our hooks and MCP server to the settings of coding agents, checks them, and removes them.

Changes no byte that is not ours.
"""
