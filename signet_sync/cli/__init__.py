"""Parses command lines, calls operations, prints answers; a command's module is loaded when it is called.

Promises that no traceback reaches a person. Owns nothing and decides nothing. docs/commands.md is generated from it.
"""
