"""Adds our hooks and MCP server to the settings of coding agents, checks them, and takes them out again."""
