"""A session of each harness as the program writes it, and what its hooks say: found by name in `capture/harnesses`.

A sample has a `PLACE` below the home; `STEPS`: the documents of its hooks at each step, and what was injected then
("all" of the start's context, "lines" on the prompt, "" nothing, None: no such event); and `records` (or `write`) of
turns. `HAS_PATH` is false if its documents do not name the transcript, `HAS_CALLS` and `HAS_FOLDER` if that keeps none.
`EDITOR` is its tool that edits, `CASES` are recorded inputs by what they show. Without hooks, `STEPS` is empty.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from signet_sync.capture import capture, transcripts
from signet_sync.capture.harnesses.reader import Conversation
from signet_sync.formats.timestamps import iso

SESSION = "7a1b0c00-0000-4000-8000-00000000000b"
PROJECT = "/home/ada/code/lantern"
START_US = 1_774_737_246_792_000


class Turn(NamedTuple):
    """Words of the user or the assistant; or a call, by its name, with its arguments and what it gave back."""

    kind: str
    text: str
    given: Any = None
    back: str = ""


class Case(NamedTuple):
    """Records; what is read of them, "kind text" for each entry; what else is known of it."""

    records: Sequence[Any]
    told: Sequence[str]
    facts: dict[str, Any]


def case(records: Sequence[Any], *told: str, **facts: Any) -> Case:
    """A recorded input. Of `failed`, `name`, `call`, `at` each entry has one, of other facts the conversation."""
    return Case(records, told, facts)


def at(number: int) -> str:
    """The time of a record."""
    return iso(START_US + number * 1_000_000)


def sample(harness: str) -> Any:
    """The module of a harness."""
    name = harness.replace("-", "_")
    assert find_spec(f"harnesses.{name}"), f"add tests/capture/harnesses/{name}.py; see quill.py there"
    return import_module(f"harnesses.{name}")


def has(harness: str, what: str) -> bool:
    """Whether its transcripts have "calls" or the "folder", its documents the "path"."""
    return getattr(sample(harness), f"HAS_{what.upper()}", True)


def require(harness: str, what: str) -> None:
    """Skips what is about something that a harness does not have."""
    if not has(harness, what):
        pytest.skip(f"{harness} says HAS_{what.upper()} = False")


def write(
    harness: str, home: Path, turns: Sequence[Turn], session: str = SESSION, cwd: str = PROJECT, got: Sequence[str] = ()
) -> Path:
    """Writes a session to where the harness keeps it below a home; `got` are the texts that it got from our hooks."""
    made, turns = sample(harness), [one for one in turns if one.kind != "call" or has(harness, "calls")]
    path = home / made.PLACE.format(session)
    path.parent.mkdir(parents=True, exist_ok=True)
    if hasattr(made, "write"):
        made.write(path, session, cwd, turns, got)
    else:
        path.write_text("".join(json.dumps(one) + "\n" for one in made.records(session, cwd, turns, got)))
    return path


def read(harness: str, path: Path) -> Conversation:
    """What is read of a file with one session."""
    (source,) = transcripts.sources(harness, str(path))
    return capture.read(source)
