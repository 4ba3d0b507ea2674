"""Real Signet reads every field of every file that we write: its line reader, written once more from its description.

Nothing of signet_sync takes part in the reading. The reader is strict where Signet is silent: a line that it would
misread or drop fails here.
"""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from session_inputs import FIRST, SECOND, SUMMARY, body, end, moment, written
from workbench import Vault, sampled

from signet_sync.app.workspace import opened
from signet_sync.formats.body import js_trim
from signet_sync.formats.timestamps import iso, parse_instant
from signet_sync.sessions import operations as sessions_operations
from signet_sync.sessions.input import session_input
from signet_sync.settings.model import Settings
from signet_sync.text.sanitizer import redact, sanitize_line
from signet_sync.text.sentences import passes_signet
from signet_sync.text.stored_names import session_value

# ── the reader ──

DECIMAL = re.compile(r"-?\d+(\.\d+)?", re.ASCII)
KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


def scalar(text: str) -> Any:
    if text.startswith('"'):
        return json.loads(text)
    if text in ("null", "true", "false"):
        return json.loads(text)
    assert DECIMAL.fullmatch(text), f"Signet would take this as it stands: {text!r}"
    return json.loads(text)


def signet_reads(raw: bytes) -> tuple[dict[str, Any], str]:
    """Fields and body. The head ends at the first `\\n---\\n`; a line is `key: scalar`, `key:` or `  - scalar`."""
    text = raw.decode("utf-8")
    assert text.startswith("---\n") and "\r" not in text
    closing = text.index("\n---\n", 4)
    found: dict[str, Any] = {}
    items: list[Any] | None = None
    for line in text[4:closing].split("\n"):
        if line.startswith("  - "):
            assert items is not None, f"an item of no list: {line!r}"
            items.append(scalar(line[4:]))
            continue
        key, colon, value = line.partition(":")
        assert colon and KEY.fullmatch(key) and key not in found, f"no key: {line[:80]!r}"
        if value == "":
            items = found[key] = []
            continue
        assert value.startswith(" ") and value[1:2] not in ("", " "), f"no value: {line[:80]!r}"
        items = None
        found[key] = scalar(value[1:])
    return found, text[closing + 5 :]


CONTENT = [
    "kind", "agent_id", "session_id", "session_key", "project", "harness", "captured_at", "started_at", "ended_at",
    "manifest_path", "source_node_id", "content_sha256", "hash_scope", "memory_sentence", "memory_sentence_version",
    "memory_sentence_quality", "memory_sentence_generated_at",
]  # fmt: skip
MANIFEST = [
    "kind", "agent_id", "session_id", "session_key", "project", "harness", "captured_at", "started_at", "ended_at",
    "summary_path", "transcript_path", "compaction_path", "memory_md_refs", "updated_at", "revision",
    "content_sha256", "hash_scope",
]  # fmt: skip


def held_to_its_order(path: str, found: dict[str, Any]) -> None:
    kind = path.removesuffix(".md").rpartition("--")[2]
    assert found["kind"] == kind
    last = ["sanitizer_version", "sanitizer_rules"] if kind == "transcript" else []
    wanted = MANIFEST if kind == "manifest" else CONTENT + last
    assert list(found) == wanted
    # Signet refuses a transcript with any other value.
    assert found.get("sanitizer_version", "sanitize_transcript_v1") == "sanitize_transcript_v1"


# ── what we write ──

# What Signet's shell, YAML and people's eyes stumble over.
HOSTILE = [
    'a "quoted" word', "back\\slash \\n \\u0041 \\", "---", "- item", "key: value", "# comment", "'single'", "null",
    "007", "true", "[]", "{a: 1}", "> folded", "| block", "&anchor *alias !tag", "%directive @at `tick`", "🦉 é 漢字 ע",
    "\u00a0nbsp\u00a0", "\ufeffbom\ufeff", "\u202eover\u202c", "\uffff\ufffe", "x" * 5_000, '"' * 5_000,
    "\\" * 5_000, "🦉" * 1_000,
]  # fmt: skip
# No NUL, which is refused, and no half of a character, which nobody can write (tests/sessions/test_session_input.py).
KEYS = st.sampled_from(HOSTILE) | st.text(
    st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=200
)
TEXTS = st.sampled_from(HOSTILE) | st.text(st.characters(exclude_categories=("Cs",)), max_size=200)
SAID = "Bounded the retry loop of src/queue.py in lantern at five attempts, {}, so that the queue drains in the end."
NUMBERS = itertools.count(1)
NOW_US = parse_instant("2026-03-29T12:00:00.000Z") or 0


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    """One workspace for many sessions: each example is a session of its own."""
    folder = tmp_path_factory.mktemp("reader")
    root = folder / "vault"
    (root / "memory").mkdir(parents=True)
    patch = pytest.MonkeyPatch()
    patch.setenv("SIGNET_STATE", str(folder / "state"))
    with opened(str(root), Settings()) as made:
        yield made
    patch.undo()


def plain(text: str | None, limit: int) -> str | None:
    """A blank key is none: blank as JavaScript has it, which counts the byte order mark."""
    return None if text is None or not js_trim(text) else text[:limit]


@given(KEYS, st.none() | KEYS, st.none() | KEYS, st.none() | KEYS, TEXTS)
def test_every_field_is_read_back_as_it_was_given(workspace, ident, key, project, harness, word):
    number = next(NUMBERS)
    ident = f"{number}:{ident}"[:5_100]
    if redact(ident)[1] or redact(key or "")[1]:
        return
    project, harness = plain(project, 4_000), plain(harness, 4_000)
    key = plain(key, 5_100)
    document = {
        "session_id": ident,
        "session_key": key,
        "project": project,
        "harness": harness,
        "captured_at": iso(NOW_US - number * 1_000_000),
        "ended_at": "2026-03-20T11:00:00.000Z",
        "transcript": f"{FIRST}\n---\n{word}\n",
        "summary": f"---\n{SUMMARY}{word}",
        "memory_sentence": SAID.format(word),
    }
    answer = sessions_operations.end(workspace, session_input(document, now_us=NOW_US), now_us=NOW_US)
    kinds = {kind: answer[kind] for kind in ("transcript", "summary", "manifest")}
    for path in kinds.values():
        found, _ = signet_reads((Path(workspace.root) / path).read_bytes())
        held_to_its_order(path, found)
        told = {name: found[name] for name in ("session_id", "session_key", "project", "harness")}
        assert told == {
            "session_id": ident,
            "session_key": key,
            "project": project and session_value(project),
            "harness": harness and session_value(harness),
        }
        assert (found["captured_at"], found["started_at"]) == (document["captured_at"], None)
        assert found["ended_at"] == document["ended_at"]
    for kind in ("transcript", "summary"):
        found, _ = signet_reads((Path(workspace.root) / kinds[kind]).read_bytes())
        assert (found["memory_sentence"], found["memory_sentence_quality"]) == (
            answer["sentence"],
            answer["sentence_quality"],
        )
        assert found["manifest_path"] == kinds["manifest"]
    found, links = signet_reads((Path(workspace.root) / kinds["manifest"]).read_bytes())
    assert (found["summary_path"], found["transcript_path"]) == (kinds["summary"], kinds["transcript"])
    assert found["compaction_path"] is None and isinstance(found["revision"], int)
    assert kinds["summary"] in links


@pytest.mark.parametrize("word", sampled(HOSTILE), ids=range(len(HOSTILE)))
def test_a_hostile_sentence_that_passes_is_read_back(tmp_path, word):
    vault = Vault(tmp_path / "vault")
    answer = end(vault, memory_sentence=SAID.format(word))
    found, _ = signet_reads((vault / answer["summary"]).read_bytes())
    assert found["memory_sentence"] == answer["sentence"]
    if len(word) < 1_000 and answer["sentence_quality"] == "ok":
        assert answer["sentence"] == " ".join(sanitize_line(SAID.format(word)).split())


@pytest.mark.parametrize("project", ['/home/ada/la"n', "/home/ada/lantern", "/home/ada/tab\tbed", None])
@pytest.mark.parametrize("transcript", [FIRST, "Fix issue 12 of src/queue.py", "hi", "-"])
def test_signet_keeps_the_sentence_that_we_made(tmp_path, project, transcript):
    vault = Vault(tmp_path / "vault")
    answer = end(vault, project=project, transcript=transcript, summary=None)
    for kind in ("transcript", "summary"):
        found, _ = signet_reads((vault / answer[kind]).read_bytes())
        assert passes_signet(found["memory_sentence"], body(vault, answer[kind]), project)


def test_every_file_of_a_long_life_is_read_back(tmp_path):
    vault = Vault(tmp_path / "vault")
    compaction = end(vault, "compact", captured_at=moment(0), session_key="agent:main:main")
    first = end(vault, captured_at=moment(1), ended_at=moment(1), session_key="agent:main:main")
    later = end(vault, captured_at=moment(2), session_key="agent:main:main", transcript=FIRST + SECOND)
    assert vault.call("reindex").code == 0
    files = {path: signet_reads((vault / path).read_bytes()) for path in written(vault)}
    assert len(files) == 6
    for path, (found, _) in files.items():
        held_to_its_order(path, found)
        assert found["session_key"] == "agent:main:main" and found["agent_id"] == "default"
    manifest, links = files[first["manifest"]]
    assert manifest["memory_md_refs"] in ([], ["Session Ledger (Last 30 Days)"])
    assert [manifest[f"{kind}_path"] for kind in ("compaction", "summary", "transcript")] == [
        compaction["compaction"],
        later["summary"],
        later["transcript"],
    ]
    assert links.count("[[") == 5
    assert files[compaction["compaction"]][1] == SUMMARY
    assert files[first["transcript"]][1] == FIRST
    assert files[later["transcript"]][1] == SECOND.lstrip("\n")


def test_an_empty_body_ends_as_signet_expects(tmp_path):
    vault = Vault(tmp_path / "vault")
    answer = end(vault, transcript="", summary=SUMMARY)
    raw = (vault / answer["transcript"]).read_bytes()
    assert raw.endswith(b"\n---\n\n")
    assert signet_reads(raw)[1] == "\n"


def test_the_reader_reads_what_signet_itself_wrote(shared):
    paths = sorted((shared / "vaults").glob("signet-*/**/memory/*--*--*.md"))
    assert len(paths) > 10
    read = 0
    for path in paths:
        try:
            found, _ = signet_reads(path.read_bytes())
        except (AssertionError, ValueError):
            continue
        read += 1
        assert found["kind"] == path.name.removesuffix(".md").rpartition("--")[2] or "kind" in found
    assert read > len(paths) // 2
