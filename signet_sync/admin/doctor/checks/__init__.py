"""Examines one part of an installation in each module."""
