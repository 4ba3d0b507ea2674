"""Sessions whose files hold a form: their rows are told anew from the transcript beside it."""

from __future__ import annotations

import json
from typing import Any

import artifacts_fixture as made
import pytest
from workbench import Vault

from signet_sync.storage.database.tables import STATEMENTS
from signet_sync.text.digest_mark import VERSION, make_opening, status_of
from signet_sync.text.sentences import SentenceSubject, fallback, is_template

WORK = """\
## User · 2026-03-28T09:00:00.000Z

The price rounding in cart.py is wrong: 2.675 becomes 2.67.

## Assistant · 2026-03-28T09:20:00.000Z

- `Edit` · 2026-03-28T22:34:06.792Z · /home/ada/code/lantern/cart.py
- `Bash` · 2026-03-28T22:34:06.792Z · pytest -q
  ```
  12 passed
  ```

Prices in cart.py are Decimal now and rounded with ROUND_HALF_UP, so 2.675 becomes 2.68.

**Decisions**
- Use Decimal with ROUND_HALF_UP for prices in cart.py.

Next: Decide how JPY prices are rounded.
"""
MORE = """\
## User · 2026-03-28T11:00:00.000Z

Please also export the invoices as CSV.

## Assistant · 2026-03-28T11:20:00.000Z

- `Write` · 2026-03-28T22:34:06.792Z · /home/ada/code/lantern/export.py

The new command in export.py writes invoices as CSV with one row per line item.
"""
HELLO = """\
## User · 2026-03-28T12:00:00.000Z

hi there

## Assistant · 2026-03-28T12:00:01.000Z

Hello! How can I help?
"""
BODY = """\
# The price rounding in cart.py is wrong: 2.675 becomes 2.67

## Next steps

- Decide how JPY prices are rounded.
"""
FORM = (
    'In lantern the summary of 2026-03-28 opens with "The price rounding" and keeps 3 lines and 5 words behind its'
    " link."
)
SIGNET = (
    "Session lantern captured durable summary context, preserved lineage metadata, and recorded this artifact for"
    " MEMORY.md projection and later drill-down."
)


def put(vault: Vault, *, body: str = BODY, transcript: str = WORK, sentence: str = FORM, **who: Any) -> None:
    said = {"memory_sentence": sentence, **who}
    vault.put(dict([made.summary(body=body, **said), made.transcript(body=transcript, **said), made.manifest(**who)]))


def opened(vault: Vault, session: str = made.SESSION) -> dict[str, Any]:
    found: dict[str, Any] = vault.call("open", "--json", session).json
    return found


def checked(vault: Vault) -> list[tuple[str, str]]:
    answer = vault.call("check", "--json")
    return [(problem["path"], problem["code"]) for problem in answer.json["problems"]]


# ── the line below a title ──


def test_status_is_read_where_it_is_written() -> None:
    for status in ("done", "open", "blocked", "aborted", "question-only"):
        line = make_opening("/x/lan*tern", "co*dex", status)
        assert status_of(f"# Title\n\n{line}\n\n## Outcome\n") == status
        assert status_of(f"# Title\n{line}") == status
    assert status_of(f"# Title\n\n{make_opening(None, None, None)}\n") is None
    for text in ("", "# T", BODY, "# T\n\nStatus: done.", f"words\n\n{make_opening('p', None, 'done')}"):
        assert status_of(text) is None


@pytest.mark.parametrize(("sentence", "form"), [
    (FORM, True), (SIGNET, True), ("Reviewed code.", True), ("", True), (SIGNET.replace("summary", "transcript"), True),
    ("Compaction for exp preserved durable context, linked the active session state, and captured this summary for"
     " later MEMORY.md projection and drill-down.", True),
    *((fallback(SentenceSubject(text, "/x/lantern", kind, "2026-03-28")), True)
      for text, kind in (("# Retry\n\nx", "summary"), ("", "transcript"), ("| a |\n|---|", "compaction"))),
    (made.SENTENCE, False),
    ("Session handling in auth.py was moved to Redis and captured durable gains in tests.", False),
])  # fmt: skip
def test_a_form_is_no_sentence(sentence: str, form: bool) -> None:
    assert is_template(sentence) == form


# ── rows ──


@pytest.mark.parametrize("sentence", [FORM, SIGNET])
def test_a_form_gives_way_to_what_came_out(vault: Vault, sentence: str) -> None:
    """The file stays, its row shows what today's rules make of the transcript, and a check takes either."""
    put(vault, sentence=sentence)
    before = {path: path.read_bytes() for path in vault.memory.iterdir() if "manifest" not in path.name}
    vault.reindex()
    page = vault.page()
    assert "Decimal" in page and "keeps 3 lines" not in page and "captured durable" not in page
    assert {path: path.read_bytes() for path in before} == before
    assert checked(vault) == []
    document = opened(vault)
    assert document["status"] == "open" and "Decimal" in document["sentence"]
    texts = [one["text"] for one in vault.call("recall", "cart.py", "--json").json["hits"]]
    assert any("Decimal" in text for text in texts) and not any("keeps 3 lines" in text for text in texts)
    assert vault.dump() == vault.dump_from_scratch()
    assert vault.reindex()["counts"]["read"] == 0


def test_what_somebody_wrote_stays(vault: Vault) -> None:
    put(
        vault,
        body="# Rounding\n\n## Blockers\n\n- Waiting for finance to say how JPY rounds.\n",
        sentence=made.SENTENCE,
    )
    vault.reindex()
    assert made.SENTENCE in vault.page() and "Decimal" not in vault.page().split("## Session Ledger")[1]
    assert opened(vault)["status"] == "blocked"
    assert "- blocker: Waiting for finance to say how JPY rounds. (lantern" in vault.page()


def test_other_rules_make_rows_anew(vault: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    """A database of other rules: the next pass tells sessions anew though no file moved."""
    put(vault)
    with monkeypatch.context() as patch:
        patch.setattr("signet_sync.graph.stage.is_template", lambda _: False)
        patch.setattr("signet_sync.graph.stage.Graph.version", "2 digest 1")
        patch.setattr("signet_sync.text.digest_mark.VERSION", 1)
        vault.reindex()
        assert "keeps 3 lines" in vault.page()
    assert checked(vault) == [], "the file's sentence is as good as the rules' one"
    vault.reindex()
    assert "keeps 3 lines" not in vault.page() and "Decimal" in vault.page()
    assert vault.dump() == vault.dump_from_scratch()


OLDER, RECENT = "2026-03-28T10:00:00.000Z", "2026-11-20T10:00:00.000Z"
OLD_MARK = make_opening(None, None, "blocked").replace(f"rules {VERSION}", "rules 1")
OF_OTHERS = "# Rounding\n\n{}\n\n## Decisions\n\n- Show the invoice\n"


@pytest.mark.parametrize(("captured_at", "mark", "status", "stated"), [
    (OLDER, OLD_MARK, "blocked", ["Show the invoice"]),
    (RECENT, OLD_MARK, "done", ["Decide how JPY prices are rounded."]),
    (RECENT, make_opening(None, None, "blocked"), "blocked", ["Show the invoice"]),
    (RECENT, "Ada wrote this.", "settled", ["Show the invoice"]),
])  # fmt: skip
def test_what_other_rules_wrote_of_a_recent_session_is_stated_anew(
    vault: Vault, captured_at: str, mark: str, status: str, stated: list[str]
) -> None:
    """The sentence stays that of the summary; of older sessions its labelled sections count."""
    put(vault, body=OF_OTHERS.format(mark), sentence=made.SENTENCE, captured_at=captured_at)
    vault.reindex()
    document = opened(vault)
    assert (document["sentence"], document["status"] or "settled") == (made.SENTENCE, status)
    rows = vault.rows(f"select text, source_path from {STATEMENTS}")
    assert [text for text, _ in rows] == stated
    assert ("transcript" in rows[0][1]) == (status == "done")
    assert vault.dump() == vault.dump_from_scratch()


@pytest.mark.parametrize(("captured_at", "count"), [(OLDER, 0), (RECENT, 1)])
def test_headings_of_a_transcript_are_no_labels_of_a_summary(vault: Vault, captured_at: str, count: int) -> None:
    words = WORK.replace("Next: ", "## Decisions\n\n- Show the invoice\n\nNext: ")
    vault.put(dict([made.transcript(body=words, captured_at=captured_at), made.manifest(captured_at=captured_at)]))
    vault.reindex()
    rows = vault.rows(f"select text from {STATEMENTS}")
    assert rows == [("Decide how JPY prices are rounded.",)][:count]


# ── endings ──


def end(vault: Vault, transcript: str, minute: int, **given: Any) -> dict[str, Any]:
    place = vault.root.parent / "input.json"
    who = {"session_id": "s-1", "project": "/home/ada/code/lantern", "harness": "claude-code"}
    moment = f"2026-03-28T12:{minute:02d}:00.000Z"
    place.write_text(json.dumps({**who, "transcript": transcript, "captured_at": moment, **given}))
    answer = vault.call("session", "end", "--json", "--input", str(place))
    assert answer.code == 0, answer
    found: dict[str, Any] = answer.json
    return found


def test_segments_tell_one_story(vault: Vault) -> None:
    """A session that was resumed: its newest sentence, and so its row, says what came out before, too."""
    end(vault, WORK, 1)
    answer = end(vault, WORK + "\n" + MORE, 30)
    assert "CSV" in answer["sentence"] and "ROUND_HALF_UP" in answer["sentence"]
    (row,) = vault.rows("select sentence from ledger_rows")
    assert row == (answer["sentence"],)


def test_a_farewell_hides_no_work(vault: Vault) -> None:
    """The newest segment says nothing: the one before it stands for the session."""
    end(vault, WORK, 1)
    end(vault, WORK + "\n" + HELLO, 30)
    (row,) = vault.rows("select sentence from ledger_rows")
    assert "ROUND_HALF_UP" in row[0] and opened(vault, "s-1")["status"] == "done"


@pytest.mark.parametrize("who", [{"project": "/tmp/lantern"}, {"project": None, "session_id": "test-1"}])
def test_a_session_that_no_page_shows_says_how_it_ended(vault: Vault, who: dict[str, Any]) -> None:
    session = end(vault, WORK, 1, **who)["session_id"]
    assert vault.rows("select count(*) from ledger_rows") == [(0,)]
    assert opened(vault, session)["status"] == "done"


def test_nothing_but_a_greeting_is_kept_and_found_and_not_shown(vault: Vault) -> None:
    answer = end(vault, HELLO, 1)
    vault.reindex()
    assert (
        vault.rows("select count(*) from ledger_rows") == vault.rows("select count(*) from thread_sessions") == [(0,)]
    )
    assert vault.rows("select count(*) from memory_thread_heads") == [(0,)]
    assert answer["transcript"] in vault.hits("hi") and "lantern" not in vault.page()
    assert checked(vault) == [] and opened(vault, "s-1")["status"] == "question-only"
    assert vault.reindex()["counts"]["read"] == 0
