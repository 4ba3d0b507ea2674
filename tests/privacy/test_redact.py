"""Redaction: secrets leave sealed files to the last byte, the files stay valid, and every machine follows."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random

import artifacts_fixture as made
import pytest
from hypothesis import given
from hypothesis import strategies as st
from invented_secrets import some
from workbench import NOW, Vault, cast, numbered, path_of

from signet_sync.formats.body import normalize, text_sha256
from signet_sync.formats.frontmatter import parse
from signet_sync.text.redaction import SECRETS, is_redaction, redacts, rewrite_artifact
from signet_sync.text.sanitizer import sanitize_line, sanitize_transcript_v2

DEAD = 4_194_305  # beyond the highest id that a process can have
SECRET = "ghp_" + some(Random(11), 36)
OTHER = "AKIA" + some(Random(5), 16).upper()
MARK = sanitize_transcript_v2(SECRET)
RULE = MARK.removeprefix("[REDACTED:").removesuffix("]")


# ── the rule by which a redaction is known ──

_TEXT = st.text(st.sampled_from("ab \n[]:") | st.characters(), max_size=12)
_MARKS = st.sampled_from(["[REDACTED:removed]", "[REDACTED:github-token]"])


@given(st.lists(st.tuples(_TEXT, _TEXT.filter(bool), _MARKS), min_size=1, max_size=5), _TEXT)
def test_marks_in_the_place_of_text_are_a_redaction(parts, end):
    before = "".join(kept + gone for kept, gone, _ in parts) + end
    after = "".join(kept + mark for kept, _, mark in parts) + end
    assert before == after or is_redaction(before, after)
    assert not is_redaction(before, before) and not is_redaction(after, after)


@given(st.text(max_size=30), st.sampled_from("aZ9é.[-ж"))
def test_whatever_else_changed_is_none(text, letter):
    """A letter more, a letter less, or a mark where nothing was taken away."""
    before = f"one {text} two secret three"
    after = f"one {text} two [REDACTED:x] three"
    assert is_redaction(before, after)
    assert not is_redaction(before, f"{letter}{after}") and not is_redaction(before, f"{after}{letter}")
    assert not is_redaction("one two", "one [REDACTED:x]two")
    assert not is_redaction(before, after.replace("three", "thre"))


@given(
    st.text(max_size=200)
    | st.sampled_from([f"x\x00 {SECRET}\x07\n", f"password: {SECRET} \n\n", f"{SECRET}\t\n{OTHER}"])
)
def test_what_the_sanitizer_made_of_a_body_is_known_for_a_redaction(text):
    before = normalize(text)
    after = sanitize_transcript_v2(before)
    if "[REDACTED:" in after.replace("[REDACTED:", "", before.count("[REDACTED:")):
        assert is_redaction(before, after)


@pytest.mark.parametrize("kind", ["summary", "transcript", "compaction"])
def test_a_file_written_anew_is_valid_and_known_and_nothing_else_is_lost(kind):
    who = numbered(1) | {"body": f"# One\n\nkey: {SECRET}\n\nkept", "memory_sentence": f"It said {OTHER} once for all."}
    _, raw = made.content(kind, **who, project=f"https://u:{some(Random(1), 12)}@host/x", mine=f"kept {SECRET}")
    found = rewrite_artifact(kind, raw, SECRETS)
    assert found is not None and SECRET.encode() not in found.raw and OTHER.encode() not in found.raw
    assert redacts(raw, found.raw) and not redacts(found.raw, raw) and not redacts(raw, raw)
    document = parse(found.raw)
    assert document.fields["content_sha256"] == text_sha256(normalize(document.body))
    assert b"mine: " in found.raw and "kept" in document.body and found.rules[RULE] >= 2
    assert rewrite_artifact(kind, found.raw, SECRETS) is None
    # Fields by which it is called, a changed word, a longer text: those are no redactions.
    for old, new in ((b"kept", b"mine"), (who["session_id"].encode(), b"other"), (b"# One", b"# One two")):
        assert not redacts(raw, found.raw.replace(old, new, 1)) or old == b"kept"


# ── in a vault ──


def leaks(*places: Path, word: str = SECRET) -> list[str]:
    return [
        str(path)
        for place in places
        for path in place.rglob("*")
        if path.is_file() and (word.encode() in path.read_bytes() or word in path.name)
    ]


def packed(vault: Vault) -> bytes:
    """The sealed bytes of the first session as the database holds them: no search for words finds anything in them."""
    rows = vault.rows("select packed from seals where session_id = ? order by path", numbered(1)["session_id"])
    return b"".join(one for (one,) in rows)


def held(vault: Vault, old: bytes, but: bytes = b"") -> list[bytes]:
    """Pieces of some bytes that a file of the state folder holds, and other bytes do not."""
    raws = [path.read_bytes() for path in vault.state.rglob("*") if path.is_file()]
    pieces = [old[at : at + 16] for at in range(0, len(old) - 16, 8)]
    return [piece for piece in pieces if piece not in but and any(piece in raw for raw in raws)]


def of_a_secret(vault: Vault) -> None:
    secret(vault)
    vault.indexed(2, 3).hits("number1x")


@pytest.fixture(scope="module")
def mould(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], Vault]:
    return cast(tmp_path_factory.mktemp("mould"), of_a_secret)


@pytest.fixture
def vault(mould: Callable[[Path], Vault], tmp_path: Path) -> Vault:
    """Three sessions; the first is another program's, and holds a secret in body, sentence and manifest."""
    return mould(tmp_path)


def secret(vault: Vault, number: int = 1) -> dict[str, str]:
    who = numbered(number)
    paths = vault.session(number, **who | {"body": who["body"] + f"\nThe token is {SECRET} for now.\n"})
    said = f"In lantern src/queue.py got {SECRET} so that the retry loop ends soon."
    vault.put(made.summary(**who | {"memory_sentence": said}))
    manifest = vault / paths["manifest"]
    manifest.write_bytes(manifest.read_bytes() + f"my own words, and {SECRET} among them\n".encode())
    return paths


def redact(vault: Vault, *given: str, code: int = 0):
    answer = vault.call("redact", *given, "--reason", "it leaked", "--yes", "--json", "--now", NOW)
    assert answer.code == code, answer
    return answer.json


def test_a_secret_leaves_files_seals_copies_and_backups(vault, tmp_path):
    """Also kept and conflict copies, a database that was set aside, a backup with the bytes of seals, leftovers."""
    summary = vault / path_of("transcript")
    for ending in (" (1).md", ".sync-conflict-20260329-101010-ABCDEFG.md"):
        vault.put((summary.stem + ending, summary.read_bytes()))
    (vault / "MEMORY.user-20260328T101010000Z.md").write_text(f"what I said: {SECRET}, and more\n")
    shutil.copy(vault.db, f"{vault.db}.corrupt-20260101T000000Z")
    assert vault.call("backup", "create").code == 0
    raw = (vault / path_of("summary")).read_bytes()
    for place in (vault / f".signet/tmp/{DEAD}-{'0' * 32}.tmp", vault.state / f"backups/native-20260328.db.{DEAD}.tmp"):
        place.write_bytes(raw)
    (
        vault / f".signet/tmp/{DEAD}-{'0' * 32}-{'1' * 16}-{'2' * 16}-{path_of('summary').replace('/', '%2F')}.tmp"
    ).write_bytes(raw)
    old = packed(vault)
    before = {kind: (vault / path_of(kind)).read_bytes() for kind in ("summary", "transcript", "manifest")}
    dry = vault.call("redact", numbered(1)["session_id"], "--dry-run", "--json")
    assert dry.code == 0 and SECRET not in dry.out
    assert {one["path"]: one["rules"] for one in dry.json["redacted"]} == {path_of(kind): {RULE: 1} for kind in before}
    assert leaks(vault.root) and {kind: (vault / path_of(kind)).read_bytes() for kind in before} == before

    document = redact(vault, numbered(1)["session_id"])
    assert [one["path"] for one in document["redacted"]] == sorted(path_of(kind) for kind in before)
    assert document["left"] == [] and document["git_history"] == "no-repository"
    assert leaks(vault.root, vault.state) == []
    assert any(old[at : at + 16] not in packed(vault) for at in range(0, len(old) - 16, 8))
    # Seals of other sessions end alike.
    others = b"".join(one for (one,) in vault.rows("select packed from seals"))
    assert held(vault, old) and held(vault, old, but=packed(vault) + others) == []
    assert f"what I said: {MARK}, and more\n".encode() == (vault / "MEMORY.user-20260328T101010000Z.md").read_bytes()
    assert f"my own words, and {MARK} among them" in (vault / path_of("manifest")).read_text()
    assert {code for _, code in vault.problems(vault.reindex()).values()} == {"conflict-copy"}
    assert vault.dump() == vault.dump_from_scratch()
    assert vault.hits("number1x") and vault.call("check").code == 0
    assert redact(vault, "--all")["redacted"] == []
    ((said,),) = vault.rows("select at || ' ' || reason from redactions where path = ?", path_of("summary"))
    assert said.startswith(NOW) and said.endswith(": it leaked") and RULE in said
    # What it says survives a lost database; an open violation is healed from the new seal.
    vault.reindex("--full")
    (vault / path_of("transcript")).write_bytes(b"gone wrong")
    vault.reindex()
    assert vault.call("violations", "restore", "--all", "--yes").code == 0
    assert leaks(vault.root, vault.state) == [] and vault.reindex()["counts"]["violation"] == 0
    for place in vault.db.parent.glob(f"{vault.db.name}*"):
        place.unlink()
    vault.reindex()
    assert vault.rows("select count(*) from redactions") == [(3,)]


def test_the_session_of_a_path_and_all(vault):
    secret(vault, 4)
    assert {one["path"] for one in redact(vault, path_of("summary", 4))["redacted"]} == {
        path_of(kind, 4) for kind in ("summary", "transcript", "manifest")
    }
    found = redact(vault, "--all")["redacted"]
    assert len(found) == 3 and leaks(vault.root, vault.state) == []


def test_what_cannot_be_redacted_says_why(vault):
    """A changed file is a person's to settle; what a file is called by stays; names that mean nothing."""
    path = vault / path_of("transcript")
    path.write_bytes(path.read_bytes().replace(b"Lantern", b"Lamp"))
    document = redact(vault, numbered(1)["session_id"], code=1)
    assert [one["path"] for one in document["left"]] == [path_of("transcript")]
    assert "restore or accept" in document["left"][0]["hint"]
    assert leaks(vault.root) == [str(path)]
    vault.put(made.summary(session_id=f"token={SECRET}", captured_at="2026-03-01T10:00:00.000Z"))
    path.unlink()
    path.symlink_to(vault / path_of("manifest"))
    vault.reindex()
    left = {one["path"]: one["message"] for one in redact(vault, "--all", code=1)["left"]}
    assert any("contains a secret" in message for message in left.values()) and path_of("transcript") in left
    for name in ("memory/2026-03-28T10-00-00.000Z--aaaaaaaaaaaaaaaa--summary.md", "nobody"):
        answer = vault.call("redact", name, "--reason", "x", "--yes")
        assert answer.code == 2 and "no session" in answer.err
    assert vault.call("redact", "--all").code == 2 and vault.call("redact", "--reason", "x").code == 2
    path.unlink()
    assert vault.call("violations", "restore", "--all", "--yes").code == 0
    assert vault.call("redact", "--all", "--reason", "x").code == 2, "asks first"


def test_a_vanished_file_is_redacted_in_its_seal(vault):
    (vault / path_of("transcript")).unlink()
    vault.reindex()
    redact(vault, "--all")
    assert vault.call("violations", "restore", path_of("transcript")).code == 0
    assert leaks(vault.root, vault.state) == [] and vault.reindex()["counts"]["violation"] == 0


def test_an_older_version_that_comes_back_is_redacted_again_and_an_edit_is_not(vault):
    old = {kind: (vault / path_of(kind)).read_bytes() for kind in ("summary", "transcript")}
    redact(vault, "--all")
    for kind, raw in old.items():
        (vault / path_of(kind)).write_bytes(raw)
    assert vault.call("check").code == 0
    assert vault.reindex()["counts"]["violation"] == 0 and leaks(vault.root, vault.state) == []
    # Somebody who writes into the mark makes no hash fit: that is a change like any other.
    path = vault / path_of("transcript")
    path.write_bytes(path.read_bytes().replace(MARK.encode(), b"mine"))
    assert vault.reindex()["counts"]["violation"] == 1 and b"The token is mine" in path.read_bytes()


def test_another_machine_follows_by_the_files_alone(vault, tmp_path, monkeypatch):
    """It has the old text under seal; it keeps nothing of it, and `violations restore` has nothing to restore."""
    there = Vault(tmp_path / "there" / "vault")
    shutil.rmtree(there.memory)
    here = os.environ["SIGNET_STATE"]
    shutil.copytree(vault.root / "memory", there.memory)
    monkeypatch.setenv("SIGNET_STATE", str(tmp_path / "there" / "state"))
    there.reindex()
    (there.root / "MEMORY.user-20260328T101010000Z.md").write_text(f"{SECRET}\n")
    assert leaks(there.root)
    monkeypatch.setenv("SIGNET_STATE", here)
    redact(vault, "--all")
    shutil.copytree(vault.root / "memory", there.memory, dirs_exist_ok=True)
    monkeypatch.setenv("SIGNET_STATE", str(tmp_path / "there" / "state"))
    assert there.reindex()["counts"]["violation"] == 0
    assert leaks(there.root, there.state) == []
    assert there.call("violations", "restore", "--all", "--yes", "--json").json["restored"] == []
    assert there.rows("select count(*) from redactions") == [(2,)]
    assert there.dump() == there.dump_from_scratch()


def test_a_sentence_that_was_answered_is_redacted_in_the_answer(vault):
    said = f"In lantern src/queue.py got {SECRET} so that the retry loop ends soon."
    with vault.database(readonly=False) as database, database.transaction():
        session = numbered(1)["session_id"]
        row = ("default", "k", "end", "r", made.token_for(session_id=session), session)
        database.execute(
            "insert into flow_results(agent_id, flow_key, kind, request_sha256, session_token, session_id, answer, at)"
            " values(?, ?, ?, ?, ?, ?, ?, ?)",
            (*row, json.dumps({"sentence": sanitize_line(said), "more": 1}), NOW),
        )
    redact(vault, "--all")
    ((answer,),) = vault.rows("select answer from flow_results")
    assert json.loads(answer)["sentence"] == sanitize_line(said)
