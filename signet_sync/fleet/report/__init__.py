"""Reports on a fleet for those who answer for it: secrets, changes, what could not be read, versions, growth."""
