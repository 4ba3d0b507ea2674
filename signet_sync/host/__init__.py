"""Connects to the machine: service managers, settings of harnesses, the repository of a folder, our own commands.

Promises that what it changes in a file of another program can be undone to the byte. Owns the units of the service. It
does not know what a session is.
"""
