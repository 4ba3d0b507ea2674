"""Brings the database and the pages in line with a workspace's files: scan, plan, verdicts, the pass.

Promises that files decide, that each is judged once, that what is killed continues, that a second pass writes nothing,
that nothing removed comes back, and that missing files halt a pass before rows are dropped. Doors: `engine.run_pass` to
write, `read_only.open_index` to read, `indexing.look` to check; who wants to know of removals asks `tombstones`. Owns
`memory/tombstones/` and the tables of `sync.store`. It names no feature: these implement the interfaces of
`sync.workspace` and are registered in `app.workspace`.
"""
