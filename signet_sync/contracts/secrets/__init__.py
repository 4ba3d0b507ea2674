"""What is a secret in a text: tokens by their makers' prefixes, values by their names, forms that logins have."""
