"""Parses command lines, calls operations, prints answers; a command is loaded when it is called.

docs/commands.md is made of it.
"""
