"""Keeps what many workspaces hold as open tables: Parquet files in a folder or object store, or rows of PostgreSQL."""
