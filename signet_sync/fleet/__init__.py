"""Checks, indexes, searches and reports on many workspaces: folders, object stores, repositories, archives.

The work on one workspace is a plain function of plain values; an engine runs it for all of them.
"""
