"""Checks files against the index: `check`, violations of sealed files, retention of seals.

Changes the table seals; violations are described in docs/obsidian.md#violations.
"""
