"""Speaks to the machine: service managers, notifications, the installed version.

Owns the units of the service.
"""
