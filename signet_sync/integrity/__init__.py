"""Checks what is there: `check`, violations of sealed files, retention of seals.

Owns what becomes of the table seals; docs/operations.md tells of violations.
"""
