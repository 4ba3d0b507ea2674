"""Checks files against the index: `check`, violations of sealed files, retention of seals.

Promises that a check writes nothing and that no setting of a workspace changes a verdict. Owns no table: violations and
seals are in `sync.store.violations`. Violations are described in docs/obsidian.md#violations.
"""
