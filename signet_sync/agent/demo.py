"""The sample workspace: realistic sessions dated relative to now, one broken file, one conflict copy."""

from __future__ import annotations

import os
import shutil
import tomllib
from contextlib import suppress
from importlib.resources import files as package_files
from typing import Any

from signet_sync import state
from signet_sync.agent.manifests import manifest_body
from signet_sync.contracts.bodies import HASH_SCOPE, body_sha256, normalize
from signet_sync.contracts.frontmatter import write
from signet_sync.contracts.names import artifact_file_name
from signet_sync.contracts.places import artifact_path
from signet_sync.contracts.records import SENTENCE_VERSION
from signet_sync.contracts.sanitizer import SANITIZER_VERSION, sanitize_line, sanitize_transcript_v2
from signet_sync.contracts.timestamps import DAY, SECOND, iso
from signet_sync.contracts.tokens import derive_token
from signet_sync.errors import UsageError
from signet_sync.vault import files, manifests

MARKER = ".signet-demo"


def make(root: str, now_us: int) -> list[str]:
    """Writes the sample workspace; gives its artifact paths.

    Raises `UsageError` for a folder that is neither empty nor an earlier demo; an earlier one is made anew, and
    what is remembered of one that was deleted by hand is forgotten.
    """
    known = state.locate(root).path
    if os.path.isdir(root) and os.listdir(root):
        if not os.path.isfile(os.path.join(root, MARKER)):
            raise UsageError(
                "the folder is not empty and not an earlier demo",
                path=root,
                hint="give another: signet-sync demo PATH",
                code="not-empty",
            )
        shutil.rmtree(known, ignore_errors=True)
        shutil.rmtree(root)
    elif os.path.isfile(os.path.join(known, MARKER)):
        shutil.rmtree(known, ignore_errors=True)
    os.makedirs(root, mode=0o700, exist_ok=True)
    files.create_once(root, MARKER, b"A demo workspace of signet-sync; delete it whenever you like.\n")
    samples = tomllib.loads((package_files("signet_sync.agent") / "demo_sessions.toml").read_text("utf-8"))
    written: list[str] = []
    by_session: list[dict[str, str]] = []
    for sample in samples["session"]:
        paths = _session(root, sample, now_us)
        by_session.append(paths)
        written += paths.values()
    _break(root, samples["broken"], by_session)
    _copy(root, samples["conflict"], by_session)
    return written


def mark(folder: state.StateFolder) -> None:
    """Says in a state folder that it is a demo's."""
    state.write_json(os.path.join(folder.path, MARKER), {})


def _session(root: str, sample: dict[str, Any], now_us: int) -> dict[str, str]:
    hours, minutes = sample["started"].split(":")
    start = (now_us // DAY - sample["days_ago"]) * DAY + (int(hours) * 3600 + int(minutes) * 60) * SECOND
    end = start + sample["minutes"] * 60 * SECOND
    if sample["days_ago"] == 0:
        end = min(end, now_us)
    captured_at = iso(end)
    key = sample.get("session_key")
    token = derive_token(sample["agent_id"], key, sample["session_id"])
    paths: dict[str, str] = {
        kind: artifact_path(artifact_file_name(captured_at, token, kind))
        for kind in ("transcript", "summary", "compaction", "manifest")
        if kind == "manifest" or kind in sample
    }
    common = {
        "agent_id": sample["agent_id"],
        "session_id": sample["session_id"],
        "session_key": key,
        "project": sample.get("project"),
        "harness": sample["harness"],
        "captured_at": captured_at,
        "started_at": iso(start),
        "ended_at": iso(end),
    }
    for kind in ("transcript", "summary", "compaction"):
        if kind not in sample:
            continue
        body = normalize(sanitize_transcript_v2(sample[kind]))
        fields = {
            "kind": kind,
            **common,
            "manifest_path": paths["manifest"],
            "source_node_id": None,
            "content_sha256": body_sha256(body),
            "hash_scope": HASH_SCOPE,
            "memory_sentence": sanitize_line(sample["sentence"]),
            "memory_sentence_version": SENTENCE_VERSION,
            "memory_sentence_quality": sample["quality"],
            "memory_sentence_generated_at": iso(end),
        }
        if kind == "transcript":
            fields["sanitizer_version"] = SANITIZER_VERSION
        files.create_once(root, paths[kind], write(fields, body))
    fields = {
        "kind": "manifest",
        **common,
        **{f"{kind}_path": paths.get(kind) for kind in ("summary", "transcript", "compaction")},
        "memory_md_refs": [],
        "updated_at": iso(end),
        "revision": 1,
    }
    body = manifest_body((kind, paths[kind]) for kind in ("summary", "transcript", "compaction") if kind in paths)
    files.create_once(root, paths["manifest"], manifests.text_of(fields, body))
    return paths


def _break(root: str, broken: dict[str, Any], by_session: list[dict[str, str]]) -> None:
    path = os.path.join(root, by_session[broken["session"]]["transcript"])
    with open(path, "ab") as handle:
        handle.write(broken["append"].encode())


def _copy(root: str, conflict: dict[str, Any], by_session: list[dict[str, str]]) -> None:
    path = os.path.join(root, by_session[conflict["session"]]["summary"])
    with suppress(FileExistsError):
        shutil.copyfile(path, f"{path.removesuffix('.md')} ({conflict['label']}).md")
