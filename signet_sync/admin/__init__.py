"""Reports on an installation, sets it up and removes it: status, doctor, setup, hooks, eject, demo.

Promises that each trouble is named with its remedy, that an undo leaves files as they were, and that nothing of a
person's is deleted. Owns no table; asks the packages below for their part, and takes and prints no words of a terminal.
"""
