"""Makes the sample workspace from the TOML files in this folder."""
