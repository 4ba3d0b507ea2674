"""What older rules of the sanitizer wrote is known again under those of today, and stays as it is on disk.

The older rules did not know `SECRET`, and named their marks otherwise.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from session_inputs import (
    FIRST,
    SECOND,
    SUMMARY,
    THIRD,
    body,
    compact,
    document,
    end,
    fields,
    journal,
    moment,
    refuse,
    segments,
    written,
)
from test_capture import Desk
from transcript_builder import TranscriptBuilder
from workbench import NOW, Vault, contents

from signet_sync.app.workspace import opened
from signet_sync.errors import UsageError
from signet_sync.formats.body import body_sha256, normalize
from signet_sync.formats.frontmatter import parse, write
from signet_sync.formats.turn import Turn
from signet_sync.sessions import journal as sessions_journal
from signet_sync.sessions import live_files
from signet_sync.sessions.live import append, settle
from signet_sync.sessions.states import new_part
from signet_sync.sessions.store import live
from signet_sync.settings.model import Settings
from signet_sync.sync.planner import Judgement
from signet_sync.sync.store import artifacts
from signet_sync.sync.store.bodies import keep
from signet_sync.text.redacted_match import alike, begins
from signet_sync.text.sanitizer import SANITIZER_VERSION, sanitize_line, sanitize_normalized, sanitizer_stamp

SECRET = "ghp_k3Xw9QvT2mLr7Zp4Bd8Yf6Nc1Hs5JgAe0uRi"
KEY = 'api_key = "q7Zp2Lm9Rt4Vb8Nc"'
LEAKY = f"{FIRST}\n## User\n\nhere is {SECRET} for now\n\n## Assistant\n\n{KEY} in src/queue.py\n"
LEAKY_SUMMARY = f"{SUMMARY}\n- lantern takes {SECRET} for src/queue.py.\n"
_MARK = re.compile(r"\[REDACTED:[a-z0-9-]+\]")
_OURS = sanitize_line(SECRET)


def older(text: str) -> str:
    """A text that was sanitized today, as the older rules left it."""
    return _MARK.sub(lambda mark: SECRET if mark[0] == _OURS else "[REDACTED:of-old]", text)


def age(vault: Vault) -> None:
    """Makes files, rows, seals and recorded answers those that the older rules left."""
    for path in vault.memory.glob("*--*.md"):
        if path.name.endswith("manifest.md"):
            continue
        source = parse(path.read_bytes())
        words = older(source.body)
        told = {name: older(value) if isinstance(value, str) else value for name, value in source.fields.items()}
        told["content_sha256"] = body_sha256(normalize(words))
        if "sanitizer_version" in told:
            told["sanitizer_version"] = "sanitize_transcript_v0"
        path.write_bytes(write(told, normalize(words)))
    with vault.database(readonly=False) as database, database.transaction():
        keep(database, [path for (path,) in database.execute("select path from seals")])
        database.execute("delete from seals")
    assert vault.reindex()["problems"] == []
    with vault.database(readonly=False) as database, database.transaction():
        told = [path for path in written(vault) if "--manifest" not in path]
        rows = artifacts.rows_by_path(database, told)
        known = {row.source_path: body(vault, row.source_path) for row in rows.values()}
        first = artifacts.next_row_id(database)
        artifacts.delete_rows(database, list(rows))
        judged = [Judgement(path, "indexed", row=row._replace(content=known[path])) for path, row in rows.items()]
        artifacts.insert_rows(database, judged, first, NOW)
        artifacts.set_sanitizer_of_rows(database, "sanitize_transcript_v0 0123456789abcdef")
        database.execute("update flow_results set request_sha256 = ?", ("0" * 64,))
        # Without a key, a flow is named by its words.
        database.execute("delete from flow_results where flow_key not in (?, ?)", (key("end"), key("compact")))


def key(kind: str) -> str:
    """The name of a flow that was given the key `k`."""
    return sha256(json.dumps(["key", kind, "default", "k"]).encode()).hexdigest()[:32]


@pytest.fixture
def vault(tmp_path: Path) -> Vault:
    return Vault(tmp_path / "vault")


@pytest.fixture
def talk(tmp_path: Path) -> TranscriptBuilder:
    return TranscriptBuilder(tmp_path / "transcripts")


@pytest.fixture
def desk(vault: Vault) -> Iterator[Desk]:
    with opened(str(vault.root), Settings()) as workspace:
        yield Desk(vault, workspace)


# ── texts ──

ONE, OTHER = "[REDACTED:one]", "[REDACTED:other]"


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (f"a {ONE} b", f"a {OTHER} b", True),
        (f"a {ONE} b", f"a {SECRET} b", True),
        (f'p: "{ONE},p1LmRt5"', f'p: "{OTHER}"', True),
        (f"Authorization: Bearer {ONE}", f"Authorization: {OTHER}", True),
        (f"a {ONE} b {SECRET} c", f"a {SECRET} b {OTHER} c", False),  # of two marks, each in one of them alone
        (f"a {ONE} b\nc", f"a {SECRET} b\nd", False),
        (f"a {ONE} b", f"c {ONE} b", False),
        ("a b", "a c", False),
        (f"x\n{ONE}\ny", "x\n-----BEGIN X-----\nabc\ndef\ny", True),
        (f"x\n{ONE}", "x\n-----BEGIN X-----\nabc\ndef", True),
        (f"x\n{ONE}\ny", "x\n-----BEGIN X-----\nabc\ndef\nz", False),
        (f"{ONE}", "", True),
        ("", "", True),
    ],
)
def test_texts_are_the_same_but_for_what_was_redacted(one: str, other: str, same: bool) -> None:
    assert alike(one, other) is same
    assert alike(other, one) is same


@given(st.lists(st.sampled_from(["a b", "", SECRET, f"x {SECRET} y", KEY, "# z"]), min_size=1), st.integers(0, 9))
def test_of_a_conversation_under_other_rules_the_rest_is_told(lines: list[str], cut: int) -> None:
    whole = normalize("\n".join(f"{number} {line}" for number, line in enumerate(lines)))
    kept = normalize("\n".join(whole.split("\n")[: cut + 1]))
    new, old = (text.replace(SECRET, ONE).replace(KEY, f"api_key = {OTHER}") for text in (whole, kept))
    rest = new_part(new, [kept.replace(KEY, f"api_key = {ONE}")])
    assert rest == new[len(old) :].lstrip("\n")
    assert begins(new, 0, old) == len(old)


# ── endings ──


@pytest.mark.parametrize("keyed", [{}, {"idempotency_key": "k"}], ids=["body", "key"])
@pytest.mark.parametrize("summary", [{}, {"summary": LEAKY_SUMMARY}], ids=["digest", "summary"])
def test_a_replay_of_an_ending_is_one(vault: Vault, keyed: dict[str, str], summary: dict[str, str]) -> None:
    given = {"captured_at": moment(0), "transcript": LEAKY, **keyed, **summary}
    first = end(vault, **given)
    age(vault)
    before = contents(vault.memory)
    again = end(vault, **given)
    assert again == {**first, "idempotent_replay": True, "redactions": again["redactions"]} | (
        {"sentence": again["sentence"], "sentence_quality": again["sentence_quality"]} if not keyed else {}
    )
    assert contents(vault.memory) == before


@pytest.mark.parametrize("keyed", [{}, {"idempotency_key": "k"}], ids=["body", "key"])
def test_a_replay_of_a_compaction_is_one(vault: Vault, keyed: dict[str, str]) -> None:
    given = {"captured_at": moment(0), "compaction": LEAKY_SUMMARY, **keyed}
    first = compact(vault, **given)
    age(vault)
    before = contents(vault.memory)
    again = compact(vault, **given)
    assert again["idempotent_replay"] and again["compaction"] == first["compaction"]
    assert contents(vault.memory) == before
    refused = "idempotency-conflict" if keyed else "name-taken"
    refuse(vault, refused, kind="compact", **{**given, "compaction": f"{LEAKY_SUMMARY}\nmore\n"})


@pytest.mark.parametrize(
    "other",
    [
        {"transcript": LEAKY + THIRD},
        {"summary": SUMMARY},
        {"project": "/home/ada/code/other"},
        {"captured_at": moment(7)},
        {"session_id": "5e551003-0000-4000-8000-000000000009"},
    ],
    ids=lambda other: next(iter(other)),
)
def test_other_content_under_the_key_is_a_conflict_still(vault: Vault, other: dict[str, str]) -> None:
    given = {"captured_at": moment(0), "transcript": LEAKY, "summary": LEAKY_SUMMARY, "idempotency_key": "k"}
    end(vault, **given)
    age(vault)
    refuse(vault, "idempotency-conflict", **{**given, **other})


def test_a_resumed_session_writes_the_rest_once(vault: Vault) -> None:
    end(vault, captured_at=moment(0), transcript=LEAKY)
    end(vault, captured_at=moment(1), transcript=LEAKY + SECOND)
    age(vault)
    old = segments(vault)
    assert SECRET in old[0] and "of-old" in old[0]
    for number in (2, 3):
        end(vault, captured_at=moment(number), transcript=LEAKY + SECOND + THIRD)
    assert segments(vault) == [*old, normalize(THIRD).lstrip("\n")]
    assert fields(vault, written(vault, "transcript")[-1])["sanitizer_version"] == SANITIZER_VERSION


def test_a_tail_told_again_is_known_and_one_under_the_same_rules_is_news(vault: Vault) -> None:
    tail = {"transcript": f"## User\n\nuse {SECRET} here\n", "transcript_is": "tail"}
    end(vault, captured_at=moment(0), **tail)
    end(vault, captured_at=moment(1), **{**tail, "transcript": "## User\n\nuse none of them here\n"})
    assert len(segments(vault)) == 2
    age(vault)
    end(vault, captured_at=moment(2), **tail)
    assert len(segments(vault)) == 2


@pytest.mark.parametrize("tail", [False, True], ids=["whole", "tail"])
def test_what_was_redacted_since_is_known_too(vault: Vault, tail: bool) -> None:
    given = {"transcript": LEAKY, **({"transcript_is": "tail"} if tail else {})}
    end(vault, captured_at=moment(0), **given)
    age(vault)
    assert vault.call("redact", "--all", "--yes", "--reason", "newer rules").code == 0
    kept = segments(vault)
    assert SECRET not in kept[0] and kept[0] != normalize(LEAKY)
    end(vault, captured_at=moment(1), **given)
    assert segments(vault) == kept
    end(vault, captured_at=moment(2), transcript=LEAKY + SECOND)
    assert segments(vault) == [*kept, normalize(SECOND).lstrip("\n")]


# ── what was cut off ──


def as_journalled(vault: Vault, answer: dict[str, Any], bodies: dict[str, str]) -> None:
    """The inputs of an ending as the older rules journalled them; whoever wrote them has died."""
    given = document(captured_at=moment(0))
    sessions_journal.begin(
        str(vault.state / "journal"),
        "0" * 32,
        {
            "v": 1,
            "kind": "end",
            "agent_id": "default",
            **{name: given.get(name) for name in ("session_id", "session_key", "harness", "started_at", "ended_at")},
            "project": f"/home/ada/{SECRET}/lantern",
            "captured_at": moment(0),
            "token": answer["session_token"],
            "manifest": answer["manifest"],
            "bodies": bodies,
            "proposal": None,
            "headline": None,
            "now": moment(0),
            "flow_key": "0" * 32,
            "request": "0" * 64,
            "redactions": {},
        },
    ).release()


@pytest.mark.parametrize("standing", [(), ("transcript",), ("transcript", "summary")], ids=["none", "one", "both"])
def test_an_ending_that_was_cut_off_comes_to_its_end(vault: Vault, standing: tuple[str, ...]) -> None:
    given = {"captured_at": moment(0), "transcript": LEAKY, "summary": LEAKY_SUMMARY}
    answer = end(vault, **given)
    age(vault)
    bodies = {kind: body(vault, answer[kind]) for kind in ("transcript", "summary")}
    for kind in {"transcript", "summary", "manifest"} - set(standing):
        (vault / answer[kind]).unlink()
    kept = contents(vault.memory)
    with vault.database(readonly=False) as database, database.transaction():
        keep(database, [answer[kind] for kind in bodies])
        for table in ("flow_results", "seals"):
            database.execute(f"delete from {table}")
    as_journalled(vault, answer, bodies)
    assert vault.reindex("--accept-removals")["problems"] == []
    assert journal(vault) == []
    assert kept.items() <= contents(vault.memory).items()
    for kind in {"transcript", "summary"} - set(standing):
        assert SECRET not in (vault / answer[kind]).read_text()
        assert "REDACTED" in body(vault, answer[kind])
    assert fields(vault, answer["transcript"])["sanitizer_version"] == "sanitize_transcript_v0" if standing else "v1"
    before = contents(vault.memory)
    assert end(vault, **given)["idempotent_replay"]
    assert contents(vault.memory) == before


# ── what harnesses wrote ──


@pytest.mark.parametrize("second", [2, 2.9, 3])
def test_a_transcript_that_went_on_is_captured_once(
    desk: Desk, talk: TranscriptBuilder, vault: Vault, second: float
) -> None:
    talk.user(f"use {SECRET} here", 1)
    talk.call(f"echo {SECRET}", 2)
    talk.result(f"{SECRET}\n{KEY}", 2)
    talk.assistant(f"{SECRET} was told, and {KEY}", second)
    desk.take(talk)
    age(vault)
    old = segments(vault)
    os.utime(talk.path)
    assert not desk.take(talk).wrote
    talk.assistant("and this is new", second)
    talk.user("so is this", 4)
    desk.take(talk)
    assert segments(vault)[:-1] == old
    new = segments(vault)[-1]
    assert "and this is new" in new and "so is this" in new and "REDACTED" not in new
    assert not desk.take(talk).wrote


def test_a_compaction_that_a_hook_told_of_is_kept_once(desk: Desk, talk: TranscriptBuilder, vault: Vault) -> None:
    talk.user("hello", 1)
    assert desk.compact(talk, 300, f"Summary: {SECRET} in src/queue.py, {KEY}").wrote
    age(vault)
    assert not desk.compact(talk, 600, f"Summary: {SECRET} in src/queue.py, {KEY}").wrote


def test_a_live_turn_told_again_is_a_duplicate(desk: Desk) -> None:
    with desk.workspace.database.transaction():
        old = live.LiveTurn(1, "user", f'use {SECRET}\n\napi_key = "[REDACTED:of-old]"', moment(0))
        live.buffer(desk.workspace.database, "default", "k", [old])
    turn = Turn(1, "user", f"use {SECRET}\n\n{KEY}", moment(0))
    answer = append(desk.workspace, [turn], agent_id="default", session_key="k")
    assert (answer["appended"], answer["duplicates"]) == (0, 1)
    with pytest.raises(UsageError):
        append(desk.workspace, [turn._replace(text="use it")], agent_id="default", session_key="k")


@pytest.mark.parametrize("told", [True, False], ids=["told", "lacking"])
def test_live_turns_stand_once_and_without_secrets(desk: Desk, vault: Vault, told: bool) -> None:
    text = f"use {SECRET} here\n\n{KEY}"
    identity = live_files.LiveIdentity("default", "k", "")
    with live_files.locked(desk.workspace.state.live, identity) as buffer:
        buffer.append([live.LiveTurn(1, "user", older(sanitize_normalized(text)), moment(0))])
    settle(desk.workspace)
    given = f"## User\n\n{text}\n" if told else FIRST
    end(vault, session_key="k", captured_at=moment(1), transcript=given)
    (segment,) = segments(vault)
    assert segment.count("here") == segment.count("api_key") == 1
    assert SECRET not in segment
    assert vault.rows("select count(*) from session_transcripts") == [(0,)]


# ── rows, seals, the doctor ──


def test_rows_pages_and_full_text_follow_and_files_and_seals_stay(vault: Vault) -> None:
    end(vault, captured_at=moment(0), transcript=LEAKY, summary=LEAKY_SUMMARY)
    age(vault)
    seals = vault.rows("select * from seals order by path")
    before = contents(vault.memory)
    assert vault.hits(SECRET) == written(vault, "summary") + written(vault, "transcript")
    done = vault.reindex()
    assert (done["problems"], vault.hits(SECRET)) == ([], [])
    assert vault.rows("select * from seals order by path") == seals
    assert contents(vault.memory) == before
    assert vault.dump() == vault.dump_from_scratch()
    ((stamp,),) = vault.rows("select version from derivers where name = 'artifacts'")
    assert stamp.startswith(sanitizer_stamp())


def test_a_look_at_a_few_files_derives_their_rows_anew(vault: Vault) -> None:
    end(vault, captured_at=moment(0), transcript=LEAKY)
    age(vault)
    end(vault, captured_at=moment(1), transcript=LEAKY)
    assert vault.hits(SECRET) == []


@pytest.mark.parametrize("options", [(), ("--index-only",)], ids=["writing", "index-only"])
def test_rows_of_entities_follow_too(vault: Vault, options: tuple[str, ...]) -> None:
    vault.session()
    assert vault.call("entity", "create", "user", "Ada").code == 0
    assert vault.call("entity", "set", "ada", "overview", "--text", "Ada works on lantern.").code == 0
    vault.reindex()
    known = vault.rows("select * from garden_files order by path")
    with vault.database(readonly=False) as database, database.transaction():
        database.execute("update garden_files set text = ?, line = ?", (SECRET, SECRET))
        artifacts.set_sanitizer_of_rows(database, "sanitize_transcript_v0 0123456789abcdef")
    vault.reindex(*options)
    vault.reindex()
    assert vault.rows("select * from garden_files order by path") == known


def test_the_doctor_counts_files_in_which_something_is_found_now(vault: Vault) -> None:
    def told() -> list[dict[str, Any]]:
        found = vault.call("doctor", "--json").json["findings"]
        return [finding for finding in found if finding["name"] == "secrets"]

    end(vault, captured_at=moment(0), transcript=LEAKY, summary=LEAKY_SUMMARY)
    assert told() == []
    age(vault)
    assert "not all of them were checked by this version" in told()[0]["message"]
    vault.reindex()
    (finding,) = told()
    assert finding["message"].startswith("files that seem to hold a secret: 2 (memory/2026-03-20T10-00-00.000Z--")
    assert "redact --all --reason REASON" in finding["remedy"]
    assert vault.call("redact", "--all", "--yes", "--reason", "newer rules").code == 0
    assert told() == []
