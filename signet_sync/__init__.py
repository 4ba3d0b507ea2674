"""Keeps a derived store and a few rendered files equal to a folder of immutable files, and grows memory out of them.

Each package is one capability, and its `__init__` says what it promises; imports run down only, in the order of
`pyproject.toml`. `docs/internals/architecture.md` shows how one change goes through the packages.
"""

__version__ = "0.1.0"
