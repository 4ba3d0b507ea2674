"""Manifests and tombstones: changed by compare-and-swap, no change lost, nothing of a person's or a stranger's lost."""

import os
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from signet_sync.errors import RevisionConflict
from signet_sync.formats.body import normalize, text_sha256
from signet_sync.formats.frontmatter import parse
from signet_sync.settings.model import Settings
from signet_sync.storage import files, writing
from signet_sync.storage.database.connection import Database
from signet_sync.storage.locations import StateFolder
from signet_sync.sync import manifests
from signet_sync.sync.workspace import Workspace

PATH = "memory/2026-03-28T10-00-00.000Z--abcdefghijklmnop--manifest.md"
LIMIT = 1 << 20
FIELDS = {
    "kind": "manifest", "agent_id": "default", "session_id": "0195d7a2", "session_key": None,
    "project": "/home/ada/code/lantern", "harness": "claude-code", "captured_at": "2026-03-28T10:00:00.000Z",
    "started_at": None, "ended_at": "2026-03-28T11:00:00.000Z",
    "summary_path": "memory/2026-03-28T10-00-00.000Z--abcdefghijklmnop--summary.md",
    "transcript_path": None, "compaction_path": None, "memory_md_refs": [], "updated_at": "2026-03-28T11:00:00.000Z",
    "revision": 1,
}  # fmt: skip


@pytest.fixture
def root(tmp_path):
    vault = tmp_path / "vault"
    (vault / "memory").mkdir(parents=True)
    return vault


def put(root, raw):
    (root / PATH).write_bytes(raw)
    return raw


LISTED = ["Session Ledger (Last 30 Days)"]


def refs(fields, body):
    """The change that a page makes: it shows the session now."""
    return None if fields["memory_md_refs"] == LISTED else ({**fields, "memory_md_refs": LISTED}, body)


def swap(root, change=refs):
    state = StateFolder(str(root.parent / "state"), "key")
    os.makedirs(state.locks, exist_ok=True)
    settings = Settings(max_file_bytes=LIMIT)
    return manifests.swap(Workspace(str(root), settings, state, Database(":memory:")), PATH, change)


def document(root):
    return parse((root / PATH).read_bytes())


def test_a_swap_writes_the_change_and_the_next_revision(root):
    put(root, manifests.text_of(FIELDS, "[[a|summary]]\n"))
    assert swap(root)
    fields = document(root).fields
    assert all(fields[key] == value for key, value in FIELDS.items() if key not in ("memory_md_refs", "revision"))
    assert fields["memory_md_refs"] == LISTED and fields["revision"] == "2"
    assert fields["content_sha256"] == text_sha256(normalize("[[a|summary]]\n"))


HEAD = manifests.text_of(FIELDS, "").decode().split("---\n")[1]
UNKNOWN = """\
cssclasses:
  - wide
  - "narrow"
tags: [a, "b", 'c']
aliases: []
'quoted key': 'single ''quotes'''
empty:
date: 2026-03-28
folded: >-
  two
  lines
\u00fcber: "\u00e4 \u2603"
nested: {a: {b: 1}}
"""


def test_unknown_keys_survive_byte_for_byte(root):
    put(root, f"---\n{UNKNOWN}{HEAD}---\nbody\n".encode())
    before = document(root).fields
    assert swap(root)
    data = (root / PATH).read_bytes()
    assert UNKNOWN.rstrip("\n") in data.decode()
    moved = {key: document(root).fields[key] for key in ("memory_md_refs", "revision", "content_sha256")}
    assert document(root).fields == before | moved
    assert swap(root, lambda fields, body: (fields, body))
    assert (root / PATH).read_text() == data.decode().replace("revision: 2", "revision: 3")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r"), max_size=60))
@example(
    "\n\n  blanks \t\n---\nkind: not ours\n---\nform\x0cfeed, next\x85line, \u2028, bom\ufeff, NUL\x00\n<<<<<<< ours\n"
)
def test_any_body_survives(root, body):
    put(root, f"---\n{HEAD}---\n{body}".encode())
    assert swap(root)
    assert (root / PATH).read_bytes().split(b"\n---\n", 1)[1] == (body if body.endswith("\n") else body + "\n").encode()


@pytest.mark.parametrize(
    "raw",
    [
        b"", b"no frontmatter\n", b"---\nnever closed\n",
        f"---\n{HEAD}".encode(),
        f"---\n{HEAD}kind: twice\n---\n".encode(),
        f"---\n{HEAD}x: &a [*a]\n---\n".encode(),
        f"---\n<<<<<<< ours\n{HEAD}=======\n>>>>>>> theirs\n---\n".encode(),
        HEAD.replace('agent_id: "default"\n', "").join(["---\n", "---\n"]).encode(),
        HEAD.replace("revision: 1", "revision: many").join(["---\n", "---\n"]).encode(),
        b"---\nkind: \xff\n---\n",
        b"x" * (LIMIT + 1),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_left_alone(root, raw):
    put(root, raw)
    before = files.signature_of(os.stat(root / PATH))
    assert not swap(root)
    assert files.signature_of(os.stat(root / PATH)) == before and (root / PATH).read_bytes() == raw


def test_what_is_not_there_is_not_made(root):
    assert not swap(root)
    (root / PATH).symlink_to("/etc/passwd")
    assert not swap(root) and os.listdir(root / "memory") == [Path(PATH).name]


def editing(body):
    """A person's save: the manifest with this body, by rename, as editors do."""

    def save(root):
        raw = (root / PATH).read_bytes()
        (root / "swap").write_bytes(raw.split(b"\n---\n", 1)[0] + b"\n---\n" + body)
        os.replace(root / "swap", root / PATH)

    return save


def on_fsync(monkeypatch, act):
    """Somebody acts after our temporary file is durable and before it is swapped in."""
    real, calls = os.fsync, count(1)

    def fsync(descriptor):
        real(descriptor)
        act(next(calls))

    monkeypatch.setattr(os, "fsync", fsync)


def test_a_save_just_before_the_swap_is_changed_too(root, monkeypatch):
    writing.prepare(str(root))
    put(root, manifests.text_of(FIELDS, ""))
    on_fsync(monkeypatch, lambda call: editing(b"typed\n")(root) if call == 1 else None)
    swap(root)
    assert document(root).body == "typed\n" and document(root).fields["memory_md_refs"] == LISTED
    assert document(root).fields["revision"] == "2"


def test_a_race_that_is_never_won_is_given_up_and_loses_nothing(root, monkeypatch):
    writing.prepare(str(root))
    put(root, manifests.text_of(FIELDS, ""))
    saved = []

    def save(call):
        saved.append(b"typed %d\n" % call)
        editing(saved[-1])(root)

    on_fsync(monkeypatch, save)
    with pytest.raises(RevisionConflict) as raised:
        swap(root)
    monkeypatch.undo()
    assert raised.value.path == PATH and 5 <= len(saved) <= 20
    assert document(root).body.encode() == saved[-1] and document(root).fields["revision"] == "1"
    assert list(root.rglob("*.tmp")) == []
