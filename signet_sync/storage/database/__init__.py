"""Keeps rows: what each table is, the connection, migration, damage, salvage, backups of native rows.

Declares all tables, from which creation, rebuild, backup and removal follow; the SQL of each is in the `store` of its
capability. Owns the database file, its companions and the files that it leaves when it is moved aside.
"""
