"""Translates the keys and values of schemas before 7, whose table `meta` held the state of every feature, into rows."""

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from signet_sync.formats.session_token import forgotten_mark

LAST_WITH_KEYS = 6

Stored = tuple[str, dict[str, Any]]  # a table, and some columns of a row


def rows_of(keys: Mapping[str, str]) -> Iterator[Stored]:
    """Yields the rows that keys are stored in today; none for what follows from files, which is derived again."""
    for key, value in keys.items():
        yield from _rows_of(key, value)


def _rows_of(key: str, value: str) -> Iterator[Stored]:
    kind, _, rest = key.partition(":")
    match kind:
        case "accepted":
            at, _, reason = value.partition(" ")
            yield "acceptances", {"path": rest, "gone": False, "at": at, "reason": reason}
        case "gone":
            yield "forgotten_memories", {"mark": rest}
        case "forgotten":
            agent_id, _, memory_id = rest.partition(":")
            yield "forgotten_memories", {"mark": forgotten_mark(agent_id, memory_id)}
            yield "unscrubbed_memories", {"agent_id": agent_id, "memory_id": memory_id}
        case "live":
            until, _, seen = value.partition(" ")
            told_at, _, shape = seen.partition(" ")
            if until.isdecimal():
                row = {"name": rest, "shape": shape, "told_at": told_at, "rests_until": int(until)}
                yield "live_transcripts", row
        case "entities_told":
            yield "garden_days", {"agent_id": rest, "told_day": value}
        case "entities_ledger":
            yield "garden_days", {"agent_id": rest, "ledger": value}
        case _:
            with suppress(ValueError, KeyError, TypeError):  # a value that is not our JSON
                yield from _of_one_row(key, value)


def _of_one_row(key: str, value: str) -> Iterator[Stored]:
    match key:
        case "lines of what was removed":
            found = json.loads(value)
            for digest in found["lines"]:
                yield "removed_lines", {"digest": digest, "fresh": found["new"]}
        case "halted":
            yield "passes", {"one": 1, "halted": json.loads(value)["message"]}
        case "manifests":
            yield "passes", {"one": 1, "manifests_due": 1}
        case "retention":
            yield "passes", {"one": 1, "wipe_due": 1}
        case "examined":
            yield "passes", {"one": 1, "examined_at": value}
        case "entities_day":
            yield "passes", {"one": 1, "days_told_on": value}
        case "restore":
            yield "backups", {"one": 1, "restore_due": 1}
        case "history_dreamt":
            yield "history_told", {"one": 1, "sweep_id": value}
        case "history_at":
            ended_at, keys = json.loads(value)
            yield "history_told", {"one": 1, "ended_at": ended_at, "flow_keys": json.dumps(keys)}
