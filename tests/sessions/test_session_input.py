"""Documents that nobody should send, and vaults that cannot be written: one clear line, nothing half-written."""

from __future__ import annotations

import shutil
import unicodedata
from dataclasses import replace

import artifacts_fixture as made
import hypothesis
import pytest
from hypothesis import strategies as st
from session_inputs import SECOND, document, end, everything, fields, journal, moment, refuse, sound, written
from workbench import Vault

from signet_sync.errors import UsageError
from signet_sync.formats.artifact import read_artifact
from signet_sync.formats.body import HASH_SCOPE, fix_surrogates, js_trim
from signet_sync.formats.frontmatter import open_source, read, write
from signet_sync.formats.ids import derive_token, token_matches
from signet_sync.formats.timestamps import parse_instant
from signet_sync.sessions.input import session_input, write_identity
from signet_sync.sync import manifests

NOW_US = parse_instant(moment(0)) or 0
REFUSED = [
    ({"session_id": ...}, "session_id"), ({"session_id": ""}, "session_id"),
    ({"session_id": " \ufeff\t"}, "session_id"), ({"session_id": 7}, "session_id"),
    ({"session_id": None}, "session_id"),
    ({"session_id": "a\x00b"}, "session_id contains a NUL character"),
    ({"session_key": "a\x00b"}, "session_key contains a NUL character"),
    ({"project": "/a\x00b"}, "project contains a NUL character"),
    ({"harness": "a\x00b"}, "harness contains a NUL character"),
    ({"session_key": ["main"]}, "session_key"), ({"project": {"path": "/"}}, "project"), ({"harness": True}, "harness"),
    ({"idempotency_key": 1}, "idempotency_key"),
    ({"captured_at": "garbage"}, "captured_at is not an ISO 8601"),
    ({"captured_at": "2026-13-01T00:00:00Z"}, "captured_at"),
    ({"captured_at": "2026-03-20"}, "captured_at"),
    ({"captured_at": 1_774_000_000}, "captured_at"),
    ({"captured_at": "9999-12-31T23:59:59Z"}, "captured_at lies in the future (9999-12-31)"),
    ({"started_at": "9999-01-01T00:00:00Z"}, "started_at lies in the future"),
    ({"ended_at": "soon"}, "ended_at"), ({"transcript": ...}, "transcript"), ({"transcript": None}, "transcript"),
    ({"transcript": ["turn"]}, "transcript"),
    ({"summary": 5}, "summary"), ({"memory_sentence": 5}, "memory_sentence"),
    ({"transcript_is": "all"}, '"whole" or "tail"'),
    ({"transcript_is": 1}, '"whole" or "tail"'),
    ({"transcripts": "x"}, "unknown field 'transcripts'"),
    ({"b": 1, "a": 2}, "unknown fields 'a', 'b'"),
    ({"compaction": "x"}, "unknown field 'compaction'"),
]  # fmt: skip


@pytest.mark.parametrize(("given", "told"), REFUSED)
def test_a_field_that_cannot_be_is_named(given, told):
    with pytest.raises(UsageError) as refused:
        session_input(document(**given), now_us=NOW_US)
    assert refused.value.code == "input-invalid" and told in refused.value.message
    assert len(refused.value.message) < 300


def test_what_is_refused_leaves_nothing(vault):
    end(vault, transcript=SECOND)
    before = {path: found for path, found in everything(vault).items() if "/memory" in path}
    for given in ({"transcript": ""}, {"transcript": "\x00\x01", "summary": " \n"}, {"session_id": 7}):
        message = refuse(vault, "input-invalid", **{"session_id": "another", **given})["message"]
        assert "neither a transcript nor a summary" in message or "session_id" in message
        assert {path: found for path, found in everything(vault).items() if "/memory" in path} == before, given
        assert journal(vault) == [], given
    end(vault)


@pytest.mark.parametrize("agent", ["../x", "", "A", "-a", "a" * 65, "a/b", "a.b", None, 3, "ä", "a\n"])
def test_an_agent_id_that_is_no_name_is_refused(agent):
    with pytest.raises(UsageError, match="agent_id") as refused:
        session_input(document(agent_id=agent), now_us=NOW_US)
    assert refused.value.code == "agent-invalid"


def test_a_compaction_needs_words(vault):
    for given in ("", " \n\t", "\x00", None, ...):
        assert "compaction" in refuse(vault, "input-invalid", kind="compact", compaction=given)["message"]
    assert "unknown field 'transcript'" in refuse(vault, "input-invalid", kind="compact", transcript="x")["message"]


def test_what_no_file_may_hold_is_refused(vault, monkeypatch):
    monkeypatch.setenv("SIGNET_RECONCILE_MAX_FILE_BYTES", "8192")
    long = "".join(f"## User\n\nturn {n} of the queue\n\n" for n in range(400))
    for kind, given in (("end", {"transcript": long}), ("end", {"summary": long}), ("compact", {"compaction": long})):
        assert "8192 bytes" in refuse(vault, "input-invalid", kind=kind, **given)["message"]
    assert written(vault) == [] and journal(vault) == []
    end(vault, transcript=long[:4_000])


def test_what_is_too_long_is_cut_and_two_sessions_never_become_one(vault):
    long = "x" * 100_000
    one, other = (end(vault, session_id=long + tail, project=f"/{long}", harness=long) for tail in ("a", "b"))
    assert one["session_token"] != other["session_token"]
    head = fields(vault, one["transcript"])
    assert head["project"] == f"/{long}"[:16_000] and head["harness"] == long[:16_000]
    assert len(head["session_id"]) == 16_000 and head["session_id"] == one["session_id"]
    again = end(vault, session_id=long + "a", project="/elsewhere", transcript="# Next\n\nsrc/next.py")
    assert again["session_token"] == one["session_token"] and again["manifest"] == one["manifest"]
    assert len(vault.page()) < 10_000 and vault.call("check", "--json").json["ok"]


ODD = st.text(
    st.sampled_from('ab/\\"# \t\n\r\x01\x1b\x7f\x85\u2028\ufeff\ud83d\udc00\u202e\u200bé🦉'), min_size=1, max_size=12
)
LENGTHS = st.sampled_from([1, 1, 1_000, 3_000, 20_000])


@hypothesis.settings(max_examples=max(5, hypothesis.settings.default.max_examples // 3))
@hypothesis.given(*[st.builds(lambda text, times: (text * times)[:60_000], ODD, LENGTHS)] * 4)
def test_whatever_is_written_is_read_again_with_equal_values(session_id, session_key, project, harness):
    values = {"session_key": session_key, "project": project, "harness": harness, "transcript": "x"}
    said = session_input({"session_id": f"s{session_id}", **values}, now_us=0)
    names = write_identity(said)
    assert write_identity(replace(said, **names)) == names, "what is kept is kept as it is"
    moment = "2026-03-28T10:00:00.000Z"
    token = derive_token("default", names["session_key"], names["session_id"])
    manifest = f"memory/2026-03-28T10-00-00.000Z--{token}--manifest.md"
    common = {"agent_id": "a" * 64, **names, "captured_at": moment, "started_at": None, "ended_at": moment}
    sentence = "\ufeff" * 1_988 + " a" * 11 + "."
    told = {
        "manifest_path": manifest, "source_node_id": None, "content_sha256": "0" * 64, "hash_scope": HASH_SCOPE,
        "memory_sentence": sentence, "memory_sentence_version": "memory_sentence_v1", "memory_sentence_quality": "ok",
        "memory_sentence_generated_at": moment, "sanitizer_version": "sanitize_transcript_v1",
    }  # fmt: skip
    source = open_source(write({"kind": "transcript", **common, **told}, "said"))
    record = read_artifact("transcript", read(source.head))
    found = {name: getattr(record, name) for name in names}
    assert found == {name: text if text and js_trim(text) else None for name, text in names.items()}
    assert record.memory_sentence == sentence and token_matches(token, "default", record.session_key, record.session_id)
    links = {
        "summary_path": manifest, "transcript_path": manifest, "compaction_path": manifest,
        "memory_md_refs": ["x" * 80],
    }  # fmt: skip
    raw = manifests.text_of({"kind": "manifest", **common, **links, "updated_at": moment, "revision": 10**14}, "")
    assert {name: getattr(read_artifact("manifest", read(open_source(raw).head)), name) for name in names} == found
    if max(map(len, (project, harness))) < 500:
        assert [names["project"], names["harness"]] == [
            fix_surrogates(t) if js_trim(t) else None for t in (project, harness)
        ]


NOT_JSON = {
    "empty": (b"", "not JSON"), "cut": (b'{"session_id": "a", "tran', "not JSON"),
    "a list": (b"[]", "not a JSON object"), "a text": (b'"x"', "not a JSON object"),
    "null": (b"null", "not a JSON object"), "two documents": (b"{}{}", "not JSON"),
    "a huge number": (b'{"session_id": "a", "transcript": "b", "x": ' + b"9" * 5_000 + b"}", "not JSON"),
    "endless depth": (b"[" * 200_000, "not JSON"),
    "UTF-16": ('{"session_id": "a"}'.encode("utf-16"), "not UTF-8"),
    "Latin-1": (b'{"session_id": "caf\xe9", "transcript": "x"}', "not UTF-8"),
    "NUL": (b"\x00\x00", "not JSON"),
}  # fmt: skip


def test_what_is_no_document_is_refused(vault):
    for name, (raw, told) in NOT_JSON.items():
        error = refuse(vault, "input-invalid", raw=raw)
        assert told in error["message"], (name, error)
        assert not [word for word in ("Python", "sys.", "codec") if word in error["message"]], (name, error)
        assert written(vault) == [], name


def test_a_vault_whose_files_are_away_is_not_written_into(vault):
    end(vault)
    vault.memory.rename(vault.root / "away")
    for empty in (False, True):
        if empty:
            vault.memory.mkdir()
        error = refuse(vault, "halted", 5, session_id="another")
        assert error["path"] == "memory" and "bring memory/ back" in error["hint"]
        assert written(vault) == [] and journal(vault) == []
    vault.memory.rmdir()
    (vault.root / "away").rename(vault.memory)
    end(vault, session_id="another")
    sound(vault)


NAME = "tab\tnl\nnel\x85ls\u2028\x1b[31mX\u202eb\u200b\x7f [[x]] <!-- signet:end -->"


def printed(vault: Vault, *words: str) -> str:
    """What a command tells a person: of what is in a name nothing moves a cursor, hides or turns a line around."""
    answer = vault.call(*words)
    assert answer.code == 0, answer
    kinds = ("Cc", "Cf", "Zl", "Zp", "Cs")
    odd = {c for c in answer.out + answer.err if c != "\n" and unicodedata.category(c) in kinds}
    assert not odd, (words, odd, answer)
    return answer.out + answer.err


def test_a_name_of_any_characters_is_kept_exactly_and_shown_cleaned(vault):
    who = {"session_id": NAME, "session_key": f"k{NAME}", "project": f"/home/u/{NAME}", "harness": NAME}
    answer = end(vault, **who, transcript="# Zebrafish\n\nsrc/zebra.py")
    head = fields(vault, answer["manifest"])
    assert {name: head[name] for name in who} == who
    assert vault.call("open", NAME, "--json").json["session_key"] == who["session_key"]
    token = answer["session_token"]
    for words in (["open", NAME], ["expand", token], ["recall", "--words", "zebrafish"], ["recall", "zebrafish"]):
        assert printed(vault, *words)
    for words in (["status"], ["context"], ["render"], ["check"], ["doctor"]):
        printed(vault, *words)
    printed(vault, "remove", NAME, "--reason", "private", "--yes")
    assert not vault.hits("zebrafish")
    refuse(vault, "removed-session", **who, transcript="# Zebrafish")
    printed(vault, "remove", "--undo", NAME, "--yes")
    end(vault, **who, transcript="# Zebrafish\n\nsrc/zebra.py")
    sound(vault)


def test_a_removal_of_some_sessions_never_becomes_one_of_all(vault):
    """A tombstone that nobody could read would cover every session of its token."""
    end(vault, session_key="main", transcript="# Zebrafish\n\nsrc/zebra.py")
    earlier = tuple(f"{number}{'x' * 15_000}" for number in range(4))
    vault.put(made.tombstone(session_key="main", session_ids=earlier), "memory/tombstones")
    vault.reindex()
    end(vault, session_id="y" * 15_000, session_key="main", transcript="# Zebrafinch\n\nsrc/zebra.py")
    answer = vault.call("remove", "y" * 15_000, "--reason", "private", "--yes")
    assert answer.code == 2 and "too long for one tombstone" in answer.err
    shutil.rmtree(vault.state)
    vault.reindex()
    assert vault.hits("zebrafish") and vault.hits("zebrafinch")
