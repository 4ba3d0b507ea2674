"""Finds secrets in a text: tokens by their vendors' prefixes, values by their names, the forms of logins.

Each rule is proved by docs/secrets.md and by `providers.txt`.
"""
