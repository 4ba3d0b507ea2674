"""Sessions on the page: the list and its filters, one session to read by part and line, hostile words as words."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import artifacts_fixture as made
import pytest
from hypothesis import given
from hypothesis import strategies as st
from workbench import Vault, cast, numbered

pytest.importorskip("starlette", reason="the extra `ui` is not installed")

from starlette.testclient import TestClient
from ui_pages import Elements, asked, harmless, visitor

from signet_sync.errors import UsageError
from signet_sync.sessions.live import store as live
from signet_sync.text import chunking
from signet_sync.web import lists, overview, session
from signet_sync.web.app import VIEWS
from signet_sync.web.markdown import Links, LinkTarget, Prose
from signet_sync.web.request import ViewRequest, WebPage

RESUMED = "0195d7a2-6f00-7cc0-8a44-1d2e3f405162"
LONG = "10000000-0000-4000-8000-000000000001"
SPOKEN = """## User · 2026-03-28T09:00:00.000Z

Look at **src/queue.py**, then [[{before}|the session before]].

## Assistant · 2026-03-28T09:00:05.000Z

- `Read` · 2026-03-28T22:34:06.792Z · `src/queue.py`
  ```
  def retry(): ...
  ```
- `Bash` · 2026-03-28T22:34:06.792Z · `pytest -q` · failed
  ```
  1 failed
  ```

1. bound it
   - [x] five tries

```python
for attempt in range(5):
```
"""


def fill(vault: Vault) -> None:
    for number in (1, 2, 3, 4):
        vault.session(number, project=f"/home/ada/code/{'wick' if number == 4 else 'lantern'}")
    vault.session(5, agent_id="other", body="# Another's\n\nThe word otherword stands here.\n")
    before = made.path_for("summary", session_id=numbered(2)["session_id"], captured_at=numbered(2)["captured_at"])
    for hour in (10, 12):
        when = {"session_id": RESUMED, "captured_at": f"2026-03-28T{hour}:00:00.000Z"}
        vault.put(dict([made.summary(**when), made.transcript(**when, body=SPOKEN.format(before=before))]))
    vault.put(made.compaction(session_id=RESUMED, captured_at="2026-03-28T11:00:00.000Z", body="Compacted words.\n"))
    vault.put(made.manifest(session_id=RESUMED, captured_at="2026-03-28T10:00:00.000Z", body="A person's note.\n"))
    turns = [f"User: question {turn}\n\nAssistant: answer {turn}\n\n" + f"word{turn} " * 300 for turn in range(40)]
    when = {"session_id": LONG, "captured_at": "2026-03-20T10:00:00.000Z"}
    vault.put(made.transcript(**when, body="\n\n".join([*turns, "User: " + "x" * 70_000])))
    vault.put(made.summary(session_id="gemini-1", harness="gemini", captured_at="2026-03-19T10:00:00.000Z"))
    vault.reindex()


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return cast(tmp_path_factory.mktemp("ui-sessions"), fill)


@pytest.fixture
def vault(filled: Any, tmp_path: Path) -> Vault:
    copied: Vault = filled(tmp_path)
    return copied


def ask(vault: Vault, agent: str = "default", place: dict[str, str] | None = None, /, **query: str) -> ViewRequest:
    return asked(vault.root, agent, given=place, **query)


def listed(vault: Vault, agent: str = "default", /, **query: str) -> list[str]:
    """The ids of the sessions that the list shows."""
    page = lists.sessions(ask(vault, agent, **query))
    return [entry.session_id for entry in page.data["shown"]]


def opened(vault: Vault, session_id: str, agent: str = "default", /, **query: str) -> WebPage:
    token = made.token_for(agent, session_id=session_id)
    return session.session(ask(vault, agent, {"token": token, "session": session_id}, **query))


def address(session_id: str, **query: object) -> str:
    links = Links({name: path for path, name, _ in VIEWS}, "default", "default")
    return links("session", token=made.token_for(session_id=session_id), session=session_id, **query)


@pytest.fixture
def browser(vault: Vault) -> TestClient:
    return visitor(vault.root)


class Seen(Elements):
    """A page with the text of each place that has a name."""

    def __init__(self, page: str) -> None:
        self.ids: dict[str, str] = {}
        super().__init__(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        super().handle_starttag(tag, attrs)
        name = dict(attrs).get("id")
        if name is not None:
            assert name not in self.ids, f"two places are called {name}"
            self.ids[name] = ""

    def handle_data(self, data: str) -> None:
        super().handle_data(data)
        if self.ids:
            self.ids[[*self.ids][-1]] += data


# ── the list ──


@pytest.mark.usefixtures("auckland")
def test_days_are_the_persons_days(vault: Vault) -> None:
    """The newest session ended at noon UTC, when it was another day in Auckland."""
    page = lists.sessions(ask(vault))
    assert [day for day, *_ in page.data["days"]][:2] == ["2026-03-29", "2026-03-28"]
    assert listed(vault, **{"from": "2026-03-29"}) == [RESUMED]
    assert listed(vault, **{"from": "2026-03-28", "to": "2026-03-28"}) == [numbered(1)["session_id"]]
    days = [(day, len(entries)) for day, entries in overview.show(ask(vault)).data["held"]["days"]]
    assert days[:2] == [("2026-03-29", 1), ("2026-03-28", 1)]
    listed_there = vault.call("open").out
    assert "  2026-03-29  " in listed_there.splitlines()[0] and "### 2026-03-28" in vault.page()
    assert vault.call("recall", "--words", "bound", "--since", "2026-03-30").out == ""


def test_a_page_goes_on_where_the_one_before_ended(vault: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    every = listed(vault)
    monkeypatch.setattr(lists, "_PAGE", 3)
    assert [listed(vault, page=str(number)) for number in (1, 2, 3, 4)] == [every[:3], every[3:6], every[6:], []]


def test_filters_keep_what_fits(vault: Vault) -> None:
    assert listed(vault, project="/home/ada/code/wick") == [numbered(4)["session_id"]]
    assert listed(vault, **{"from": "2026-03-28"}) == [RESUMED, numbered(1)["session_id"]]
    assert listed(vault, **{"from": "2026-03-26", "to": "2026-03-27"}) == [numbered(n)["session_id"] for n in (2, 3)]
    assert listed(vault, project="-") == []
    for fault in ({"from": "soon"}, {"to": "2026-02-30"}):
        with pytest.raises(UsageError, match="is not a day"):
            listed(vault, **fault)


# ── one session ──


def test_a_session_is_read_segment_by_segment(vault: Vault, browser: TestClient) -> None:
    page = opened(vault, RESUMED)
    assert [stretch.label for stretch in page.data["stretches"]] == ["Segment 1", "Compaction", "Segment 2"]
    assert [artifact.kind for artifact in page.data["shown"]] == ["summary", "transcript"]
    first, compaction, _ = page.data["stretches"]
    assert [one.kind for one in opened(vault, RESUMED, path=first.first_path).data["shown"]] == ["summary"]
    compacted = opened(vault, RESUMED, path=compaction.first_path)
    assert [artifact.kind for artifact in compacted.data["shown"]] == ["compaction"]
    seen = Seen(browser.get(address(RESUMED)).text)
    before = numbered(2)["session_id"]
    assert any(before in link for link in seen.links), "the wikilink leads there"


def test_turns_tools_and_code_are_told_apart(vault: Vault) -> None:
    transcript = opened(vault, RESUMED).data["shown"][-1]
    labels = [turn.label for turn in transcript.turns]
    assert labels == ["User", "Assistant", "Tool Read", "Tool Bash", "Assistant"]
    _, _, _, bash, assistant = transcript.turns
    assert "<code>pytest -q</code>" in html_of(bash.prose) and "1 failed" in html_of(bash.prose)
    assert "<ol>" in html_of(assistant.prose)


def test_a_line_of_evidence_is_where_the_link_leads(vault: Vault, browser: TestClient) -> None:
    path = made.path_for("transcript", session_id=LONG, captured_at="2026-03-20T10:00:00.000Z")
    lines = (vault / path).read_text().split("\n")
    number = next(place for place, line in enumerate(lines, 1) if line.startswith("Assistant: answer 31"))
    seen = Seen(browser.get(address(LONG, path=path, line=number)).text)
    assert "answer 31" in seen.ids["here"]
    body = number - lines.index("---", 1) - 1
    assert "answer 31" in Seen(browser.get(address(LONG, path=path, body=body)).text).ids["here"]


def test_a_long_transcript_is_shown_in_parts_that_hold_all_of_it(vault: Vault) -> None:
    path = made.path_for("transcript", session_id=LONG, captured_at="2026-03-20T10:00:00.000Z")
    first = opened(vault, LONG, path=path).data["shown"][0]
    assert first.parts > 3
    shown = ""
    for part in range(1, first.parts + 1):
        artifact = opened(vault, LONG, path=path, part=str(part)).data["shown"][0]
        text = " ".join(words_of(turn.prose) for turn in artifact.turns)
        assert len(text) < 140_000
        shown += text
    assert all(shown.count(f"word{turn} ") >= 300 for turn in range(40))
    assert shown.count("x") == 70_000
    assert opened(vault, LONG, path=path, part="99999").data["shown"][0].part == first.parts - 1


def test_a_session_shows_what_was_sealed_and_which_of_its_files_changed(vault: Vault, browser: TestClient) -> None:
    when = {"session_id": RESUMED, "captured_at": "2026-03-28T12:00:00.000Z"}
    changed, gone = made.path_for("transcript", **when), made.path_for("summary", **when)
    (vault / changed).write_text((vault / changed).read_text().replace("five tries", "six tries"))
    (vault / gone).unlink()
    vault.reindex()
    entries = lists.sessions(ask(vault)).data["shown"]
    assert [entry.violations for entry in entries if entry.session_id == RESUMED] == [2]
    text = browser.get(address(RESUMED, path=changed)).text
    assert "five tries" in text and "six tries" not in text
    assert {"mutated", "vanished"} <= set(re.findall(r'class="badge bad">(\w+)', text))
    assert text.count("/do/restore?") == 2
    assert opened(vault, LONG).data["problems"] == []


def test_a_session_that_is_not_there_is_told_with_what_to_do(vault: Vault, browser: TestClient) -> None:
    assert vault.call("remove", RESUMED, "--reason", "no longer", "--yes").code == 0
    for name in ("nobody", RESUMED):
        answer = browser.get(address(name))
        assert (answer.status_code, "reindex" in answer.text, "removed" in answer.text) == (404, True, True)
        assert "five tries" not in answer.text
    assert RESUMED not in listed(vault)


def test_a_running_session_is_named_with_how_far_it_is(vault: Vault, browser: TestClient) -> None:
    said = live.LiveTurn(1, "user", "Hello <b>you</b>", "2026-03-29T11:00:00.000Z")
    with vault.database(readonly=False) as database, database.transaction():
        live.buffer(database, "default", "a:key", [said])
    shown = overview.show(ask(vault)).data["held"]["running"]
    assert [(one["turns"], one["title"][:5]) for one in shown] == [(1, "Hello")]
    assert "Hello <b>you" in harmless(browser.get("/").text).text
    missing = browser.get(address("a:key"))
    assert missing.status_code == 404 and "it still runs" in missing.text.lower()


# ── hostile words ──


def test_odd_requests_are_answered(browser: TestClient) -> None:
    for query in ("page=0", "page=-1", "page=x", "page=9999999", "from="):
        assert browser.get(f"/sessions?{query}").status_code == 200, query
    for query in ("part=-1", "part=x", "part=99", "line=99999999", "body=0", "path=../x", "path=%00"):
        assert browser.get(f"{address(RESUMED)}?{query}").status_code == 200, query


# ── Markdown ──


URL = Links({"session": "/sessions/{token}/{session:path}"}, "main", "main")


def html_of(prose: Prose) -> str:
    return str(prose.html(URL))


def words_of(prose: Prose) -> str:
    """All that a text shows."""
    return re.sub(r"<[^>]*>", " ", html_of(prose))


def numbers_of(prose: Prose) -> list[int]:
    return [int(number) for number in re.findall(r'id="L(\d+)"', html_of(prose))]


PIECES = [
    "word", "# ", "- ", "1. ", "> ", "```", "~~~", "| a | b", "|---|---|", "**", "*", "_", "`", "[[", "]]", "[", "](x)",
    "!", "\\", "***", "  ", "\n", "\n\n", "User: ", "## User · 2026-03-28T09:00:00.000Z\n",
    "- `Bash` · 2026-03-28T09:00:00.000Z · `ls`",
]  # fmt: skip


def test_blocks_are_those_of_commonmark_and_have_the_numbers_of_their_first_lines() -> None:
    text = "1. a *b*\n   - [x] c\n\n     ```py\n     d\n     ```\n2. e\n\n   f\n> g\n> - h\n\n\u00a0\ni <b>\nk\n---\n"
    text += "| j |\n|---|\n| k | l |"
    found = Prose(text)
    assert numbers_of(found) == [1, 2, 4, 7, 9, 10, 11, 13]
    shown = html_of(found)
    assert re.findall(r"<(ol|ul|pre|blockquote|hr|table)", shown) == [
        "ol", "ul", "pre", "blockquote", "ul", "hr", "table",
    ]  # fmt: skip
    assert "i &lt;b&gt;<br>\nk" in shown
    for line, block in ((1, 1), (6, 4), (14, 13)):
        assert f'id="L{block}"><span id="here">' in found.html(URL, asked=line)
    assert 'id="here"' not in found.html(URL, asked=99)


def test_only_links_to_our_pages_have_an_address() -> None:
    text = r"[[a|b *c*]] [d](javascript:x%20y) \*g\* **h `i` \* j** [k *l*](m) <img src=x onerror=y> &lt;b&gt;"
    prose = Prose(text)
    assert prose.targets == {"a", "javascript:x%20y", "m"}
    target = LinkTarget("session", {"token": "t", "session": 's"><script>'})
    shown = str(prose.html(URL, {"a": target, "nowhere": target}))
    assert re.findall("<a [^>]*>", shown) == ['<a href="/sessions/t/s%22%3E%3Cscript%3E">']
    assert re.findall("<(?!/)([^ >]+)", shown) == ["p", "a", "span", "strong", "code", "em", "span"]
    assert "<strong>" not in html_of(Prose(f"**{'x' * 3000}**")), "a long line is shown as it is"
    assert "(javascript:x%20y)" in shown and "&lt;img" in shown and "&amp;lt;b" in shown


@given(st.lists(st.sampled_from(PIECES), max_size=60).map("".join))
def test_no_word_is_lost_and_no_line_shown_twice(text: str) -> None:
    found = Prose(text)
    numbers = numbers_of(found)
    assert numbers == sorted(set(numbers))
    assert words_of(found).count("word") == text.count("word")
    begun = tuple(chunking.turns(text))
    for piece in chunking.pieces(text, 40, begun):
        for turn in session.turns_of(text, 7, begun, piece):
            assert all(7 <= number <= 7 + text.count("\n") for number in numbers_of(turn.prose))
