"""Valid artifacts, manifests and tombstones as bytes, made by the models, for the tests of every package.

Every maker of a file gives `(file name, bytes)`. Keyword overrides replace fields as they are written, after the hash
and the name were made of the ordinary values, so that one thing at a time can be wrong; `ABSENT` leaves a field out,
and a key that no model knows is written behind the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from signet_sync.formats.artifact import REPOSITORY_FIELDS, Manifest, Tombstone
from signet_sync.formats.body import HASH_SCOPE, normalize, text_sha256
from signet_sync.formats.filename import artifact_file_name, tombstone_file_name
from signet_sync.formats.frontmatter import pack_seal, parse, write
from signet_sync.formats.ids import derive_token
from signet_sync.formats.snapshot import Found, Signature
from signet_sync.pages.session_log import compose
from signet_sync.pages.store import pages
from signet_sync.storage.database.connection import Database
from signet_sync.sync.index_records import Judgement, NoiseRule
from signet_sync.sync.planner import JudgeContext, Tombstones, judge
from signet_sync.sync.store import artifacts
from signet_sync.text.sanitizer import SANITIZER_RULES, SANITIZER_VERSION

ABSENT: Any = object()

AGENT = "default"
SESSION = "0195d7a2-6f00-7cc0-8a44-1d2e3f405162"
CAPTURED = "2026-03-28T10:00:00.000Z"
PROJECT = "/home/ada/code/lantern"
SENTENCE = "In lantern the retry loop of src/queue.py was bounded so that a dead broker no longer blocks a start."
BODY = "# Retry loop of the queue\n\nThe loop in src/queue.py now gives up after five tries.\n"


# The session that a file is of, where nothing else is said.
WHO: dict[str, Any] = {"agent_id": AGENT, "session_id": SESSION, "session_key": None, "captured_at": CAPTURED}


def token_for(agent_id: str = AGENT, session_id: str = SESSION, session_key: str | None = None) -> str:
    """The token that the files of a session carry."""
    return derive_token(agent_id, session_key, session_id)


def path_for(kind: str, **given: Any) -> str:
    """`memory/<name>` of a session's file of this kind, as we would write it."""
    agent_id, session_id, session_key, captured_at = (WHO | given).values()
    return f"memory/{artifact_file_name(captured_at, token_for(agent_id, session_id, session_key), kind)}"


def _head(kind: str, who: dict[str, Any]) -> dict[str, Any]:
    at = who["captured_at"]
    more = {"project": PROJECT, "harness": "claude-code", "captured_at": at, "started_at": None, "ended_at": at}
    return {"kind": kind, **who, **more}


def _whose(given: dict[str, Any]) -> dict[str, Any]:
    """Takes out of what is given which session is meant."""
    return {name: given.pop(name, value) for name, value in WHO.items()}


def _file(fields: dict[str, Any], body: str) -> bytes:
    return write({key: value for key, value in fields.items() if value is not ABSENT}, body.removesuffix("\n"))


def content(kind: str, /, *, body: str = BODY, **given: Any) -> tuple[str, bytes]:
    """An immutable artifact of any kind; `ended_at` is `captured_at` unless overridden."""
    who = _whose(given)
    fields = _head(kind, who) | {
        "manifest_path": path_for("manifest", **who),
        "source_node_id": None,
        "content_sha256": text_sha256(normalize(body)),
        "hash_scope": HASH_SCOPE,
        "memory_sentence": SENTENCE,
        "memory_sentence_version": "memory_sentence_v1",
        "memory_sentence_quality": "ok",
        "memory_sentence_generated_at": who["captured_at"],
    }
    if kind == "transcript":
        fields |= {"sanitizer_version": SANITIZER_VERSION, "sanitizer_rules": SANITIZER_RULES}
    return path_for(kind, **who).removeprefix("memory/"), _file(fields | given, body)


def summary(**given: Any) -> tuple[str, bytes]:
    """A valid summary; arguments as of `content`."""
    return content("summary", **given)


def transcript(**given: Any) -> tuple[str, bytes]:
    """A valid transcript; arguments as of `content`."""
    return content("transcript", **given)


def compaction(**given: Any) -> tuple[str, bytes]:
    """A valid compaction; arguments as of `content`."""
    return content("compaction", **given)


def manifest(*, body: str = "", **given: Any) -> tuple[str, bytes]:
    """A valid manifest that links a summary and a transcript of the same `captured_at`."""
    who = _whose(given)
    fields = _head("manifest", who) | {
        "summary_path": path_for("summary", **who),
        "transcript_path": path_for("transcript", **who),
        "compaction_path": None,
        "memory_md_refs": [],
        "updated_at": who["captured_at"],
        "revision": 1,
        "content_sha256": text_sha256(normalize(body)),
        "hash_scope": HASH_SCOPE,
    }
    assert fields.keys() >= Manifest.FIELDS.keys() - set(REPOSITORY_FIELDS)
    return path_for("manifest", **who).removeprefix("memory/"), _file(fields | given, body)


def session(**who: Any) -> dict[str, bytes]:
    """The manifest, summary and transcript of one session by file name."""
    return dict([manifest(**{k: v for k, v in who.items() if k != "body"}), summary(**who), transcript(**who)])


def tombstone(*, token: str | None = None, session_ids: tuple[str, ...] = (), **given: Any) -> tuple[str, bytes]:
    """A valid tombstone of the token (given, or that of the session); `session_ids` limits it to some sessions."""
    agent_id, *others = (given.pop(name, WHO[name]) for name in ("agent_id", "session_id", "session_key"))
    covered = token if token is not None else token_for(agent_id, *others)
    fields: dict[str, Any] = {
        "kind": "tombstone",
        "agent_id": agent_id,
        "session_token": covered,
        "removed_at": "2026-03-29T08:00:00.000Z",
        "reason": "asked for",
        "removed_paths": [],
        "tombstone_version": 1,
    }
    if session_ids:
        fields["session_ids"] = list(session_ids)
    return tombstone_file_name(agent_id, covered), _file(fields | given, "")


def stone(**who: Any) -> Tombstone:
    """The tombstone of the same arguments as a value."""
    return Tombstone.read(parse(tombstone(**who)[1]).fields)


def judged(files: Mapping[str, bytes]) -> list[Judgement]:
    """What the desk makes of files (name, bytes) directly under `memory/`, without seals or tombstones."""
    bench = JudgeContext(Tombstones(), NoiseRule(), lambda _: None, "2026-03-30T00:00:00.000Z")
    return [
        judge(f"memory/{name}", Found(raw, Signature(len(raw), number, number, number)), bench)
        for number, (name, raw) in enumerate(files.items(), start=1)
    ]


def fill(database: Database, judgements: Sequence[Judgement], *, log: bool = True) -> None:
    """Writes judgements as a pass does: rows, full text, verdicts, seals with their bytes; and the session log.

    Where derivers run, the log is theirs: what follows from it would not hear of what was written past them.
    """
    with database.transaction():
        artifacts.delete_rows(database, [judgement.path for judgement in judgements])
        first = artifacts.next_row_id(database)
        seals = [j.seal._replace(packed=pack_seal(j.raw)) for j in judgements if j.seal is not None and j.raw]
        artifacts.store_seals(database, seals)
        artifacts.insert_rows(database, judgements, first)
        artifacts.store_files(database, judgements)
        if not log:
            return
        sessions = {(j.row.agent_id, j.row.session_token, j.row.session_id) for j in judgements if j.row is not None}
        parts = pages.session_parts(database, sorted(sessions))
        rows = [row for one, some in parts if (row := compose(*one[:2], some)) is not None]
        pages.store_rows(database, [], rows, {(row.agent_id, row.day) for row in rows})
