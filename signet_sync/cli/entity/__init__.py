"""Implements the commands of `entity`."""
