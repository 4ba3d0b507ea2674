"""Many workspaces: each machine writes its own share of rows to one place, and any engine reads all of them.

Promises that every machine that was meant has a state in an answer, and that a removal is enforced only where the
person's own settings allow it. Owns the tables at that place and the removals that a machine has answered. The work on
one workspace is a plain function of plain values, which an engine runs for many; nothing below knows of it.
"""
