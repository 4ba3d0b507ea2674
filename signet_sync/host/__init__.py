"""Connects to the machine: service managers, settings of harnesses, notifications, the installed version.

Owns the units of the service.
"""
