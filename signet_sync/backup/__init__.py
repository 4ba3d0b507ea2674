"""Backup, export and import of what is in rows alone: so far the format of a bundle; `index` has the rest."""
