"""The event log: lines that come back as they were, a chain that tells what happened to it, files made again."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ulid import ULID

from signet_sync.entities import document as edits
from signet_sync.entities import replay
from signet_sync.entities.agent_text import fit, fit_item
from signet_sync.entities.document import DocumentProblem, EntityDocument, blank, document_of, parse, render
from signet_sync.entities.events import GENESIS, Event, LogLine, damage, decode, encode, lines_of, news_of, seal, verify
from signet_sync.formats.body import text_sha256
from signet_sync.formats.entity_paths import Finding, shapes
from signet_sync.formats.timestamps import SECOND, iso, parse_instant

AT = parse_instant("2026-03-28T22:34:06.000Z") or 0
ID = "p-abcdefghijkl"
TEXTS = st.text(max_size=200) | st.sampled_from(["a\r\nb\n\n", "\u2028", "\ud800", "- x\n- y\n", "```\nx"])


def event(number: int, **given: object) -> Event:
    at = AT + number * SECOND
    fields = {"at": iso(at), "agent_id": "default", "actor": "agent", "op": "set", "entity_id": ID, "file": "profile"}
    return Event(id=str(ULID.from_bytes((at // 1000).to_bytes(6, "big") + bytes([number]) * 10)), **{**fields, **given})


def chained(*events: Event) -> list[LogLine]:
    """These events as the lines of a page."""
    prev, found = GENESIS, []
    for number, one in enumerate(events, 1):
        sealed = seal(one, prev)
        prev = sealed.hash
        found.append(LogLine("2026-03", number, encode(sealed), True))
    return found


@given(st.dictionaries(TEXTS, TEXTS | st.integers() | st.none() | st.lists(TEXTS, max_size=3), max_size=4), TEXTS)
def test_a_line_comes_back_as_it_was_written(text: dict[str, object], section: str) -> None:
    sealed = seal(event(1, text=text or None, section=section or None), GENESIS)
    line = encode(sealed)
    assert "\n" not in line and line.encode()
    found = decode(line)
    assert isinstance(found, Event) and damage(found) is None and encode(found) == line
    gone = replace(found, text=None, erased="memory/tombstones/t.md")
    assert damage(gone) is None and decode(encode(gone)) == gone, "a text goes without breaking the chain"


LINE = encode(seal(event(1, text={"reason": "x"}), GENESIS))


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("", "not-json"), ("x", "not-json"), ("[1]", "not-json"), (LINE[:-5], "not-json"), ("[" * 99_999, "not-json"),
        (LINE.replace('"v":2', '"v":1'), "version-unknown"), (LINE.replace('"op":"set"', '"op":"rm"'), "field-invalid"),
        (LINE.replace('"agent_id":"default",', ""), "field-invalid"), ('{"v":2,"id":"x"}', "field-invalid"),
        (LINE.replace('"op":"set"', '"op":{}'), "field-invalid"), (LINE.replace(f'"{ID}"', "[1]"), "field-invalid"),
        (LINE.replace('"at":"', '"at":5,"x":"'), "field-invalid"), (LINE.replace('"agent"', "7"), "field-invalid"),
        (LINE.replace('"text":{', '"texts":{'), "field-invalid"), (LINE.replace("28T22", "28 22"), "field-invalid"),
    ],
)  # fmt: skip
def test_what_is_no_line_is_told(line: str, code: str) -> None:
    found = decode(line)
    assert isinstance(found, Finding) and found.code == code


def codes(lines: list[LogLine], known_last: str | None = None) -> list[str]:
    return [one.code for one in verify(lines, known_last=known_last, agent_id="default")]


def test_the_chain_tells_what_happened_to_it() -> None:
    events = [event(n, text={"reason": f"reason {n}"}) for n in range(1, 5)]
    whole = chained(*events)
    last = events[-1].id
    changed = [line._replace(text=line.text.replace("reason 2", "reason 9")) for line in whole]
    forged = [line._replace(text=line.text.replace('"actor":"agent"', '"actor":"person"')) for line in whole[:1]]
    torn = LogLine("2026-03", 5, whole[0].text[:40], False)
    assert codes(whole, last) == []
    assert codes(changed) == ["text-changed"]
    assert codes([*forged, *whole[1:]]) == ["hash-mismatch"]
    assert codes([whole[0], *whole[2:]]) == ["gap"]
    assert codes([whole[0], whole[2], whole[1], whole[3]]) == ["gap"] * 3
    assert codes(whole[:-1], last) == ["truncated"] and codes([], last) == ["truncated"]
    assert codes([*whole, torn]) == ["torn"]
    assert codes([*whole, whole[-1]]) == ["gap"]
    assert codes(chained(event(1, agent_id="ada"))) == ["agent-mismatch"]
    bare = decode(whole[1].text)
    assert isinstance(bare, Event)
    unfounded = whole[1]._replace(text=encode(replace(bare, text=None, erased="memory/tombstones/t.md")))
    assert codes([whole[0], unfounded, *whole[2:]]) == ["erased-unfounded"]


def test_another_machine_s_lines_are_taken_once_and_damaged_ones_not_at_all() -> None:
    mine, theirs = chained(event(1), event(2)), chained(event(1), event(3))
    page = "".join(f"{line.text}\n" for line in theirs).encode()
    news = news_of([event(1).id, event(2).id], lines_of("2026-03", page))
    assert news is not None and [one.id for one in news] == [event(3).id]
    assert news_of([one.id for one in (event(1), event(2), event(3))], lines_of("2026-03", page)) == []
    assert news_of([], lines_of("2026-03", page[:-9])) is None
    assert json.loads(mine[0].text)["v"] == 2


# ── files ──


def made() -> EntityDocument:
    return blank("part", title="Jo", entity_id=ID, agent_id="default", created_at=iso(AT))


def told(before: EntityDocument | None, after: EntityDocument, number: int, **given: object) -> Event:
    """The event of a change."""
    text = replay.change(before, after)
    found = None if before is None else text_sha256(render(before))
    return seal(event(number, text=text, found=found, left=text_sha256(render(after)), **given), GENESIS)


CHANGES = {
    "narrative": lambda one: edits.replace(one, "role", fit("It guards.\n\nAlways.")),
    "item": lambda one: edits.append_item(one, "highlights", fit_item("Strict.")),
    "second item": lambda one: edits.append_item(
        edits.append_item(one, "highlights", fit_item("a")), "highlights", fit_item("b")
    ),
    "fields": lambda one: edits.with_fields(one, {"status": "resting", "more": "x"}),
    "title": lambda one: edits.with_title(one, "Joan"),
    "sections": lambda one: parse(render(one) + "\n## Mine\n\nwords\n"),
    "windows": lambda one: parse(render(one).replace("\n", "\r\n")),
    "no end": lambda one: parse(render(one).rstrip("\n")),
}


@pytest.mark.parametrize("first", CHANGES)
@pytest.mark.parametrize("second", CHANGES)
def test_a_file_is_made_again_byte_for_byte(first: str, second: str) -> None:
    start = made()
    one = CHANGES[first](start)
    two = CHANGES[second](one)
    events = [told(None, start, 1, op="create"), told(start, one, 2), told(one, two, 3)]
    lines = [decode(encode(each)) for each in events]
    state = replay.fold([each for each in lines if isinstance(each, Event)])["profile"]
    assert state.text == render(two) and text_sha256(render(one)) in state.known and not state.is_new


@pytest.mark.parametrize(
    ("body", "old", "new", "then"),
    [
        ("\na\nb\n", "x\n", "a\n", "\nx\nb\n"),
        ("\nb\na\n", "x\n", "a\n", "\nb\nx\n"),
        ("\nb\na\n\nc\n", "", "a\n\n", "\nb\n\nc\n"),
        ("\nb\n", "x\n", "", "\nx\nb\n"),
        ("b\n\n", "x\n", "", "b\nx\n\n"),
        ("ba\n", "x\n", "a\n", None),
        ("\nb\n", "x\n", "a\n", None),
        ("\nb\na\n\na\n", "x\n", "a\n", None),
    ],
)
def test_a_change_is_taken_back_where_it_stands_once(body: str, old: str, new: str, then: str | None) -> None:
    assert replay.take_back(body, 1, old, new) == then


def test_machines_that_wrote_at_once_keep_both() -> None:
    start = made()
    with_role, with_item = CHANGES["narrative"](start), CHANGES["item"](start)
    other = edits.append_item(start, "highlights", fit_item("Loyal."))
    events = [told(None, start, 1), told(start, with_role, 2), told(start, with_item, 3), told(start, other, 4)]
    text = replay.fold(events)["profile"].text or ""
    assert all(words in text for words in ("It guards.", "- Strict.", "- Loyal.")) and document_of(text) is not None


def test_a_text_that_a_removal_took_leaves_a_file_unknown_until_it_is_whole_again() -> None:
    start = made()
    with_role = CHANGES["narrative"](start)
    gone = replace(told(start, with_role, 2), text=None, erased="t")
    assert replay.fold([told(None, start, 1), gone])["profile"].text is None
    again = told(None, with_role, 3, op="restate")
    assert replay.fold([told(None, start, 1), gone, again])["profile"].text == render(with_role)


ROLE = "## Role\n<!-- section role -->\n"
# What somebody does to a file, and the code of the drift ("" for none, "healed" where an anchor comes back).
HANDS = {
    "words": (lambda text: text.replace("Always.", "Never."), ""),
    "a section moved": (lambda text: text.replace(ROLE, "").replace("## Highlights", f"{ROLE}\n## Highlights"), ""),
    "a section more": (lambda text: f"{text}\n## Mine\n", ""),
    "a lost anchor": (lambda text: text.replace("<!-- section role -->\n", ""), "healed"),
    "a lost anchor, another heading": (lambda text: text.replace(ROLE, "## Roles\n"), "healed"),
    "an uncertain anchor": (
        lambda text: text.replace(ROLE + "\nIt guards.\n\nAlways.", "## What\n"),
        "section-missing",
    ),
    "a lost section": (lambda text: text.replace(ROLE, ""), "section-missing"),
    "another id": (lambda text: text.replace(ID, "p-aaaaaaaaaaaa"), "identity-changed"),
    "no title": (lambda text: text.replace("# Jo\n", ""), "title-missing"),
    "no fields": (lambda text: text.partition("\n---\n")[2], "frontmatter-missing"),
}


@pytest.mark.parametrize("name", HANDS)
def test_what_people_do_to_a_file_is_told_apart(name: str) -> None:
    act, code = HANDS[name]
    want = CHANGES["narrative"](made())
    text = act(render(want))
    given = text, want, shapes("part"), [told(None, want, 1)]
    if code in ("", "healed"):
        after, facts = replay.judge(*given)
        assert facts == {}
        assert (render(after) == text) != bool(code) and "role" in replay.names_of(after)
    else:
        with pytest.raises(DocumentProblem) as caught:
            replay.judge(*given)
        assert caught.value.code == code and caught.value.hint
