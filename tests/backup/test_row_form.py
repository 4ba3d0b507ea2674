"""Rows of a backup: what signet-sync cannot have written stays out, and words pass the sanitizer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from random import Random
from typing import Any

import native_rows
import pytest
from invented_secrets import some
from native_rows import BACKED_UP
from workbench import NOW

from signet_sync.backup.row_form import validate
from signet_sync.storage.database.tables import TABLES

SECRET = "ghp_" + some(Random(8), 36)
Rows = dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rows]:
    """One row of each table that is backed up, as SQLite stores it."""
    with native_rows.elsewhere(tmp_path_factory.mktemp("made")) as vault, vault.database() as database:
        found = {}
        for table in BACKED_UP:
            columns = tuple(TABLES[table].types)
            for row in database.execute(f"select {', '.join(columns)} from {table} limit 1"):
                found[table] = dict(zip(columns, row, strict=True))
        yield found


def test_what_signet_sync_wrote_comes_back_as_it_was(rows: Rows) -> None:
    assert {*BACKED_UP} - {*rows} == {"memory_artifact_tombstones"}
    for table, row in rows.items():
        assert validate(table, row) == row, table
    bare = {column: value for column, value in rows["seals"].items() if column != "packed"}
    assert validate("seals", bare) == bare, "those beside the database have no bytes"


HOSTILE: dict[str, tuple[str, dict[str, Any]]] = {
    "another agent's name": ("node_telemetry", {"agent_id": "../up"}),
    "a path that leaves the vault": ("seals", {"path": "memory/../../x--y--summary.md"}),
    "a number that is too large": ("recall_events", {"at_us": 10**30}),
    "a negative number": ("node_telemetry", {"accesses": -1}),
    "a sweep that is none": ("dream_sweeps", {"sweep_id": "soon"}),
    "a field that is gone": ("memories", {"type": None}),
    "a type that is none": ("memories", {"type": "odd"}),
    "a text in place of a number": ("node_telemetry", {"accesses": "3"}),
    "a text in place of a list": ("memories", {"tags": '"x"'}),
    "what is no JSON": ("memories", {"tags": "x"}),
    "words in place of a digest": ("recall_events", {"query": "what about the wick"}),
    "half a letter": ("memories", {"content": "\ud800"}),
    "a time that is none": ("acceptances", {"at": "soon"}),
    "another mark": ("forgotten_memories", {"mark": "halted"}),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_row_that_signet_sync_never_wrote_is_none(rows: Rows, name: str) -> None:
    table, changed = HOSTILE[name]
    assert validate(table, rows[table] | changed) is None


def test_a_removal_of_what_is_no_artifact_is_none() -> None:
    removal = {"agent_id": "default", "session_token": "a" * 16, "removed_at": NOW, "reason": "asked"}
    artifact = "memory/2026-01-01T00-00-00.000Z--aaaaaaaaaaaaaaaa--summary.md"
    for paths, sound in (([artifact], True), (["memory/../victim", artifact], False)):
        row = {**removal, "removed_paths": json.dumps(paths), "session_ids": None}
        assert (validate("memory_artifact_tombstones", row) is not None) == sound


def test_words_pass_the_sanitizer_before_they_reach_a_row(rows: Rows) -> None:
    for table, changed in (
        ("memories", {"content": f"The key is {SECRET}"}),
        ("captures", {"path": f"~/{SECRET}/s.jsonl", "conversation": SECRET}),
        ("flow_results", {"answer": json.dumps({"more": [SECRET]})}),
    ):
        assert SECRET not in str(validate(table, rows[table] | changed)), table
