"""Which statements say the same, how full of words a page is, and what it costs to find either."""

from __future__ import annotations

import re
import time

import pytest
from workbench import NOW

from signet_sync.formats.handle import id_of, short_handle
from signet_sync.formats.managed_block import lines_without
from signet_sync.formats.timestamps import DAY, parse_instant, short_day
from signet_sync.pages.filling import fill
from signet_sync.pages.sections import FactView, MemoryView, SectionInputs, ThreadView, candidates
from signet_sync.pages.statements import Said

NOW_US = parse_instant(NOW) or 0
SAME = [
    ("Every migration needs Priya's approval.", "every migration needs Priya's approval"),
    ("The harbour office signs off every chart of pier.", "Harbour office signs off every chart of pier"),
    ("Priya owns the warehouse schema and approves every migration, so she reads the summary.",
     "Priya owns the warehouse schema and approves every migration."),
    ("Uploads wait for the nightly backup", "Uploads wait for the nightly backup to finish"),
]  # fmt: skip
OTHER = [
    ("Retry limit of lantern is 5", "Retry limit of lantern is 7"),
    ("The queue of lantern is read lazily", "The queue of lantern is not read lazily"),
    ("Deploy pier on Tuesdays", "Deploy pier on Tuesdays only after 18:00"),
    ("Tests of lantern run on every system", "Tests of lantern run on every system but Windows"),
    ("lantern depends on pier for tides", "pier depends on lantern for tides"),
    ("Keep logs", "Keep logs short"),
    ("港務局はまだ深さを送っていない", "港務局は深さを送った"),
]


@pytest.mark.parametrize(("said", "new"), SAME)
def test_what_says_no_more_than_another_is_said(said, new):
    page = Said()
    page.add(said, "lantern")
    assert page.holds(new, "lantern") and page.holds(new)


@pytest.mark.parametrize(("said", "new"), [*OTHER, *(pair[::-1] for pair in OTHER)])
def test_a_number_a_negation_or_another_order_makes_another_statement(said, new):
    page = Said()
    page.add(said)
    assert not page.holds(new)


def test_other_projects_may_say_the_same_in_other_words_and_a_sentence_contains_what_it_says():
    page = Said()
    page.add("The harbour office signs off every chart", "pier")
    assert not page.holds("The harbour office signs off every chart of ours", "lantern")
    page.add("Since the harbour office sent the depths, the chart of pier is drawn at 1:5,000.", "pier", sentence=True)
    assert page.holds("The chart is drawn at 1:5,000", "pier") and not page.holds("The chart is drawn", "lantern")


def test_ten_times_the_statements_take_about_ten_times_as_long():
    def seconds(count: int) -> float:
        page, begun = Said(), time.process_time()
        for number in range(count):
            text = f"The queue of lantern keeps {number} entries since the broker gave up"
            assert not page.holds(text, "lantern")
            page.add(text, "lantern")
        return time.process_time() - begun

    assert any(seconds(5_000) < 30 * seconds(500) for _ in range(4))


def shown(seen: SectionInputs, budget: int = 5_000) -> str:
    return "\n".join(line for lines in fill(candidates(seen, NOW_US), budget).lines.values() for line in lines)


def path(number: int) -> str:
    return f"memory/2026-03-2{number}T10-00-00.000Z--{'abcdefghi'[number] * 16}--summary.md"


def test_what_a_thread_says_is_no_line_of_its_own():
    lantern, blocker = "/code/lantern", "The broker of the test bed is down since Monday, so no start can be measured."
    thread = ThreadView(
        "t-aaaaaaaaaaaa", lantern, None, "codex", "blocked", 3, NOW_US - DAY,
        "The queue is read lazily; blocked: the broker of the test bed is down.", "Measure the start", path(8), blocker,
    )  # fmt: skip

    def fact(letter, aspect, text, days=1):
        return FactView(f"f-{letter * 12}", aspect, text, lantern, NOW_US - days * DAY, path(days))

    facts = [
        fact("a", "blocker", blocker), fact("b", "next", "measure the start."), fact("c", "next", "Ask Bob"),
        fact("e", "decision", "The queue is read lazily"),
        fact("g", "decision", "Retries: five"),
    ]  # fmt: skip
    text = shown(SectionInputs([thread], facts, [MemoryView("m-aaaaaaaaaaaa", "decision", "Ask Bob", NOW_US)]))
    assert re.findall(r"\^(\S+)", text) == ["t-aaaaaa", "m-aaaaaaaaaaaa", "f-gggggg"]
    assert text.startswith(f"- **lantern** (Mar 28, 3 sessions): The queue is read lazily. Blocked: {blocker} Next: Me")


def test_lines_of_one_project_stand_below_its_name_and_each_session_is_linked_once():
    facts = [
        FactView(
            f"f-{letter * 12}", "decision", f"Decision {letter} of theirs", project, NOW_US - n * DAY, path(n // 2)
        )
        for n, (letter, project) in enumerate(zip("abcdeg", ["/a/pier", "/a/oar", "/b/pier"] * 2, strict=True))
    ]
    lone = FactView("f-hhhhhhhhhhhh", "decision", "A decision that is alone", "/a/kiln", NOW_US, path(7))
    assert shown(SectionInputs(facts=[*facts, lone])).split("\n") == [
        f"- A decision that is alone (kiln, Mar 29) [[{path(7)}|summary]] ^f-hhhhhh",
        *("", "### a/pier", ""),
        f"- Decision a of theirs (Mar 29) [[{path(0)}|summary]] ^f-aaaaaa",
        f"- Decision d of theirs (Mar 26) [[{path(1)}|summary]] ^f-dddddd",
        *("", "### oar", ""),
        "- Decision b of theirs (Mar 28) ^f-bbbbbb",
        f"- Decision e of theirs (Mar 25) [[{path(2)}|summary]] ^f-eeeeee",
        *("", "### b/pier", ""),
        "- Decision c of theirs (Mar 27) ^f-cccccc",
        "- Decision g of theirs (Mar 24) ^f-gggggg",
    ]


def test_two_ids_with_one_beginning_are_shown_whole():
    facts = [
        FactView(f"f-aaaaaa{letter * 6}", "decision", f"It is {letter}", None, NOW_US, path(n))
        for n, letter in enumerate("bc")
    ]
    assert re.findall(r"\^\S+", shown(SectionInputs(facts=facts))) == ["^f-aaaaaabbbbbb", "^f-aaaaaacccccc"]


def test_a_short_handle_is_the_beginning_of_an_id_but_a_memory_keeps_all_of_its():
    fact, memory = (id_of(letter, "default", "x") for letter in ("f", "m"))
    assert short_handle(fact) == f"^{fact[:8]}" and short_handle(memory) == f"^{memory}"


def test_days_are_short_unless_that_could_be_another_day():
    def day(text: str) -> str:
        return short_day(parse_instant(f"{text}T10:00Z") or 0, NOW_US)

    assert [day(one) for one in ("2026-03-29", "2026-03-01", "2025-07-01", "2025-05-01", "0001-02-03")] == [
        "Mar 29", "Mar 1", "Jul 1", "May 2025", "Feb 0001"
    ]  # fmt: skip
    assert day("2026-03-31") == "2026-03-31"


def test_with_its_last_line_a_heading_goes():
    lines = b"# A\n\n### one\n\n- x\n\n### two\n\n- x\n- y\n\n### three\n\n## B".split(b"\n")
    left = lines_without(lines, lambda line: line == b"- x")
    assert left == [b"# A", b"", b"### two", b"", b"- y", b"", b"### three", b"", b"## B"]
    assert lines_without(lines, lambda line: False) == lines
