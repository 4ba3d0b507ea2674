"""signet_sync keeps a derived store and a few rendered files equal to a folder of immutable files.

It grows memory out of them. Each package is one capability and says in its `__init__` what it promises; imports run
down only, as `pyproject.toml` has it. `docs/architecture.md` tells how one change goes through them.
"""

__version__ = "0.1.0"
