"""A removed session's words in other sessions: listed, asked about, and taken out to the last byte."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import artifacts_fixture as made
import pytest
from hypothesis import given
from hypothesis import strategies as st
from workbench import NOW, Vault, numbered, sampled

from signet_sync.memories.store.session_texts import SessionText
from signet_sync.privacy.quotes import Quotes
from signet_sync.text.redaction import REMOVED, is_redaction

ONE = "5e551001-0000-4000-8000-00000000000a"
TWO = "5e551002-0000-4000-8000-00000000000b"
# What the first session said, a line of words and a short one.
SAID = "The spare key of the xqlantern lies under the third stone behind the mill."
SHORT = "qwzmillstone: ask Ada"
WORDS = ("xqlantern", "qwzmillstone")


def claude(session: str, *records: dict[str, object], day: int) -> bytes:
    """A transcript of Claude Code."""
    lines = []
    for number, record in enumerate(records):
        kind = record.pop("type")
        at = f"2026-03-{day:02d}T10:00:{number:02d}.000Z"
        own = {"sessionId": session, "uuid": f"u{number}", "cwd": "/home/ada/mill", "timestamp": at}
        more = {key: record.pop(key) for key in ("toolUseResult",) if key in record}
        own["parentUuid"] = f"u{number - 1}" if number else None
        message = {"role": kind, "content": record["content"]}
        lines.append(json.dumps({"type": kind, **own, "message": message, **more}))
    return ("\n".join(lines) + "\n").encode()


def first() -> bytes:
    return claude(
        ONE,
        {"type": "user", "content": f"Where do we keep it?\n\n- Here:\n\n  {SAID} So it is.\n{SHORT}"},
        {"type": "assistant", "content": [{"type": "text", "text": "Noted, and I will not tell anybody about that."}]},
        day=20,
    )


def answer() -> str:
    """What Claude Code and Codex hand the model of an answer of ours: its structuredContent, without marks."""
    return json.dumps({"notice": "Stored text", "hits": [{"text": f"{SAID}\n{SHORT}", "path": "memory/x.md"}]})


def second() -> bytes:
    call = {"type": "tool_use", "id": "t1", "name": "mcp__signet-sync__memory_recall", "input": {"query": "the key"}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": answer()}]}
    structured = {"structuredContent": json.loads(answer())}
    return claude(
        TWO,
        {"type": "user", "content": "Please find out where number2x is written down by us."},
        {"type": "assistant", "content": [call]},
        {"type": "user", "content": [result], "toolUseResult": structured},
        {"type": "assistant", "content": [{"type": "text", "text": f"Here it is. {SAID} Sofas are there, number2x."}]},
        day=21,
    )


@pytest.fixture
def vault(tmp_path: Path) -> Vault:
    found = Vault(tmp_path / "vault")
    found.session(9)
    return found


def take_in(vault: Vault) -> None:
    """The two transcripts, from where the harnesses keep them."""
    for session, raw in ((ONE, first()), (TWO, second())):
        place = Path(os.environ["HOME"]) / f".claude/projects/-home-ada-mill/{session}.jsonl"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(raw)
        done = vault.call("import", "claude-code", str(place), "--json")
        assert done.code == 0 and len(done.json["segments"]) == 1, done
        place.unlink()
    vault.reindex(now="2026-03-29T12:00:00.000Z")


def leaks(vault: Vault, *words: str) -> list[tuple[str, str]]:
    places = [path for place in (vault.root, vault.state) for path in place.rglob("*") if path.is_file()]
    return [(path.name, word) for path in places for word in words if word.encode() in path.read_bytes().lower()]


def remove(vault: Vault, *more: str, code: int = 0):
    done = vault.call("remove", ONE, "--reason", "private", "--yes", "--json", "--now", NOW, *more)
    assert done.code == code, done
    return done.json


def test_a_removal_asks_what_becomes_of_quotes_and_takes_them_out(vault):
    take_in(vault)
    (vault / "MEMORY.user-20260328T101010000Z.md").write_text(f"- {SAID} So it is.\nmine\n")
    dry = vault.call("remove", ONE, "--dry-run", "--json").json
    quoting = sorted(
        f"memory/{path.name}"
        for path in vault.memory.glob("*--*--*.md")
        if "manifest" not in path.name and "xqlantern" in path.read_text() and ONE not in path.read_text()
    )
    assert dry["quoted_in"] == quoting and len(quoting) >= 2
    before = {path: (vault / path).read_bytes() for path in quoting}

    refused = remove(vault, code=2)
    assert refused["error"]["code"] == "quoted" and refused["quoted_in"] == quoting
    assert "--quoting redact" in refused["error"]["hint"] and "--quoting keep" in refused["error"]["hint"]
    assert {path: (vault / path).read_bytes() for path in quoting} == before and vault.hits("xqlantern")
    assert "it is quoted in" in vault.call("remove", ONE, "--reason", "x", "--yes").err

    for path in quoting:  # a copy that a sync service made of it
        (vault / path.replace(".md", " (1).md")).write_bytes(before[path])
    document = remove(vault, "--quoting", "redact")
    assert document["quoted_in"] == quoting
    assert leaks(vault, *WORDS) == [] and not vault.hits("xqlantern")
    assert vault.hits("number2x")
    for path in quoting:
        assert REMOVED in (vault / path).read_text()
    spoken = next(text for path in quoting if "Sofas are there" in (text := (vault / path).read_text()))
    assert f"Here it is. {REMOVED} Sofas are there, number2x." in spoken
    assert vault.reindex()["counts"]["violation"] == 0 and vault.dump() == vault.dump_from_scratch()
    assert all(said.endswith(": private") for (said,) in vault.rows("select reason from redactions"))


def test_quotes_may_be_kept(vault):
    take_in(vault)
    document = remove(vault, "--quoting", "keep")
    assert document["quoted_in"] and leaks(vault, "xqlantern")
    assert not leaks(vault, "qwzmillstone") and vault.hits("xqlantern")


@pytest.mark.parametrize("session_id", sampled([TWO, ""], 2))
def test_a_session_that_still_runs_is_asked_about_and_not_redacted(vault, session_id):
    said_in(vault, 5, SAID)
    vault.reindex()
    given = ["--session-key", "agent:main", *(["--session-id", session_id] if session_id else [])]
    turn = json.dumps(
        {"turn": 1, "role": "assistant", "at": "2026-03-28T22:34:06Z", "text": f"As I know: {SAID}"}
    ).encode()
    appended = vault.spawn("transcript", "append", "--json", *given, input=turn + b"\n")
    assert appended.code == 0, appended
    running = [f"running session {session_id or 'agent:main'}"]
    assert quoted_in(vault, 5) == running

    given = ("remove", numbered(5)["session_id"], "--reason", "x", "--yes", "--json", "--now", NOW)
    asked = vault.call(*given).json
    assert asked["error"]["code"] == "quoted" and asked["quoted_in"] == running
    refused = vault.call(*given, "--quoting", "redact")
    assert refused.code == 2 and refused.json["quoted_in"] == running and "end it" in refused.json["error"]["hint"]
    assert not (vault / "memory/tombstones").exists()
    done = vault.call(*given, "--quoting", "keep")
    assert done.code == 0 and done.json["quoted_in"] == running


def test_what_the_session_itself_says_while_it_runs_is_no_quote(vault):
    said_in(vault, 5, SAID)
    vault.reindex()
    key = numbered(5)["session_id"]
    turn = json.dumps({"turn": 1, "role": "user", "at": "2026-03-28T22:34:06Z", "text": SAID}).encode()
    assert vault.spawn("transcript", "append", "--session-key", key, input=turn + b"\n").code == 0
    assert quoted_in(vault, 5) == []


def said_in(vault: Vault, number: int, *lines: str, **given: object) -> str:
    who = numbered(number) | {"body": "# It\n\n" + "\n".join(lines) + "\n"} | given
    vault.put(made.transcript(**who))
    return made.path_for("transcript", session_id=who["session_id"], captured_at=who["captured_at"])


def quoted_in(vault: Vault, number: int) -> list[str]:
    vault.reindex()
    done = vault.call("remove", numbered(number)["session_id"], "--dry-run", "--json")
    assert done.code == 0, done
    return done.json["quoted_in"]


def test_what_is_no_quote(vault):
    """What an earlier session said, what many say, code, what tools gave back, other agents' sessions, short turns."""
    early = "We have always kept the spare keys in the drawer of the hall, as everybody knows."
    many = "Please run all of the tests before every push to the main branch, thank you."
    code = ["```python", "def keys_of_the_mill(stone, lantern, water, wheel): return stone or lantern or water", "```"]
    tool = [
        "- `Read` the file of the keys that both of them have found at the mill",
        "  ```",
        "  A file that both of the sessions have read has this long line in it.",
        "  ```",
    ]
    theirs = "What another agent says of the mill is none of the business of this one, ever."
    said_in(vault, 8, early)
    said_in(vault, 7, early, many, *code, *tool, theirs, "and so we went on to the other side")
    for number in range(1, 7):
        said_in(vault, number, many, *(code + tool) * (number == 6), "and so we went on to the other mill")
    said_in(vault, 6, theirs, agent_id="scout")
    assert quoted_in(vault, 7) == []


def test_a_changed_file_that_quotes_holds_the_removal_up(vault):
    line = "The third stone behind the mill is where the miller keeps his spare key at night."
    said_in(vault, 2, line)
    path = said_in(vault, 1, line)
    vault.reindex()
    (vault / path).write_bytes((vault / path).read_bytes() + b"mine\n")
    done = vault.call(
        "remove", numbered(2)["session_id"], "--reason", "x", "--yes", "--quoting", "redact", "--json", "--now", NOW
    )
    assert done.code == 2 and done.json["error"]["path"] == path and "--quoting keep" in done.json["error"]["hint"]
    assert not (vault / "memory/tombstones").exists()


def test_a_secret_beside_a_quote_does_not_hold_the_removal_up(vault):
    """It is found by `redact`; what is called by a secret cannot be redacted, and this file is not."""
    line = "The third stone behind the mill is where the miller keeps his spare key at night."
    said_in(vault, 2, line)
    path = said_in(vault, 1, line, "password: hunter2hunter2XYZ")
    vault.reindex()
    given = ("--reason", "x", "--yes", "--quoting", "redact", "--json", "--now", NOW)
    done = vault.call("remove", numbered(2)["session_id"], *given)
    assert done.code == 0 and done.json["quoted_in"] == [path], done
    assert REMOVED in (vault / path).read_text() and "hunter2" in (vault / path).read_text()


_PIECES = st.lists(
    st.sampled_from([SAID, "Other words of mine.", "x", "", "- ", "\n", "[REDACTED:github]", "The spare key of"]),
    max_size=8,
)


@given(_PIECES)
def test_what_is_taken_out_is_a_redaction_and_leaves_no_passage(pieces):
    from signet_sync.privacy.quotes import _passages

    quotes = Quotes([SAID])
    for start, end in _passages(SessionText("", ("", ""), 0, SAID)):
        quotes.passages[SAID[start:end].encode()] = (0, start)
    quotes.found["x"] = set(quotes.passages)
    text = "".join(pieces)
    after = quotes.redact_passages(text)
    assert (after == text) == (SAID not in text)
    assert after == text or is_redaction(text, after)
    assert not re.search(rf"{re.escape(REMOVED)}[\s.-]*{re.escape(REMOVED)}", after), "one mark for what adjoins"
    assert "xqlantern" not in after and "Other words of mine." * ("Other words of mine." in pieces) in after
