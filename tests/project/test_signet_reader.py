"""Real Signet reads every field of every file that we write, and takes each: whatever wrote it, under any setting."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import harness_samples
import pytest
from harness_samples import SESSION, Turn
from hypothesis import given
from hypothesis import strategies as st
from invented_secrets import some
from session_inputs import FIRST, SECOND, SUMMARY, end, moment, written
from signet_database import Database, at, transcript
from signet_rules import refusal, refused, signet_reads
from workbench import NOW, Vault

from signet_sync.app.workspace import open_to_write
from signet_sync.capture.harnesses import registry
from signet_sync.formats.body import js_trim
from signet_sync.formats.timestamps import iso, parse_instant
from signet_sync.sessions import operations as sessions_operations
from signet_sync.sessions.input import session_input
from signet_sync.settings.model import Settings
from signet_sync.text.sanitizer import redact
from signet_sync.text.sentences import passes_signet
from signet_sync.text.stored_names import session_value

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
SECRET = "ghp_" + some(Random(5), 36)
NOW_US = parse_instant("2026-03-29T12:00:00.000Z") or 0


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    """One workspace for many sessions: each example is a session of its own."""
    folder = tmp_path_factory.mktemp("reader")
    root = folder / "vault"
    (root / "memory").mkdir(parents=True)
    patch = pytest.MonkeyPatch()
    patch.setenv("SIGNET_STATE", str(folder / "state"))
    with open_to_write(str(root), Settings()) as made:
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
    answer = sessions_operations.write(workspace, session_input(document, now_us=NOW_US), now_us=NOW_US)
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


PROJECTS = ('/home/ada/la"n', "/home/ada/lantern", "/home/ada/tab\tbed", None)
LITTLE = (FIRST, "Fix issue 12 of src/queue.py", "hi", "-")


def test_signet_keeps_the_sentence_that_we_made(workspace):
    for project, said in itertools.product(PROJECTS, LITTLE):
        given = {"session_id": f"kept-{next(NUMBERS)}", "captured_at": moment(0), "project": project}
        ending = session_input({**given, "transcript": said}, now_us=NOW_US)
        answer = sessions_operations.write(workspace, ending, now_us=NOW_US)
        for kind in ("transcript", "summary"):
            found, text = signet_reads((Path(workspace.root) / answer[kind]).read_bytes())
            assert passes_signet(found["memory_sentence"], text.removesuffix("\n"), project), (project, said)


def live(vault: Vault, home: Path, harnesses: list[str]) -> set[str]:
    """Every flow that writes an artifact, one after the other; gives the artifacts that others wrote."""
    key = {"session_key": "agent:main:main"}
    end(vault, "compact", captured_at=moment(0), **key)
    first = end(vault, captured_at=moment(1), ended_at=moment(1), **key)
    later = end(vault, captured_at=moment(2), **key, transcript=FIRST + SECOND)
    long = "".join(f"## User\n\nWhat of lamp {number}?\n\n## Assistant\n\nLit.\n\n" for number in range(40))
    end(vault, session_id="long", captured_at=moment(3), transcript=long, summary=None)
    assert vault.call("session", "take-spool").code == 0
    for number, harness in enumerate(harnesses):
        sample = harness_samples.write(
            harness, home, [Turn("user", SAID.format(harness))], session=f"{SESSION}{number}"
        )
        assert vault.call("import", harness, str(sample), "--json").code == 0, harness
    database = Database(vault.memory / "memories.db")
    database.put("session_transcripts", session_key="of-signet", content=transcript(1), created_at=at(1))
    database.put("memory_artifacts", agent_id="default", session_key="of-signet", session_id="of-signet")
    database.close()
    assert vault.call("migrate", "signet", "--yes", "--json").code == 0
    theirs = set(vault.session(1, body=f"# Keys\n\nThe lantern opens with {SECRET}.\n").values())
    (vault / first["manifest"]).write_bytes((vault / first["manifest"]).read_bytes() + b"\nA note of mine.  \n")
    for number, act in enumerate(("restore", "accept", "redact")):
        assert vault.call("reindex", "--now", NOW).code in (0, 1)
        if act == "redact":
            assert vault.call("redact", "--all", "--reason", "x", "--yes", "--json").code == 0
            continue
        damaged = vault / (first, later)[number]["summary"]
        damaged.write_bytes(damaged.read_bytes() + b"More.\n")
        assert vault.call("reindex", "--now", NOW).code in (0, 1)
        assert vault.call("violations", act, f"memory/{damaged.name}", *["--reason", "x"][: 2 * number]).code == 0
    (vault / later["manifest"]).rename(vault / "lost.md")
    assert vault.call("reindex", "--now", "2026-04-01T12:00:00.000Z").code == 0
    return theirs


@pytest.mark.parametrize("setting", ["", '[llm]\nprovider = "command"\ncommand = ["echo", "{}"]'])
def test_signet_takes_every_file_of_every_flow(tmp_path, monkeypatch, setting):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("SIGNET_CONFIG", str(tmp_path / "mine.toml"))
    (tmp_path / "mine.toml").write_text(setting)
    vault = Vault(tmp_path / "vault")
    theirs = live(vault, tmp_path / "home", list(registry.names())[: 1 if setting else None])
    assert refused(vault.root) == {}
    kinds = Counter(path.rpartition("--")[2] for path in written(vault))
    assert all(kinds[f"{kind}.md"] for kind in ("summary", "transcript", "compaction", "manifest")) and len(theirs) == 3
    for path in written(vault):
        held_to_its_order(path, signet_reads((vault / path).read_bytes())[0])


def test_the_rules_are_those_by_which_signet_decided(shared):
    same = 0
    for place in (shared / "vaults").glob("*/expected/files.json"):
        for told in json.loads(place.read_text()):
            raw = (place.parents[1] / told["path"]).read_bytes()
            why = refusal(told["path"], raw)
            if not why.startswith("cannot be read"):
                assert (why == "") == told["isValidArtifact"], (told["path"], why)
                same += 1
    assert same > 200
