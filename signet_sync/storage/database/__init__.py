"""Keeps rows: what each table is, the connection, migration, damage, salvage, backups of native rows.

Declares all tables; the SQL of each is in the `store` of its capability.
"""
