"""signet-sync keeps a derived store and a rendered file equal to a folder of immutable files.

The map: **desks** decide and are pure (`contracts`, `reconcile`, `projection`), **doors** touch one outside
thing each (`vault`, `index`, `watcher`, `state`, `host`), the **agent** walks between them (`agent`), and the
**faces** speak to people (`cli`). Imports run one way: errors ← contracts ← desks ← doors ← agent ← faces.
`docs/architecture.md` has the walk of one change.
"""

__version__ = "0.1.0"
