"""Does to a workspace what Signet does: its database, its removals, its page, its manifests, its backups."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import apsw

from signet_sync.formats.body import text_sha256
from signet_sync.formats.frontmatter import parse, write

TOMBSTONES = (
    "create table if not exists memory_artifact_tombstones(agent_id text not null, session_token text not null,"
    " removed_at text not null, reason text not null, removed_paths text, primary key(agent_id, session_token))"
)
LEDGER = "## Session Ledger (Last 30 Days)\n\nThis session currently appears in the working memory ledger."

DAEMON = (sys.executable, "-c", "import time; time.sleep(600)", "/usr/lib/node_modules/signetai/dist/daemon.js")


@contextmanager
def process_of(root: Path, words: Sequence[str] = DAEMON, folder: str = ".daemon") -> Iterator[subprocess.Popen[bytes]]:
    """A process that a workspace names as Signet's daemon; `words` are its command line."""
    process = subprocess.Popen(words)
    (root / folder).mkdir(exist_ok=True)
    (root / folder / "pid").write_text(f"{process.pid}\n")
    try:
        yield process
    finally:
        process.kill()
        process.wait()


class Signet:
    """Signet on one workspace."""

    def __init__(self, root: Path) -> None:
        self.root, self.place = root, root / "memory/memories.db"
        with self.rows():
            pass

    @contextmanager
    def rows(self, *, wal: bool = True) -> Iterator[apsw.Connection]:
        """Its database, opened as its daemon opens it."""
        connection = apsw.Connection(str(self.place))
        try:
            connection.execute(f"pragma journal_mode = {'wal' if wal else 'delete'}")
            connection.execute(TOMBSTONES)
            yield connection
        finally:
            connection.close()

    def record(self, *tokens: str, agent: str = "default", paths: str = "[]", at: str = "2026-03-29T11:30:00.000Z"):
        """Records removals, without a look at the files."""
        with self.rows() as connection, connection:
            connection.executemany(
                "insert or replace into memory_artifact_tombstones values(?, ?, ?, 'operator privacy removal', ?)",
                [(agent, token, at, paths) for token in tokens],
            )

    def remove(self, token: str) -> None:
        """Removes a session: the row first, then the files."""
        files = sorted((self.root / "memory").glob(f"*--{token}--*.md"))
        self.record(token, paths=json.dumps([f"memory/{path.name}" for path in files]))
        for path in files:
            path.unlink()

    def page(self, text: str, path: str = "MEMORY.md") -> None:
        """Writes its page over whatever is there, and keeps what was there as a backup."""
        page = self.root / path
        if page.exists():
            number = len(list((self.root / "memory").glob("MEMORY.backup-*")))
            (self.root / f"memory/MEMORY.backup-2026-03-29T12-00-{number:02d}.md").write_bytes(page.read_bytes())
        page.write_text(f"<!-- generated 2026-03-29 12:00 -->\n\n# Working Memory Summary\n\n{text}", encoding="utf-8")

    def render_manifests(self) -> None:
        """Writes every manifest again as its render does: the fields stay, the body is its own."""
        for path in sorted((self.root / "memory").glob("*--manifest.md")):
            fields = dict(parse(path.read_bytes()).fields)
            fields["revision"] = int(str(fields.get("revision") or 0)) + 1
            fields["content_sha256"] = text_sha256(LEDGER)
            path.write_bytes(write(fields, LEDGER))
