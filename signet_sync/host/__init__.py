"""Connects to the machine: service managers, settings of harnesses.

Owns the units of the service.
"""
