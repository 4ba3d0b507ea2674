"""Serves an agent's memory as tools of the Model Context Protocol.

Promises that stored text stays between markers as data, and that with shared scope nothing private leaves. Owns
nothing: a tool is a function over operations.
"""
