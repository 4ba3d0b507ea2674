"""The straight-line baseline: what anyone would write first to make the same folder searchable.

Walk, read, sha256, python-frontmatter with the C loader, one row and one FTS5 row (`unicode61`, own content)
for each file, one transaction. It checks nothing, so it does less than an index of immutable artifacts must;
it is the yardstick that makes measurements of different machines and days comparable. `--bare` is the floor
of a pass that finds nothing changed: one `scandir` with a `stat` per entry.

Imports are inside the functions, because they are part of the time of the process that is measured.
"""

from __future__ import annotations

import os
import sys
import time

SCHEMA = """
CREATE TABLE files(
  id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, sha256 TEXT NOT NULL, kind TEXT, agent_id TEXT,
  session_id TEXT, captured_at TEXT, meta TEXT NOT NULL
);
CREATE VIRTUAL TABLE files_fts USING fts5(body, tokenize='unicode61');
"""
INSERT = """
INSERT INTO files(path, sha256, kind, agent_id, session_id, captured_at, meta) VALUES(?, ?, ?, ?, ?, ?, ?)
"""


def bare(workspace: str) -> int:
    """Number of entries in `memory/`, after a `stat` of each: what any pass costs at least."""
    count = 0
    with os.scandir(os.path.join(workspace, "memory")) as entries:
        for entry in entries:
            entry.stat(follow_symlinks=False)
            count += 1
    return count


def index(workspace: str, database: str) -> int:
    """Indexes `memory/` into a new database file; the number of files. `FileExistsError` if there is one."""
    import hashlib
    import json

    import apsw
    import frontmatter
    from frontmatter.default_handlers import YAMLHandler
    from yaml import __with_libyaml__

    if not __with_libyaml__:
        raise RuntimeError("PyYAML without libyaml: the baseline would be several times slower than it should be")
    if os.path.exists(database):
        raise FileExistsError(database)
    handler = YAMLHandler()
    connection = apsw.Connection(database)
    connection.pragma("journal_mode", "wal")
    connection.pragma("synchronous", "normal")
    connection.execute("BEGIN; " + SCHEMA)
    count = 0
    for folder, _, names in os.walk(os.path.join(workspace, "memory")):
        for name in sorted(names):
            path = os.path.join(folder, name)
            with open(path, "rb") as handle:
                data = handle.read()
            meta, body = frontmatter.parse(data.decode("utf-8"), handler=handler)
            connection.execute(
                INSERT,
                (
                    os.path.relpath(path, workspace),
                    hashlib.sha256(data).hexdigest(),
                    meta.get("kind"),
                    meta.get("agent_id"),
                    meta.get("session_id"),
                    str(meta.get("captured_at")),
                    json.dumps(meta, ensure_ascii=False, default=str),
                ),
            )
            connection.execute("INSERT INTO files_fts(rowid, body) VALUES(?,?)", (connection.last_insert_rowid(), body))
            count += 1
    connection.execute("COMMIT")
    connection.close()
    return count


def main(argv: list[str]) -> int:
    """`WORKSPACE DBFILE` or `--bare WORKSPACE`: prints `{"files", "seconds"}` as JSON."""
    began = time.perf_counter()
    if len(argv) == 2 and argv[0] == "--bare":
        files = bare(argv[1])
    elif len(argv) == 2:
        files = index(argv[0], argv[1])
    else:
        print("usage: python -m benchmarks.baseline WORKSPACE DBFILE | --bare WORKSPACE", file=sys.stderr)
        return 2
    print(f'{{"files": {files}, "seconds": {time.perf_counter() - began:.4f}}}')
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
