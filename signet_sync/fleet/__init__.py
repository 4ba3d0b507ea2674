"""Many workspaces: each machine writes its own share of rows to one place, and any engine reads all of them.

The work on one workspace is a plain function of plain values, which an engine runs for many.
"""
