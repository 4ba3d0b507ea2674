"""The planner, read as a specification: one line a case, every verdict and code, the first applies."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import pytest
from artifacts_fixture import (
    ABSENT,
    CAPTURED,
    SENTENCE,
    SESSION,
    compaction,
    content,
    manifest,
    path_for,
    stone,
    summary,
    token_for,
    tombstone,
    transcript,
)

from signet_sync.formats.artifact import Content
from signet_sync.formats.frontmatter import pack_seal, unpack_seal
from signet_sync.formats.snapshot import STRANGE_NAME, Found, Signature, Snapshot, Trouble
from signet_sync.sync import planner
from signet_sync.sync.index_records import Judgement, Known, NoiseRule
from signet_sync.sync.planner import (
    HINTS,
    JudgeContext,
    Tombstones,
    judge,
    judge_missing,
    judge_sealed,
    judge_tombstone,
)

NOW = "2026-03-30T00:00:00.000Z"
SIGNATURE = Signature(1, 2, 3, 4)
NOTHING = Tombstones()
KEY = "agent:main:main"
SECRET = "ghp_" + "aB3dE5gH7jK9mN1pQ3rS5tU7vW9xY1zA3bC5"


def bench(seals=(), tombstones=NOTHING):
    held = {seal.path: seal for seal in seals}
    return JudgeContext(tombstones, NoiseRule(), held.get, NOW)


def verdict(made, tombstones=NOTHING, seals=()):
    """The judgement of a made file `(name, bytes)`, or of `(name, Trouble)`."""
    name, raw = made
    found = raw if isinstance(raw, Trouble) else Found(raw, SIGNATURE)
    return judge(f"memory/{name}", found, bench(seals, tombstones))


def sealed(made):
    """The seal that the first sight of a file leaves, with its bytes."""
    judgement = verdict(made)
    return judgement.seal._replace(packed=pack_seal(judgement.raw))


def resaved(made):
    """As Obsidian saves properties: other quotes, bare timestamps, other order, empty for null."""
    name, raw = made
    head, body = raw.decode().removeprefix("---\n").split("\n---\n", 1)
    lines = []
    for line in reversed(head.split("\n")):
        key, _, value = line.partition(": ")
        plain = value.strip('"')
        lines.append(f"{key}:" if value == "null" else f"{key}: '{plain}'" if " " in plain else f"{key}: {plain}")
    return name, "\n".join(["---", *lines, "---", body]).encode()


def edited(made, old, new):
    name, raw = made
    assert old in raw
    return name, raw.replace(old, new)


def renamed(made, old, new):
    assert old in made[0]
    return made[0].replace(old, new), made[1]


def copied(made, mark):
    return made[0].removesuffix(".md") + mark, made[1]


def trouble(code):
    return content("summary")[0], Trouble(code, "it is so", SIGNATURE)


# ── files without a seal ──

FRESH = {
    # description: (file, verdict, code, notes)
    "a valid summary": (summary(), "indexed", "", []),
    "a valid transcript": (transcript(), "indexed", "", []),
    "a valid compaction": (compaction(), "indexed", "", []),
    "a valid manifest": (manifest(), "indexed", "", []),
    "with a session key": (summary(session_key=KEY), "indexed", "", []),
    "a key and a token made of the id, as Signet writes since 2026": (
        renamed(summary(session_key=KEY), token_for(session_key=KEY), token_for()), "indexed", "", []),
    "optional fields null": (
        summary(project=None, harness=None, started_at=None, ended_at=None, source_node_id=None), "indexed", "", []),
    "the same instant in another zone": (summary(captured_at=CAPTURED, ended_at="2026-03-28 11:30+01:30"),
        "indexed", "", []),
    "unknown keys": (summary(mood="fine", tags=["a", "b"]), "indexed", "", []),
    "re-saved by Obsidian": (resaved(summary()), "indexed", "", []),
    "noise is indexed": (summary(project="/tmp/x"), "indexed", "", []),
    "a text that normalises to the same": (edited(summary(), b"tries.\n", b"tries. \t\n\n\n"), "indexed", "", []),
    "a date in the future": (summary(captured_at="9999-12-31T23:59:59.999Z"), "indexed", "", []),
    "a byte order mark": (edited(summary(), b"---\nkind", b"\xef\xbb\xbf---\nkind"), "indexed", "", ["bom"]),
    "CRLF": ((summary()[0], summary()[1].replace(b"\n", b"\r\n")), "indexed", "", ["crlf"]),
    "a sentence that says nothing": (
        summary(memory_sentence="Worked on task."), "indexed", "", ["sentence-below-floor"]),
    "a secret in the text": (summary(body=f"the key {SECRET} here"), "indexed", "", ["secret-suspected"]),
    "a second secret beside a redacted one": (
        summary(body=f"[REDACTED:github-token] and {SECRET}"), "indexed", "", ["secret-suspected"]),
    "a secret in the sentence": (
        summary(memory_sentence=SENTENCE.replace("dead", SECRET)), "indexed", "", ["secret-suspected"]),
    "a secret in a manifest's text": (manifest(body=SECRET), "indexed", "", ["secret-suspected"]),
    "a wikilink that is not relative to the root": (
        summary(body=f"see [[{summary()[0]}]]"), "indexed", "", ["link-not-relative"]),
    "words about links in a transcript are no links": (
        transcript(body=f"see [[{summary()[0]}]]"), "indexed", "", []),
    "a manifest's hash is never checked": (manifest(content_sha256="nonsense", hash_scope="x"), "indexed", "", []),
    "a manifest of Signet, without revision or hash": (
        manifest(revision=ABSENT, content_sha256=ABSENT, hash_scope=ABSENT), "indexed", "", []),

    "a symlink or folder under an artifact's name": (trouble("not-a-file"), "invalid", "not-a-file", []),
    "a file that is too large": (trouble("too-large"), "invalid", "too-large", []),
    "a file that cannot be read": (trouble("unreadable"), "invalid", "unreadable", []),
    "a file that never holds still": (trouble("unsettled"), "invalid", "unreadable", []),
    "not UTF-8": (edited(summary(), b"five", b"f\xffve"), "invalid", "not-utf8", []),
    "text without frontmatter": ((summary()[0], b"# Mine\n"), "invalid", "frontmatter-missing", []),
    "a duplicate key": (
        edited(summary(), b"hash_scope", b'kind: "summary"\nhash_scope'), "invalid", "frontmatter-invalid", []),
    "another kind than the name's": (summary(kind="transcript"), "invalid", "kind-mismatch", []),
    "no kind": (summary(kind=ABSENT), "invalid", "field-missing", []),
    "a required field absent": (summary(memory_sentence=ABSENT), "invalid", "field-missing", []),
    "a hash that is none": (summary(content_sha256="abc"), "invalid", "field-invalid", []),
    "a transcript without its sanitizer": (transcript(sanitizer_version=ABSENT), "invalid", "field-missing", []),
    "a timestamp that is none": (summary(ended_at="yesterday"), "invalid", "field-invalid", []),
    "the first field that is wrong counts": (
        summary(project=["x"], memory_sentence=ABSENT), "invalid", "field-invalid", []),
    "another instant than the name's": (
        edited(summary(ended_at=None), b'captured_at: "2026-03-28T10:00:00.000Z"',
            b'captured_at: "2026-03-28T10:00:00.001Z"'), "invalid", "captured-at-mismatch", []),
    "a name whose time is none": (
        renamed(summary(), "2026-03-28T10-00-00.000Z", "2026-03-28Tnoon"), "invalid", "captured-at-mismatch", []),
    "an agent that may not be a folder": (summary(agent_id="../etc"), "invalid", "agent-invalid", []),
    "the name of another session": (
        renamed(summary(), token_for(), token_for(session_id="s-2")), "invalid", "token-mismatch", []),
    "an agent forged to be another": (
        edited(summary(), b'agent_id: "default"', b'agent_id: "scout"'), "invalid", "token-mismatch", []),
    "a link out of the workspace": (summary(manifest_path="memory/../../etc/passwd"), "invalid", "path-escape", []),
    "a link to a home": (manifest(summary_path="~/x.md"), "invalid", "path-escape", []),
    "another text than the hash's": (edited(summary(), b"five", b"four"), "invalid", "hash-mismatch", []),
}  # fmt: skip


@pytest.mark.parametrize(("made", "expected", "code", "notes"), FRESH.values(), ids=FRESH.keys())
def test_first_sight(made, expected, code, notes):
    judgement = verdict(made)
    assert (judgement.verdict, judgement.code) == (expected, code), judgement.message
    assert [note.code for note in judgement.notes] == notes
    assert (judgement.row is not None) == (expected == "indexed")
    immutable = not made[0].endswith("--manifest.md")
    assert (judgement.seal is not None) == (expected == "indexed" and immutable)
    assert not judgement.unlink
    if expected == "invalid":
        assert judgement.message and HINTS[code]
        assert judgement.signature == SIGNATURE and not judgement.links


def test_a_link_field_is_followed_from_the_root_however_it_is_written():
    name = manifest()[0]
    for written, target in {
        name: f"memory/{name}",
        f"./memory//{name}": f"memory/{name}",
        "MEMORY.md": "MEMORY.md",
    }.items():
        judgement = verdict(summary(manifest_path=written))
        assert ("manifest_path", target) in judgement.links
        assert [note.code for note in judgement.notes] == ["link-not-relative"] * (written != target)


def test_every_code_has_a_hint_and_stands_in_a_table():
    codes = {code for _, _, code, _ in FRESH.values() if code} | {named[1] for named in NAMES.values() if named}
    codes |= {"mutated", "replaced", "vanished", "tombstoned", "tombstone-invalid"}
    assert codes == set(HINTS)
    assert all(HINTS.values())


# ── the first that applies ──


@dataclass
class Fault:
    """One thing that is wrong with a summary; `step` orders them, equal steps exclude each other."""

    step: int
    code: str
    fields: dict[str, Any] = field(default_factory=dict)
    who: dict[str, str] = field(default_factory=dict)
    name: str = ""
    edit: tuple[bytes, bytes] = (b"", b"")
    trouble: str = ""
    removed: bool = False


FAULTS = [
    Fault(0, "foreign-name", name="a note.md"),
    Fault(1, "tombstoned", removed=True),
    Fault(2, "not-a-file", trouble="not-a-file"),
    Fault(2, "too-large", trouble="too-large"),
    Fault(2, "unreadable", trouble="unreadable"),
    Fault(3, "not-utf8", edit=(b"loop in", b"loop \xff in")),
    Fault(4, "frontmatter-missing", edit=(b"---\nkind", b"--\nkind")),
    Fault(4, "frontmatter-invalid", edit=(b"hash_scope", b"hash_scope: x\nhash_scope")),
    Fault(5, "kind-mismatch", fields={"kind": "compaction"}),
    Fault(6, "field-missing", fields={"memory_sentence": ABSENT}),
    Fault(6, "field-invalid", fields={"memory_sentence_quality": "great"}),
    Fault(7, "captured-at-mismatch", fields={"captured_at": "2026-03-28T10:00:01Z"}),
    Fault(8, "agent-invalid", who={"agent_id": "Not An Agent"}),
    Fault(9, "token-mismatch", fields={"session_key": None, "session_id": "s-other"}),
    Fault(10, "path-escape", fields={"manifest_path": "../x.md"}),
    Fault(11, "hash-mismatch", edit=(b"five tries", b"four tries")),
]


def faulty(*faults):
    who = {key: value for fault in faults for key, value in fault.who.items()}
    fields = {key: value for fault in faults for key, value in fault.fields.items()}
    name, raw = summary(**{**who, **{k: v for k, v in fields.items() if k not in ("session_id", "captured_at")}})
    for key in ("session_id", "captured_at"):
        if key in fields:
            old = {"session_id": SESSION, "captured_at": CAPTURED}[key]
            raw = raw.replace(f'\n{key}: "{old}"'.encode(), f'\n{key}: "{fields[key]}"'.encode())
    for fault in faults:
        raw = raw.replace(*fault.edit, 1) if fault.edit[0] else raw
    name = next((fault.name for fault in faults if fault.name), name)
    code = next((fault.trouble for fault in faults if fault.trouble), "")
    stones = [stone(**who), stone(token=token_for(**who), **who)] if any(fault.removed for fault in faults) else []
    return (name, Trouble(code, "so it is", SIGNATURE) if code else raw), Tombstones(stones)


@pytest.mark.parametrize(
    ("first", "second"),
    [pair for pair in combinations(FAULTS, 2) if pair[0].step < pair[1].step],
    ids=lambda fault: fault.code,
)
def test_of_two_faults_the_first_is_told(first, second):
    assert verdict(*faulty(first, second)).code == first.code
    assert verdict(*faulty(second, first)).code == first.code


# ── files with a seal ──

GOOD = summary(session_key=KEY)
SEALED = {
    # description: (the sealed file, the file now, verdict, code, notes)
    "the same bytes": (GOOD, GOOD, "indexed", "", []),
    "re-saved by Obsidian": (GOOD, resaved(GOOD), "indexed", "", ["reformatted"]),
    "unknown keys added": (GOOD, summary(session_key=KEY, mood="fine"), "indexed", "", ["reformatted"]),
    "the same instant in another zone": (
        GOOD, summary(session_key=KEY, ended_at="2026-03-28 12:00:00+02:00"), "indexed", "", ["reformatted"]),
    "one letter of the text": (GOOD, edited(GOOD, b"five", b"four"), "violation", "mutated", []),
    "another text with its own hash": (
        GOOD, summary(session_key=KEY, body="rewritten"), "violation", "mutated", []),
    "one microsecond": (
        GOOD, summary(session_key=KEY, ended_at="2026-03-28T10:00:00.000001Z"), "violation", "mutated", []),
    "cut in two": (GOOD, (GOOD[0], GOOD[1][: len(GOOD[1]) // 2]), "violation", "mutated", []),
    "frontmatter gone": (GOOD, (GOOD[0], b"# Mine\n"), "violation", "mutated", []),
    "unreadable now": (GOOD, (GOOD[0], trouble("unreadable")[1]), "invalid", "unreadable", []),
    "a symlink now": (GOOD, (GOOD[0], trouble("not-a-file")[1]), "violation", "mutated", []),
}  # fmt: skip


@pytest.mark.parametrize(("before", "now", "expected", "code", "notes"), SEALED.values(), ids=SEALED.keys())
def test_after_the_seal(before, now, expected, code, notes):
    seal = sealed(before)
    judgement = verdict(now, seals=[seal])
    assert (judgement.verdict, judgement.code) == (expected, code), judgement.message
    assert [note.code for note in judgement.notes] == notes
    assert judgement.seal is None
    original = verdict(before)
    assert judgement.row is not None
    if expected != "indexed":
        assert judgement.message
        assert (judgement.row, judgement.links) == (original.row, original.links)
        assert (judgement.found_sha256 != "") == (code == "mutated" and isinstance(now[1], bytes))
    assert judgement.row.content == original.row.content


def other_value(name, value):
    if name == "kind":
        return "compaction"
    if name == "memory_sentence_quality":
        return "fallback"
    if name == "content_sha256":
        return "0" * 64
    if name == "hash_scope":
        return "body-normalized-v2"
    if name.endswith("_at"):
        return "2026-03-28T09:59:00Z"
    return f"{value} and more" if value else "now something"


@pytest.mark.parametrize("name", Content.FIELDS)
def test_a_change_of_any_known_field_is_a_mutation(name):
    values = dict.fromkeys(Content.FIELDS, "")
    judgement = verdict(GOOD)
    values.update({key: getattr(judgement.row, key) for key in judgement.row._fields if key in values})
    if name in ("agent_id", "session_id", "captured_at"):
        old = {"agent_id": "default", "session_id": SESSION, "captured_at": CAPTURED}[name]
        changed = edited(GOOD, f'{name}: "{old}"'.encode(), f'{name}: "{other_value(name, old)}"'.encode())
    elif name == "session_key":
        changed = GOOD[0], summary(session_key="another")[1]
    else:
        changed = summary(session_key=KEY, **{name: other_value(name, values[name])})
    after = verdict(changed, seals=[sealed(GOOD)])
    assert (after.verdict, after.code) == ("violation", "mutated")


def test_a_seal_without_its_bytes_gets_them_back_from_an_unchanged_file_only():
    lost = sealed(GOOD)._replace(packed=None, file_sha256="")
    judgement = verdict(resaved(GOOD), seals=[lost])
    assert judgement.verdict == "indexed" and judgement.raw == resaved(GOOD)[1]
    assert judgement.seal == lost._replace(file_sha256=judgement.found_sha256)
    changed = verdict(edited(GOOD, b"five", b"four"), seals=[lost])
    assert (changed.code, changed.row, changed.seal) == ("mutated", None, None)
    damaged = sealed(GOOD)._replace(packed=b"not packed at all")
    assert unpack_seal(damaged.packed) is None and verdict(edited(GOOD, b"five", b"x"), seals=[damaged]).row is None


def test_a_seal_holds_what_was_first_seen():
    judgement = verdict(GOOD)
    seal = judgement.seal
    assert seal.sealed_at == NOW and judgement.raw == GOOD[1] and seal.kind == "summary"
    assert (seal.agent_id, seal.session_token, seal.session_id) == ("default", token_for(session_key=KEY), SESSION)
    assert unpack_seal(sealed(GOOD).packed) == GOOD[1]
    assert judge_sealed(sealed(GOOD), bench()).row == judgement.row
    assert judge_sealed(seal, bench()) is None


def test_a_manifest_is_never_sealed_and_may_change():
    changed = manifest(revision=7, memory_md_refs=["Session Ledger (Last 30 Days)"])
    seal = sealed(GOOD)._replace(path=f"memory/{changed[0]}")
    judgement = verdict(changed, seals=[seal])
    assert (judgement.verdict, judgement.seal) == ("indexed", None)
    assert (judgement.row.revision, judgement.row.refs) == (7, "Session Ledger (Last 30 Days)")


# ── gone ──

GONE = {
    # description: (path, seal, tombstones, vanishes)
    "a sealed summary": (f"memory/{GOOD[0]}", sealed(GOOD), [], True),
    "a sealed summary of a removed session": (f"memory/{GOOD[0]}", sealed(GOOD), [stone(session_key=KEY)], False),
    "another agent's tombstone": (
        f"memory/{GOOD[0]}", sealed(GOOD), [stone(agent_id="scout", token=token_for(session_key=KEY))], True),
    "a tombstone of other sessions of the token": (
        f"memory/{GOOD[0]}", sealed(GOOD), [stone(session_key=KEY, session_ids=("s-2",))], True),
    "never sealed": (f"memory/{GOOD[0]}", None, [], False),
    "a manifest": (path_for("manifest"), None, [], False),
    "a note": ("memory/a note.md", None, [], False),
}  # fmt: skip


@pytest.mark.parametrize(("path", "seal", "stones", "vanishes"), GONE.values(), ids=GONE.keys())
def test_a_file_that_is_gone(path, seal, stones, vanishes):
    seals = [seal] if seal is not None else []
    judgement = judge_missing(path, bench(seals, Tombstones(stones)))
    if vanishes:
        assert judgement == Judgement(path, "violation", "vanished", judgement.message)
        assert judgement.message
    else:
        assert judgement is None


# ── tombstones ──

WHOLE = [stone()]
SOME = [stone(session_ids=("s-1", SESSION))]
OTHERS = [stone(session_ids=("s-1", "s-2"))]
SCOUTS = [stone(agent_id="scout", token=token_for())]
BROKEN = (summary()[0], b"\xff\xfe nothing to read")
CONFLICT = copied(summary(), " (Ada's conflicted copy 2026-03-29).md")
REMOVED = {
    # description: (file, tombstones, names of unreadable tombstones, verdict, code)
    "agent and token": (summary(), WHOLE, [], "tombstoned", "tombstoned"),
    "a manifest too": (manifest(), WHOLE, [], "tombstoned", "tombstoned"),
    "one of its ids": (summary(), SOME, [], "tombstoned", "tombstoned"),
    "other ids of the token": (summary(), OTHERS, [], "indexed", ""),
    "the token of another agent": (summary(), SCOUTS, [], "indexed", ""),
    "edited since, but still the session": (edited(summary(), b"five", b"x"), WHOLE, [], "tombstoned", "tombstoned"),
    "without its agent: the token decides": (
        edited(summary(), b'agent_id: "default"\n', b""), SCOUTS, [], "tombstoned", "tombstoned"),
    "without its id: the token decides": (
        edited(summary(), f'session_id: "{SESSION}"\n'.encode(), b""), OTHERS, [], "tombstoned", "tombstoned"),
    "frontmatter unreadable: the token decides": (BROKEN, WHOLE, [], "tombstoned", "tombstoned"),
    "frontmatter unreadable, another agent's: the token decides": (BROKEN, SCOUTS, [], "tombstoned", "tombstoned"),
    "the file unreadable: the token decides": (trouble("unreadable"), WHOLE, [], "tombstoned", "tombstoned"),
    "a symlink under its name": (trouble("not-a-file"), WHOLE, [], "tombstoned", "tombstoned"),
    "still being written: not yet": (trouble("unsettled"), WHOLE, [], "invalid", "unreadable"),
    "renamed to another token, but still the session": (
        renamed(summary(), token_for(), token_for(session_id="s-2")), WHOLE, [], "tombstoned", "tombstoned"),
    "a token of the key, the tombstone of the id": (
        summary(session_key=KEY), [stone(token=token_for())], [], "tombstoned", "tombstoned"),
    "a conflict copy that carries the token": (CONFLICT, WHOLE, [], "tombstoned", "tombstoned"),
    "a conflict copy that cannot be read": ((CONFLICT[0], b"\xff"), WHOLE, [], "tombstoned", "tombstoned"),
    "a conflict copy of another of its sessions": (CONFLICT, OTHERS, [], "ignored", "conflict-copy"),
    "a conflict copy of another agent": (CONFLICT, SCOUTS, [], "ignored", "conflict-copy"),
    "a conflict copy of another token": (
        copied(summary(session_id="s-9"), ".sync-conflict-20260329.md"), WHOLE, [], "ignored", "conflict-copy"),
    "a tombstone that only its name tells": (summary(), [], [("default", token_for())], "tombstoned", "tombstoned"),
    "a nameless tombstone of another agent": (summary(), [], [("scout", token_for())], "indexed", ""),
}  # fmt: skip


@pytest.mark.parametrize(("made", "stones", "by_name", "expected", "code"), REMOVED.values(), ids=REMOVED.keys())
def test_files_of_removed_sessions(made, stones, by_name, expected, code):
    judgement = verdict(made, Tombstones(stones, by_name=by_name))
    assert (judgement.verdict, judgement.code) == (expected, code)
    assert judgement.unlink == (expected == "tombstoned")
    if expected == "tombstoned":
        assert judgement.row is None and judgement.seal is None


STONES = {
    # description: (name, bytes or trouble, verdict, code)
    "a valid tombstone": (*tombstone(), "tombstone", ""),
    "of some sessions": (*tombstone(session_ids=("s-1",)), "tombstone", ""),
    "of another agent than its name": (
        tombstone()[0], tombstone(agent_id="scout", token=token_for())[1], "invalid", "tombstone-invalid"),
    "without a reason": (*tombstone(reason=ABSENT), "invalid", "tombstone-invalid"),
    "another kind": (*tombstone(kind="summary"), "invalid", "tombstone-invalid"),
    "not UTF-8": (tombstone()[0], b"---\n\xff\n---\n", "invalid", "tombstone-invalid"),
    "unreadable": (tombstone()[0], Trouble("unreadable", "so", SIGNATURE), "invalid", "tombstone-invalid"),
    "a note": ("read me.md", b"mine", "ignored", "foreign-name"),
    "a conflict copy": (
        tombstone()[0].removesuffix(".md") + " 2.md", tombstone()[1], "ignored", "conflict-copy"),
    "a temporary file": (tombstone()[0] + ".tmp", b"", "ignored", "temporary"),
}  # fmt: skip


@pytest.mark.parametrize(("name", "raw", "expected", "code"), STONES.values(), ids=STONES.keys())
def test_files_among_the_tombstones(name, raw, expected, code):
    found = raw if isinstance(raw, Trouble) else Found(raw, SIGNATURE)
    judgement, read = judge_tombstone(f"memory/tombstones/{name}", found)
    assert (judgement.verdict, judgement.code) == (expected, code)
    assert (read is not None) == (expected == "tombstone")
    assert judgement.row is None and not judgement.unlink
    assert code == "" or judgement.message


# ── plan: names and signatures alone ──

ARTIFACT = GOOD[0]
NAMES = {
    # a name under memory/: (verdict, code); None: it is read
    ARTIFACT: None,
    "a note.md": ("ignored", "foreign-name"),
    ARTIFACT.upper(): ("ignored", "foreign-name"),
    ARTIFACT.removesuffix(".md") + " 2.md": ("ignored", "conflict-copy"),
    ARTIFACT.removesuffix(".md") + ".sync-conflict-20260329-101010-ABCDEFG.md": ("ignored", "conflict-copy"),
    ARTIFACT.replace("Z--", "Z (conflicted copy)--"): ("ignored", "conflict-copy"),
    f".{ARTIFACT}.icloud": ("ignored", "conflict-copy"),
    ARTIFACT + ".tmp": ("ignored", "temporary"),
}


def snapshot(*names, everything=True, ground="present", asked=(), odd=(), folder="memory"):
    files = {f"{folder}/{name}": SIGNATURE for name in names}
    return Snapshot(everything, ground, "the ground", files, dict(odd), frozenset(asked))


@pytest.mark.parametrize(("name", "expected"), NAMES.items(), ids=NAMES.keys())
def test_what_a_name_decides(name, expected):
    plan = planner.plan(snapshot(name), {}, NOTHING)
    assert plan.scanned == 1 and plan.gone == [] and plan.unchanged == 0
    if expected is None:
        assert plan.read == [f"memory/{name}"] and plan.judged == []
    else:
        assert plan.read == []
        assert [(j.verdict, j.code) for j in plan.judged] == [expected]
        assert plan.judged[0].message and plan.judged[0].signature == SIGNATURE


PATH = f"memory/{ARTIFACT}"
LOOKS = {
    # description: (what was known, tombstones, reread, is it read)
    "never seen": (None, NOTHING, (), True),
    "the same signature": (Known(SIGNATURE, "indexed", ""), NOTHING, (), False),
    "invalid, the same signature": (Known(SIGNATURE, "invalid", "hash-mismatch"), NOTHING, (), False),
    "mutated, the same signature": (Known(SIGNATURE, "violation", "mutated"), NOTHING, (), False),
    "another size": (Known(SIGNATURE._replace(size=9), "indexed", ""), NOTHING, (), True),
    "another time": (Known(SIGNATURE._replace(mtime_ns=9), "indexed", ""), NOTHING, (), True),
    "another inode": (Known(SIGNATURE._replace(inode=9), "indexed", ""), NOTHING, (), True),
    "vanished before": (Known(None, "violation", "vanished"), NOTHING, (), True),
    "due for reading": (Known(SIGNATURE, "indexed", ""), NOTHING, (PATH,), True),
    "tombstoned before, not deleted": (Known(SIGNATURE, "tombstoned", "tombstoned"), NOTHING, (), True),
    "a tombstone of its token came": (Known(SIGNATURE, "indexed", ""), Tombstones([stone(session_key=KEY)]), (), True),
    "a tombstone of another token": (Known(SIGNATURE, "indexed", ""), Tombstones([stone()]), (), False),
    "a tombstone told by its name": (
        Known(SIGNATURE, "indexed", ""), Tombstones(by_name=[("scout", token_for(session_key=KEY))]), (), True),
}  # fmt: skip


@pytest.mark.parametrize(("known", "stones", "reread", "is_read"), LOOKS.values(), ids=LOOKS.keys())
def test_what_is_read_again(known, stones, reread, is_read):
    plan = planner.plan(snapshot(ARTIFACT), {PATH: known} if known else {}, stones, reread=reread)
    # `unchanged` counts among the indexed files only, whatever else is left alone.
    counted = known is not None and known.verdict == "indexed"
    assert (plan.read, plan.unchanged) == (([PATH], 0) if is_read else ([], int(counted)))


def test_a_copy_or_temporary_file_is_read_only_where_its_token_was_removed():
    name = CONFLICT[0]
    assert planner.plan(snapshot(name), {}, Tombstones(WHOLE)).read == [f"memory/{name}"]
    assert planner.plan(snapshot(name), {}, Tombstones([stone(session_id="s-9")])).read == []
    known = {f"memory/{name}": Known(SIGNATURE, "ignored", "conflict-copy")}
    assert planner.plan(snapshot(name), known, Tombstones(WHOLE)).read == [f"memory/{name}"]
    left_alone = planner.plan(snapshot(name), known, NOTHING)
    assert (left_alone.read, left_alone.judged, left_alone.unchanged) == ([], [], 0)
    for passing in (copied(summary(), ".tmp")[0], f".syncthing.{name}.tmp"):
        assert planner.plan(snapshot(passing), {}, Tombstones(WHOLE)).read == [f"memory/{passing}"]
        assert planner.plan(snapshot(passing), {}, NOTHING).read == []


def test_what_is_no_file():
    odd = {
        PATH: "folder", "memory/link.md": "symlink", "memory/pipe": "named pipe", "memory/transcripts": "folder",
        "memory/b\\xff--x.md": STRANGE_NAME, "memory/tombstones": "it cannot be read",
    }  # fmt: skip
    plan = planner.plan(snapshot(odd=odd), {}, NOTHING)
    assert plan.read == [PATH]
    assert sorted((j.path, j.verdict, j.code, j.message) for j in plan.judged) == [
        ("memory/b\\xff--x.md", "ignored", "foreign-name", f"a {STRANGE_NAME}"),
        ("memory/link.md", "ignored", "foreign-name", "a symlink; it is not followed"),
    ]
    assert plan.scanned == 3


def test_tombstone_files_are_no_artifacts_and_no_witness_of_them():
    name = tombstone()[0]
    path = f"memory/tombstones/{name}"
    for known in ({}, {path: Known(SIGNATURE, "tombstone", "")}):
        plan = planner.plan(snapshot(name, folder="memory/tombstones"), known, NOTHING)
        assert (plan.read, plan.judged, plan.gone, plan.scanned) == ([], [], [], 1)
    known = {path: Known(SIGNATURE, "tombstone", ""), PATH: Known(SIGNATURE, "indexed", "")}
    plan = planner.plan(snapshot(name, folder="memory/tombstones"), known, NOTHING)
    assert plan.cliff is not None


def test_a_hint_tells_nothing_of_what_it_does_not_name():
    other = "memory/" + summary(session_id="s-2")[0]
    known = {PATH: Known(SIGNATURE, "indexed", ""), other: Known(SIGNATURE, "indexed", "")}
    plan = planner.plan(snapshot(everything=False, asked=[PATH]), known, NOTHING)
    assert plan.gone == [PATH]
    plan = planner.plan(snapshot(ARTIFACT, everything=False, asked=[PATH, "memory/unknown.md"]), known, NOTHING)
    assert (plan.gone, plan.unchanged) == ([], 1)
    assert planner.plan(snapshot(), known, NOTHING).gone == sorted(known)


# ── the cliff ──


def index_of(count):
    return {f"memory/{summary(session_id=f's-{n}')[0]}": Known(SIGNATURE, "indexed", "") for n in range(count)}


CLIFF = {
    # description: (known, files that are left, keywords of the plan, halts)
    "nothing known, nothing there": (0, 0, {}, False),
    "nothing known, no folder": (0, 0, {"ground": "missing"}, False),
    "everything there": (30, 30, {}, False),
    "no folder": (3, 0, {"ground": "missing"}, True),
    "a folder that may not be entered": (3, 0, {"ground": "refused"}, True),
    "an empty folder": (1, 0, {}, True),
    "one of two gone": (2, 1, {}, False),
    "19 of 30 gone": (30, 11, {}, False),
    "20 of 40 gone: exactly half": (40, 20, {}, False),
    "20 of 39 gone": (39, 19, {}, True),
    "21 of 40 gone": (40, 19, {}, True),
    "21 of 40 gone, 2 of them removed": (40, 19, {"covered_rows": 2}, False),
    "all gone, all of them removed": (30, 0, {"covered_rows": 30}, False),
    "all gone, all but one removed": (30, 0, {"covered_rows": 29}, True),
    "no folder, all removed": (5, 0, {"ground": "missing", "covered_rows": 5}, False),
    "accepted by a person": (40, 0, {"halts": False}, False),
    "accepted although there is no folder": (40, 0, {"halts": False, "ground": "missing"}, False),
    "a hint of many, of a large index": (40, 0, {"everything": False, "indexed": 1000}, False),
    "a hint of many, of a small index": (40, 0, {"everything": False, "indexed": 60}, True),
    "a hint of one, the only one": (1, 0, {"everything": False, "indexed": 1}, False),
    "a hint while the folder is gone": (1, 0, {"everything": False, "indexed": 9, "ground": "missing"}, True),
}


@pytest.mark.parametrize(("count", "left", "how", "halts"), CLIFF.values(), ids=CLIFF.keys())
def test_the_cliff(count, left, how, halts):
    known = index_of(count)
    names = [path.removeprefix("memory/") for path in list(known)[:left]]
    how = {"everything": True, "ground": "present", **how}
    shown = snapshot(*names, everything=how.pop("everything"), ground=how.pop("ground"), asked=known)
    plan = planner.plan(shown, known, NOTHING, **how)
    assert (plan.cliff is not None) == halts
    if plan.cliff is not None:
        total = how.get("indexed") or count
        assert plan.cliff.indexed == total and 0 < plan.cliff.would_remove <= total and plan.cliff.message


def test_files_that_are_there_but_new_or_broken_still_witness_the_folder():
    known = index_of(5)
    fresh = summary(session_id="s-new")[0]
    assert planner.plan(snapshot(fresh), known, NOTHING).cliff is None
    assert planner.plan(snapshot("a note.md"), known, NOTHING).cliff is not None


# ── properties ──


TEXT_FIELDS = ["session_key", "project", "harness", "source_node_id", "memory_sentence", "manifest_path"]


@pytest.mark.parametrize(("maker", "name"), [*((summary, name) for name in TEXT_FIELDS), (manifest, "summary_path")])
def test_no_secret_of_any_field_reaches_a_row(maker, name):
    made = maker(**{name: f"x {SECRET} y"})
    judgement = verdict(made)
    assert judgement.verdict == "indexed"
    assert maker is manifest or "secret-suspected" in [note.code for note in judgement.notes]
    assert SECRET not in repr((judgement.row, judgement.notes, judgement.links))
    # The file itself and its seal stay as they are.
    assert maker is manifest or judgement.raw == made[1]


def test_no_persons_words_stand_in_a_message():
    fields = ("kind", "hash_scope", "memory_sentence_quality", "started_at", "agent_id")
    wrong = [summary(**{name: SECRET}) for name in fields]
    for made in (*wrong, manifest(revision=SECRET), summary(manifest_path=f"../{SECRET}")):
        judgement = verdict(made)
        assert judgement.verdict == "invalid" and SECRET not in judgement.message


def test_bytes_that_an_older_version_sealed_are_sealed_again_with_all_fields():
    """Another machine may still run a version that did not know the fields of a repository."""
    made = summary(repository_root="/code/lantern", repository_origin=None, repository_path="")
    seal = sealed(made)
    older = seal._replace(digest="0" * 64)
    judgement = verdict(made, seals=[older])
    assert (judgement.verdict, judgement.seal) == ("indexed", seal._replace(packed=older.packed))
    assert verdict(made, seals=[seal]).seal is None
    other = summary(repository_root="/code/lantern2", repository_origin=None, repository_path="")
    assert verdict(other, seals=[older]).code == "mutated"
