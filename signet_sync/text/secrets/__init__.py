"""Finds secrets in a text: tokens by their makers' prefixes, values by their names, forms that logins have.

Each rule is proved by docs/secrets.md and by `providers.txt`.
"""
