"""Declares each setting once, with its type, default and help; finds the value that is in effect.

Promises that a workspace's file sets nothing that runs, sends or stops anything. Owns `config.toml` of the user and
`signet-sync.toml` of a workspace. docs/settings.md is generated from it.
"""
