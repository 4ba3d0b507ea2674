"""Parses command lines, calls operations, prints answers; a command's module is loaded when it is called.

docs/commands.md is generated from it.
"""
