"""Secrets in whatever a harness or a person says reach no row of the graph, no page, no log and no backup."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import artifacts_fixture as made
import pytest
from invented_secrets import some
from session_inputs import say
from workbench import NOW, Answer, Vault

from signet_sync.storage.database.tables import TABLES

# One of its own for each place, so that a failure names the place.
PLACES = (
    "heading", "item", "slot", "path", "package", "person", "issue", "handle", "ticked", "imported", "turn", "spoken",
    "sentence", "compacted", "project", "key", "harness", "live", "live key", "remembered", "tag", "asked", "prompt",
    "handled", "pinned", "dropped", "dropped project", "dropped sentence", "dropped key", "reason", "origin",
)  # fmt: skip
SECRETS = {place: f"ghp_{some(Random(place), 36)}" for place in PLACES}
WHO = {"session_id": "5ec2e700-0000-4000-8000-000000000001", "captured_at": "2026-03-25T10:00:00.000Z"}
DROPPED = {"session_id": "5ec2e700-0000-4000-8000-000000000002", "captured_at": "2026-03-26T10:00:00.000Z"}


@pytest.fixture
def vault(tmp_path: Path) -> Vault:
    return Vault(tmp_path / "vault")


def body(secrets: dict[str, str]) -> str:
    return (
        f"# Keys of {secrets['heading']}\n\n## Decisions of {secrets['heading']}\n\n- Not an item.\n\n## Decisions\n\n"
        f"- The queue is read with {secrets['item']} from now on.\n- {secrets['slot']}: is the token\n"
        f"- Deploy token: {secrets['slot']}\n- See src/{secrets['path']}.py and `{secrets['path']}/queue.py`.\n\n"
        f"## People\n\n- {secrets['person']}: keeps the queue\n- **{secrets['person']}** – asks\n\n"
        f"## Next steps\n\n- [x] Ask @{secrets['handle']} of https://github.com/ada/{secrets['issue']}/issues/7\n"
        f"- [x] Turn {secrets['ticked']} in.\n\n"
        f"```sh\npip install {secrets['package']}\n```\n\n```python\nimport {secrets['imported']}\n```\n"
    )


def talk(secrets: dict[str, str]) -> str:
    return (
        f"## User · {secrets['turn']}\n\n{secrets['spoken']} is what I use.\n\n"
        f"## Assistant · 2026-03-25T09:00:00.000Z\n\nThen src/queue.py reads {secrets['spoken']}.\n"
    )


def append(vault: Vault, key: str, text: str) -> Answer:
    raw = json.dumps({"turn": 0, "role": "user", "text": text, "at": NOW}).encode() + b"\n"
    held, sys.stdin = sys.stdin, io.TextIOWrapper(io.BytesIO(raw))
    try:
        return vault.call("transcript", "append", "--session-key", key)
    finally:
        sys.stdin = held


def say_everything(vault: Vault) -> None:
    """Every way in, with a secret in every part: some is refused, some redacted."""
    secrets = SECRETS
    who: dict[str, Any] = WHO | {"harness": f"codex {secrets['harness']}", "project": f"/home/ada/{secrets['project']}"}
    sentence = f"Bounded the retry loop of src/queue.py with {secrets['sentence']} so that it drains."
    words: dict[str, Any] = {"summary": body(secrets), "transcript": talk(secrets), "memory_sentence": sentence}
    assert say(vault, **who, session_key=f"agent:{secrets['key']}", **words).code == 0
    assert say(vault, **who, session_key=None, **words).code == 0
    compacted = body(dict.fromkeys(secrets, secrets["compacted"]))
    assert say(vault, "compact", **who, session_key=None, compaction=compacted).code == 0
    append(vault, "live-key", f"Use {secrets['live']} for the queue.")
    append(vault, f"live:{secrets['live key']}", "Nothing.")
    for arguments in (
        ("remember", f"The queue is opened with {secrets['remembered']} by Ada."),
        ("remember", "Ada opens the queue.", "--tag", secrets["tag"]),
        ("remember", "Ada opens the queue.", "--session", secrets["origin"]),
        ("recall", f"who uses {secrets['asked']}"),
        ("context", "--prompt", f"who uses {secrets['prompt']}"),
        ("expand", secrets["handled"]),
        ("pin", secrets["pinned"]),
    ):
        vault.call(*arguments, "--agent", "default")


def drop(vault: Vault) -> set[Path]:
    """Files of somebody who does not redact; they are not ours to change."""
    fields: dict[str, Any] = DROPPED | {"session_key": f"agent:{SECRETS['dropped key']}"}
    sentence = f"Bounded the retry loop of src/queue.py with {SECRETS['dropped sentence']} so that it drains."
    more = {"project": f"/home/ada/{SECRETS['dropped project']}", "harness": "codex", "memory_sentence": sentence}
    all_one = dict.fromkeys(SECRETS, SECRETS["dropped"])
    files = [made.summary(**fields, **more, body=body(all_one)), made.transcript(**fields, **more, body=talk(all_one))]
    return {vault / path for path in vault.put(dict(files))}


def texts(vault: Vault) -> Iterator[tuple[str, str]]:
    """Every text of every table, with what column of which it stands in."""
    for table in TABLES:
        if not table.endswith("_fts"):
            columns = [row[1] for row in vault.rows(f"pragma table_info({table})")]
            for row in vault.rows(f"select * from {table}"):
                yield from ((f"{table}.{name}", str(value)) for name, value in zip(columns, row, strict=True))


def test_no_secret_reaches_a_row_a_page_or_a_log(vault: Vault) -> None:
    say_everything(vault)
    vault.reindex()
    dropped = drop(vault)
    vault.reindex()
    vault.call("remove", DROPPED["session_id"], "--reason", f"it held {SECRETS['reason']}", "--dry-run")
    for handle in ("src/queue.py", WHO["session_id"], DROPPED["session_id"]):
        vault.call("expand", handle)
    needles = {place: secret[4:].lower() for place, secret in SECRETS.items()}
    rows = {(where, place) for where, text in texts(vault) for place, word in needles.items() if word in text.lower()}
    assert rows == set()
    kinds = {row[0] for row in vault.rows("select distinct source_type from session_summaries")}
    assert kinds >= {"summary", "compaction", "chunk"}, "there is a graph"
    assert vault.rows("select count(*) from entity_attributes where status = 'active'")[0][0] >= 3
    assert vault.rows("select count(*) from session_transcripts")[0][0] >= 1
    # Full text leaves out what a word shares with the one before it.
    tails = {place: word[6:].encode() for place, word in needles.items()}
    found = {
        (str(path.relative_to(vault.root.parent)), place)
        for path in vault.root.parent.rglob("*")
        if path.is_file() and path not in dropped and path.name != "input.json"
        for raw in (path.name.encode() + path.read_bytes().lower(),)
        for place, word in tails.items()
        if word in raw
    }
    assert found == set()


def test_a_removal_says_why_without_the_secret(vault: Vault) -> None:
    dropped = drop(vault)
    vault.reindex()
    vault.call("remove", DROPPED["session_id"], "--reason", f"it held {SECRETS['reason']}", "--yes")
    assert not any(path.exists() for path in dropped)
    for path in vault.root.parent.rglob("*"):
        if path.is_file():
            raw = path.read_bytes().lower()
            assert not [place for place, secret in SECRETS.items() if secret[10:].lower().encode() in raw], path
