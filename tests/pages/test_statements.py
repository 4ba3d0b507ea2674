"""Which statements say the same, how full of words a page is, and what it costs to find either."""

from __future__ import annotations

import re
import time

import pytest
from workbench import NOW, Vault

from benchmarks.word_share import word_share
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


SAME_RULES = [
    ("The chart of a small boat has to equal that of a large boat.",
     "A small boat must be line for line identical to a large boat; a test compares"),
    ("A changed tide.toml must redraw the whole chart.",
     "A change of tide.toml always means to redraw the entire chart."),
    ("Old tide tables of the quay are deleted after 14 days",
     "Old tide tables of the quay have to be removed after 14 days"),
    ("Depths must never be sent to the harbour office by mail",
     "The depths are not sent to the harbour office by mail"),
]  # fmt: skip
OTHER_RULES = [
    ("The billing table of the quay needs an approval", "The login table of the quay needs an approval"),
    ("Charts are printed before the nightly tide backup", "Charts are printed after the nightly tide backup"),
    ("A failed drawing stops the printed chart", "A stopped chart fails the printed drawing"),
    ("Depths of the quay are stored in plain files", "Depths of the quay are stored in plain tables of Postgres"),
    ("Depths of the quay may be sent to the office", "Depths of the quay must not be sent to the office"),
    ("Old tide tables of the quay are deleted after 14 days", "Old tide tables of the quay are deleted after 30 days"),
    ("Old tide tables of the quay are deleted at once", "Old tide tables of the quay are deleted at once on heron-2"),
    ("Quay lamps burn oil all night", "Quay lamps burn oil all night only in winter, then gas takes their place"),
]  # fmt: skip


@pytest.mark.parametrize(("said", "new"), [*SAME_RULES, *(pair[::-1] for pair in SAME_RULES)])
def test_a_rule_of_one_project_is_said_once_in_whatever_words(said, new):
    page = Said()
    page.add(said, "lantern", rule=True)
    assert page.holds(new, "lantern", rule=True)
    assert not page.holds(new, "pier", rule=True) and not page.holds(new, "lantern")


@pytest.mark.parametrize(("said", "new"), OTHER_RULES)
def test_a_rule_of_something_else_is_another_one(said, new):
    page = Said()
    page.add(said, "lantern", rule=True)
    assert not page.holds(new, "lantern", rule=True)


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


def test_ten_thousand_statements_are_compared_in_a_moment():
    page, begun = Said(), time.perf_counter()
    for number in range(10_000):
        text = f"The queue of lantern keeps {number} entries since the broker gave up"
        assert not page.holds(text, "lantern", rule=True)
        page.add(text, "lantern", rule=True)
    assert time.perf_counter() - begun < 10


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
    lines = [
        b"# A",
        b"",
        b"### one",
        b"",
        b"- x",
        b"",
        b"### two",
        b"",
        b"- x",
        b"- y",
        b"",
        b"### three",
        b"",
        b"## B",
    ]
    left = lines_without(lines, lambda line: line == b"- x")
    assert left == [b"# A", b"", b"### two", b"", b"- y", b"", b"### three", b"", b"## B"]
    assert lines_without(lines, lambda line: False) == lines


PAGE = """\
<!-- signet:begin -->
# Working Memory

Each ^handle on this page opens with: signet-sync expand HANDLE

## Active Projects & Threads

- **pier** (Mar 26, 2 sessions): Tides (#12) are in. [[memory/x--summary.md|summary]] ^t-a7icyd

## Session Ledger (Last 30 Days)

- 2026-03-29T10:00:00.000Z | session=s-1 | project=/code/pier | Nothing of this counts. [[memory/x.md|summary]]

## Temporal Index

- 2026-02 · 9 sessions · [[ledger/2026-02.md]]
- Feb 4 to Feb 5 · pier, 2 sessions: Drawn. [[memory/y--summary.md|summary]] ^a-mbuecj
<!-- signet:end 00 -->
"""


def test_the_share_of_words_is_what_a_person_would_count():
    words = "pier:Tides(#12)arein.", "pier:Drawn."
    other = (
        "-****(Mar26,2sessions)[[memory/x--summary.md|summary]]^t-a7icyd",
        "-2026-02·9sessions·[[ledger/2026-02.md]]",
        "-Feb4toFeb5·,2sessions[[memory/y--summary.md|summary]]^a-mbuecj",
    )  # fmt: skip
    assert word_share(PAGE) == len("".join(words)) / len("".join([*words, *other]))
    assert word_share("# Working Memory\n") == 1.0


def test_two_thirds_of_a_page_are_words(tmp_path):
    vault = Vault(tmp_path / "vault")
    assert vault.call("demo", str(tmp_path / "demo")).code == 0
    pages = [tmp_path / "demo/MEMORY.md", tmp_path / "demo/agents/researcher/MEMORY.md"]
    assert [word_share(page.read_text()) > 0.75 for page in pages] == [True, True]
