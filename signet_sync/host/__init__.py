"""Connects to the machine: service managers, settings of harnesses, notifications.

Owns the units of the service.
"""
