"""What other rules of the sanitizer wrote stays as it is on disk; rows are derived again, and redacted text is known.

The other rules did not know `SECRET`, and named their marks otherwise.
"""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from session_inputs import FIRST, SECOND, SUMMARY, THIRD, body, end, moment, segments, written
from workbench import Vault, contents

from signet_sync.formats.body import normalize, text_sha256
from signet_sync.formats.frontmatter import parse, write
from signet_sync.sessions.live.turns import new_part
from signet_sync.sync.index_records import Judgement
from signet_sync.sync.store import artifacts
from signet_sync.sync.store.texts import keep
from signet_sync.text.redaction import alike, begins
from signet_sync.text.sanitizer import sanitize_line, sanitizer_stamp

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
        told["content_sha256"] = text_sha256(normalize(words))
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
        artifacts.insert_rows(database, judged, first)
        artifacts.set_sanitizer_of_rows(database, "sanitize_transcript_v0 0123456789abcdef")
        database.execute("delete from flow_results")


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
        (f"x\n{ONE}\ny", "x\n-----BEGIN X-----\nabc\ndef\ny", True),
        (f"x\n{ONE}", "x\n-----BEGIN X-----\nabc\ndef", True),
        (f"x\n{ONE}\ny", "x\n-----BEGIN X-----\nabc\ndef\nz", False),
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


def test_a_resumed_session_writes_the_rest_once(vault: Vault) -> None:
    end(vault, captured_at=moment(0), transcript=LEAKY)
    end(vault, captured_at=moment(1), transcript=LEAKY + SECOND)
    age(vault)
    old = segments(vault)
    assert SECRET in old[0] and "of-old" in old[0]
    for number in (2, 3):
        end(vault, captured_at=moment(number), transcript=LEAKY + SECOND + THIRD)
    assert segments(vault) == [*old, normalize(THIRD).lstrip("\n")]


@pytest.mark.parametrize("tail", [False, True], ids=["whole", "tail"])
def test_what_was_redacted_since_is_known(vault: Vault, tail: bool) -> None:
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


# ── rows, seals, the doctor ──


def test_rows_pages_and_full_text_follow_and_files_and_seals_stay(vault: Vault) -> None:
    end(vault, captured_at=moment(0), transcript=LEAKY, summary=LEAKY_SUMMARY)
    age(vault)
    seals = vault.rows("select * from seals order by path")
    before = contents(vault.memory)
    assert set(vault.hits(SECRET)) == {*written(vault, "summary"), *written(vault, "transcript")}
    done = vault.reindex()
    assert (done["problems"], vault.hits(SECRET)) == ([], [])
    assert vault.rows("select * from seals order by path") == seals
    assert contents(vault.memory) == before
    assert vault.dump() == vault.dump_from_scratch()
    ((stamp,),) = vault.rows("select version from derivers where name = 'artifacts'")
    assert stamp.startswith(sanitizer_stamp())


def test_rows_of_entities_follow_too(vault: Vault) -> None:
    assert vault.call("entity", "create", "user", "Ada").code == 0
    vault.session()
    vault.reindex()
    known = vault.rows("select * from garden_files order by path")
    with vault.database(readonly=False) as database, database.transaction():
        database.execute("update garden_files set text = ?, line = ?", (SECRET, SECRET))
        artifacts.set_sanitizer_of_rows(database, "sanitize_transcript_v0 0123456789abcdef")
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
