"""Makes the database and the pages equal to the files of a workspace: scan, plan, verdicts, the pass.

Names no capability: what takes part in a pass registers in `app.pipeline`. Its tables are those of `sync.store` and of
`sync.tombstones`.
"""
