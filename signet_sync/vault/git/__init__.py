"""Git repositories as bytes, objects and refs: what history, purge and versions are made of; runs nothing that a
repository configures, and opens nothing that it names."""
