"""Brings the database and the pages in line with a workspace's files: scan, plan, verdicts, the pass.

This package does not depend on any feature: features register their stages in `app.pipeline`. Its tables are those of
`sync.store` and `sync.tombstones`.
"""
