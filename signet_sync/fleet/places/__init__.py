"""Reads workspaces where they are: object stores and other file systems of fsspec, zip archives, git repositories."""
