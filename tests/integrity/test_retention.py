"""What is kept for a time only: hits of recall go when they are due, to the last byte."""

from __future__ import annotations

import os
import random
import re
from pathlib import Path

from workbench import Vault

from signet_sync.formats.timestamps import DAY, parse_instant

MONTHS_LATER = "2026-06-20T12:00:00.000Z"
WORD = re.compile(rb"quill\d{4}z")


def test_hits_of_recall_go_to_the_last_byte(tmp_path):
    """In an order and of sizes that have SQLite move rows from page to page."""
    vault = Vault(tmp_path / "vault").indexed(1)
    assert vault.call("remember", "In lantern the kestrel stays.", "--json").code == 0
    chance, late = random.Random(7), parse_instant(MONTHS_LATER)
    with vault.database(readonly=False) as database, database.transaction():
        for number in chance.sample(range(1000, 1600), 600):
            old = number % 7 != 0
            query = f"quill{number}z {'x' * chance.randint(0, 900)}"
            database.execute(
                "insert into recall_events select ?, agent_id, id, ?, 1.0, ? from memories",
                (number, query, late - DAY * (90 if old else 1)),
            )
    vault.reindex()
    assert len(words_in(vault)) == 600
    Path(os.environ["SIGNET_CONFIG"]).write_text("[recall]\nretention_days = 30\n")
    vault.reindex(now=MONTHS_LATER)
    left = {query.split()[0].encode() for (query,) in vault.rows("select query from recall_events")}
    assert len(left) == 86 and words_in(vault) == left
    assert vault.rows("select coalesce(max(wipe_due), 0) from passes") == [(0,)]


def words_in(vault):
    """The words that stand in some byte of the database, or of its log."""
    return {word for path in vault.state.glob("signet-sync.db*") for word in WORD.findall(path.read_bytes())}
