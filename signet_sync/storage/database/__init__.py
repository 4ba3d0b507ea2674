"""Keeps rows: what each table is, the connection, migration, damage, salvage, backups of native rows.

Declares all tables; the statements of each are in the `store` of its capability. docs/schema.md is made of it.
"""
