"""The commands of `entity`."""
