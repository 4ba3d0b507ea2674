"""The head of MEMORY.md and its temporal index: what is shown, in which order, and what its lines say."""

from __future__ import annotations

import re

import artifacts_fixture as made
import graph_rows as rows
import pytest
from workbench import Vault

from signet_sync.formats.timestamps import DAY
from signet_sync.memories.score import DreamedView, Use
from signet_sync.pages import sections
from signet_sync.pages.board import MORE, blocks, choose
from signet_sync.pages.memory_page import Rendered, render
from signet_sync.pages.sections import SECTIONS, BoardInputs
from signet_sync.pages.stage import projection
from signet_sync.pages.store import views
from signet_sync.storage.database.connection import Database

NOW_US = rows.us("2026-03-29T12:00:00Z")


@pytest.fixture
def database():
    database = Database(":memory:")
    yield database
    database.close()


def page(database, *, budget=5000, now_us=NOW_US, agent_id="default") -> Rendered:
    """The page of an agent from rows, as the agent composes it."""
    return render(projection(database, agent_id, now_us, budget, 30, ""), budget)


def lines_of(rendered, section) -> list[str]:
    _, _, rest = rendered.text.partition(f"\n## {section}\n\n")
    return rest.partition("\n\n")[0].split("\n") if rest else []


# ── under pressure ──


def test_what_has_risen_stands_once_under_its_sweep_best_first():
    now_us = rows.us("2026-03-03")
    dreamed = {
        f"m-{letter * 12}": DreamedView(rows.us(f"2026-03-0{day}T03:00:00Z"), score, 5, 3)
        for letter, day, score in (("a", 1, 0.5), ("b", 2, 0.4), ("c", 2, 0.8))
    }
    ids = (*dreamed, "m-" + "d" * 12)
    told = [sections.StatementView(one, "decision", f"{one} is so", "", rows.us("2026-01-01"), "") for one in ids]
    seen = BoardInputs(statements=told, dreamed=dreamed)
    found = filled(seen, 400, now_us)
    assert [line[:24] for line in found["## Dreamed"]] == [
        "### 2026-03-02 03:00 UTC", "", "- m-cccccccccccc is so _", "- m-bbbbbbbbbbbb is so _", "",
        "### 2026-03-01 03:00 UTC", "", "- m-aaaaaaaaaaaa is so _",
    ]  # fmt: skip
    assert found["## Dreamed"][2] == "- m-cccccccccccc is so _(score=0.80, hits=5, days=3)_ ^m-cccccccccccc"
    (line,) = found["## Decisions & Constraints"]
    assert "dddd" in line
    pinned = filled(seen._replace(uses={"m-" + "a" * 12: Use(pinned=True)}), 400, now_us)
    assert pinned["## Dreamed"][0].startswith("- 📌 m-aaaaaaaaaaaa is so _"), "what is pinned stands first"
    # What has risen is as new as its rise: the old one goes first.
    tight = filled(seen, 150, now_us)
    assert tight["## Dreamed"] and "dddd" not in str(tight)


def filled(seen: BoardInputs, budget=900, now_us=NOW_US) -> dict[str, list[str]]:
    """The lines of each section."""
    return dict(blocks(choose(sections.candidates(seen, now_us), SECTIONS, budget), SECTIONS))


# ── what the lines say ──


def thread_of(**given_) -> sections.ThreadView:
    fields = {
        "id": "t-aaaaaaaaaaaa", "project": "/code/lantern/", "session_key": None, "harness": "codex", "status": "open",
        "sessions": 4, "latest_us": rows.us("2026-03-28"), "sample": "The wick burns.",
        "path": rows.path_of(1, "2026-03-28"),
    }  # fmt: skip
    return sections.ThreadView(**fields | given_)


TODAY = rows.us("2026-03-29T00:00:00Z")


@pytest.mark.parametrize(
    ("given_", "line"),
    [
        ({}, "**lantern** (open, Mar 28, 4 sessions): The wick burns."),
        ({"status": "settled", "sessions": 1}, "**lantern** (Mar 28): The wick burns."),
        ({"project": None}, "**codex, no project** (open, Mar 28, 4 sessions): The wick burns."),
        ({"sample": "lantern: The wick burns; blocked: there is no oil.", "status": "blocked"},
         "**lantern** (blocked, Mar 28, 4 sessions): The wick burns."),
        ({"sample": "The wick burns; open: the glass is to be cleaned"},
         "**lantern** (open, Mar 28, 4 sessions): The wick burns."),
    ],
)  # fmt: skip
def test_the_line_of_a_thread_says_where_it_is(given_, line):
    """What blocks it and what is next say statements, as long as they hold."""
    assert sections.thread_line(thread_of(**given_), TODAY) == line


PATH = rows.path_of(1, "2026-03-28")


def statement(number, kind, text, day="2026-03-28", project="/code/lantern", **more) -> sections.StatementView:
    return sections.StatementView(f"f-{'abcdefghij'[number] * 12}", kind, text, project, rows.us(day), PATH, **more)


@pytest.mark.parametrize(
    ("view", "line"),
    [
        (statement(0, "decision", "A thing"), "A thing (lantern, Mar 28)"),
        (statement(0, "next", "A thing", project=None), "next: A thing (Mar 28)"),
        (statement(0, "decision", "A thing", speaker="person"), "A thing (lantern, Mar 28)"),
        (statement(0, "decision", "A thing", speaker="agent"), "A thing (agent) (lantern, Mar 28)"),
        (statement(0, "decision", "A thing (agent)", speaker="agent"), "A thing (agent) (lantern, Mar 28)"),
        (statement(0, "next", "A thing", "2026-03-10"), "next: A thing (lantern, Mar 10)"),
    ],
)  # fmt: skip
def test_the_line_of_a_statement_says_whose_it_is_and_of_which_day(view, line):
    assert sections.statement_line(view, TODAY, named=True) == line
    assert sections.statement_line(view, TODAY, named=False) == line.replace("lantern, ", "").replace(" (lantern)", "")


def test_the_lines_of_memories_and_entities():
    memory = sections.StatementView("m-1", "preference", "A thing\n\n  of two lines", "", rows.us("2026-03-28"), "")
    assert sections.statement_line(memory, TODAY, named=True) == "preference: A thing of two lines (remembered Mar 28)"
    note = statement(0, "note", "A note", project=None)
    lines = sections.candidates(BoardInputs(statements=[note, memory._replace(kind="note")]), NOW_US)
    assert min(lines, key=lambda line: line.rank).id == "m-1", "what was remembered is worth more"
    entry = sections.EntityEntry("p-1", "part", "Inner Critic", "protector", "active", "Warns.", 0, "entities/x.md")
    assert sections.entity_line(entry) == "**Inner Critic** (protector): Warns."
    assert sections.entity_line(entry._replace(type=None)) == "**Inner Critic**: Warns."
    reviews = entry._replace(kind="relationship", title="Jo reviews lantern", type="reviews", status="resting")
    assert sections.entity_line(reviews) == "**Jo reviews lantern** (reviews, resting): Warns."


def test_what_is_forgotten_leaves_the_pages_unless_it_is_pinned():
    statements = [
        statement(0, "next", "Trim the wick", "2026-03-05"), statement(1, "next", "Buy oil", "2026-03-08"),
        statement(2, "question", "Which glass?", "2026-03-05"),
        statement(3, "blocker", "No oil in the tank", "2026-03-05"),
        statement(6, "next", "Sweep the tower", "2026-03-05", project="/code/other"),
    ]  # fmt: skip
    seen = BoardInputs([thread_of(latest_us=rows.us("2026-03-27"))], statements)

    def shown(seen: BoardInputs) -> set[str]:
        return {line.id[2] for line in sections.candidates(seen, NOW_US) if line.id.startswith("f-")}

    assert shown(seen) == set("bdg")
    pins = {view.id: Use(pinned=True) for view in statements}
    assert shown(seen._replace(uses=pins)) == set("abcdg")
    template = "Session x captured durable summary context, preserved lineage metadata, and more."
    silent = BoardInputs([thread_of(sample=template)])
    assert sections.candidates(silent, NOW_US) == []
    assert len(sections.candidates(silent._replace(uses={"t-aaaaaaaaaaaa": Use(pinned=True)}), NOW_US)) == 1


def test_a_persons_decisions_come_before_an_agents():
    statements = [statement(0, "decision", "Burn oil"), statement(1, "decision", "Burn coal (agent)", "2026-03-29"),
             statement(2, "decision", "Burn wood", "2026-03-01")]  # fmt: skip
    lines = filled(BoardInputs(statements=statements))["## Decisions & Constraints"]
    assert [line.split()[2] for line in lines if line.startswith("- ")] == ["oil", "wood", "coal"]


def test_a_thread_is_followed_by_the_steps_of_its_project_and_says_nothing_twice():
    statements = [statement(0, "next", "Ask Bob"), statement(1, "next", "Sketch the pier", project="/code/pier"),
             statement(2, "decision", "The wick burns")]  # fmt: skip
    pier = thread_of(id="t-bbbbbbbbbbbb", project="/code/pier", sample="The pier is drawn.", newest="s-cccccccccccc",
                     latest_us=rows.us("2026-03-29"))  # fmt: skip
    (lines, *others) = filled(BoardInputs([thread_of(), pier], statements)).values()
    assert [line.partition("^")[2] for line in lines] == ["s-cccccc ^t-bbbbbb", "f-bbbbbb", "t-aaaaaa", "f-aaaaaa"]
    assert not others, "the thread's line says what was decided"
    words = "Get oil. Decision: every wick is lit by hand"
    decision = statement(2, "decision", "Every wick is lit by hand")
    for sample in (f"The oil came (asked: {words}).", f"Asked: {words}; answered: Today.", f"Asked: {words}."):
        assert len(filled(BoardInputs([thread_of(sample=sample)], [decision]))) == 2, sample


def test_of_an_older_list_only_what_is_pinned_is_shown(database):
    older = rows.statement(database, "next", "Trim the wick", "2026-03-27", status="replaced")
    assert f"^{older[:8]}" not in page(database).text
    rows.pin(database, older)
    assert f"^{older[:8]}" in page(database).text


# ── what is read ──


def test_accesses_of_today_change_nothing_until_tomorrow(database):
    low = rows.statement(database, "note", "The tank leaks", "2026-03-01", project=None)
    rows.statement(database, "note", "The tank is green", "2026-03-02", project=None)
    before = page(database).text
    rows.use(database, low, 40, "2026-03-29")
    assert page(database).text == before
    tomorrow = page(database, now_us=NOW_US + DAY)
    assert lines_of(tomorrow, "Open Blockers & Technical Notes")[0].startswith("- The tank leaks")
    # What counted before today goes on counting.
    rows.use(database, low, 41, "2026-03-29", before=40, before_day="2026-03-28")
    after = page(database).text
    assert lines_of(page(database), "Open Blockers & Technical Notes")[0].startswith("- The tank leaks")
    rows.use(database, low, 99, "2026-03-29", before=40, before_day="2026-03-28")
    assert page(database).text == after


def test_what_is_used_or_pinned_is_read_however_old(database):
    old = [rows.statement(database, "note", f"An old note {n}", "2024-01-01", number=n) for n in range(2)]
    oldest = rows.thread(database, "attic", "2023-01-01")
    kept = rows.memory(database, "note", "An old memory", "2022-01-01")
    for number in range(90):
        rows.statement(database, "note", f"Note {number}", "2026-03-01", number=number)
        rows.thread(database, f"project-{number}", "2026-03-02", number=number)
        rows.memory(database, "note", f"Memory {number}", "2026-03-03")
    rows.use(database, old[0], 3, "2026-03-20")
    rows.pin(database, oldest)
    rows.pin(database, kept)
    most = 50
    seen = views.page_inputs(database, "default", NOW_US, most)
    found = {view.id for views in (seen.threads, seen.statements) for view in views}
    assert {old[0], oldest, kept} <= found and old[1] not in found
    # A memory is worth more than a note, so that the best fifty are memories.
    remembered = sum(view.is_memory for view in seen.statements)
    assert (len(seen.statements) - remembered, len(seen.threads), remembered) == (1, most + 1, most + 1)
    assert seen.more and not views.page_inputs(database, "default", NOW_US, 500).more
    assert seen.uses[oldest] == Use(0, None, True) and seen.uses[old[0]] == Use(3, rows.us("2026-03-20T00:00:00Z"))


def test_nothing_is_left_out_by_its_kind_and_that_something_did_not_fit_is_said(database):
    for number in range(30):
        rows.statement(database, "decision", f"Decision {number} of lantern", "2026-03-28", number=number)
        rows.memory(database, "note", f"Memory {number} is kept", "2026-03-01")
    text = page(database).text
    assert len(re.findall(r"Decision \d+ of lantern", text)) == len(re.findall(r"Memory \d+ is kept", text)) == 30
    assert MORE not in text
    for budget in (600, 900, 1200):
        tight = page(database, budget=budget)
        assert tight.tokens <= budget and tight.text.count(MORE) == 1


def test_what_is_settled_of_the_future_noise_or_of_another_agent_is_not_shown(database):
    rows.statement(database, "decision", "Superseded one", "2026-03-28", status="withdrawn")
    rows.statement(database, "next", "Done one", "2026-03-28", status="done")
    rows.thread(database, "future", "2026-03-30")
    rows.node(database, "summary", 1, "2026-03-30", thread_id="t-future")
    rows.node(database, "summary", 2, "2026-03-28", label="Noise one")
    for agent_id in ("scout", "Default"):
        rows.pin(
            database, rows.statement(database, "decision", "Theirs", "2026-03-28", agent_id=agent_id), agent_id=agent_id
        )
        rows.thread(database, "theirs", "2026-03-28", agent_id=agent_id)
        rows.memory(database, "note", "Theirs too", "2026-03-28", agent_id=agent_id)
        rows.node(database, "summary", 3, "2026-03-28", thread_id="t-theirs", agent_id=agent_id)
    assert page(database).text == "# Working Memory\n\n## Session Ledger (Last 30 Days)\n\n- no in-window sessions yet."
    assert "Theirs" in page(database, agent_id="scout").text


# Of the index: day, project and sentence of each session.
TOLD = {
    1: ("2026-03-29", "lantern", "In lantern the retry loop of src/queue.py now gives up after five tries, so a dead "
        "broker no longer blocks a start."),
    2: ("2026-03-20", "pier", "Sketched the harbour map of pier in docs/map.md and agreed with Bob on the scale of its "
        "chart."),
    3: ("2026-03-05", "lantern", "Wrote the first wick of lantern in src/wick.py and let it burn through one night "
        "under tests."),
    4: ("2026-03-04", "lantern", "Set up the repository of lantern with src/wick.py, a licence and one test that fails "
        "for a reason."),
}  # fmt: skip


def test_the_index_says_what_sections_and_session_log_do_not(database):
    who = {"harness": "codex"}
    files = dict(
        made.summary(session_id=f"s-{number}", captured_at=f"{day}T10:00:00.000Z", memory_sentence=sentence,
                     project=f"/home/ada/code/{project}", **who)
        for number, (day, project, sentence) in TOLD.items()
    )  # fmt: skip
    made.fill(database, made.judged(files))
    threads = {
        name: rows.thread(database, name, TOLD[number][0], sample=TOLD[number][2], number=number)
        for name, number in (("lantern", 1), ("pier", 2))
    }
    nodes = {}
    for number, (day, project, sentence) in TOLD.items():
        nodes[number] = rows.node(database, "summary", number, day, thread_id=threads[project], label=sentence)
        rows.session(database, threads[project], number, day, sentence)
    arc = rows.node(
        database, "condensation", "arc", "2026-03-05", since="2026-03-04", thread_id=threads["lantern"], kind="arc",
        children=(nodes[3], nodes[4]), label=f"2 sessions of 2026-W10: {TOLD[3][2]}",
    )  # fmt: skip
    assert not [*views.lineage(database, "scout", NOW_US, condensed=True)]
    # All sessions are in the session log: the index has nothing to add.
    assert "## Temporal Index" not in page(database).text
    # Three weeks later it has sessions that are out of the window, each once.
    later = page(database, now_us=rows.us("2026-04-20"))
    month, condensed, *sessions = lines_of(later, "Temporal Index")
    assert month == "- 2026-03 · 4 sessions · [[ledger/2026-03.md]]"
    link = f"[[{rows.path_of(3, '2026-03-05')}|summary]] ^{arc[:8]}"
    assert condensed == f"- Mar 4 to Mar 5 · lantern, 2 sessions: {TOLD[3][2]} {link}"
    assert sessions == [f"- Mar 4 · lantern: {TOLD[4][2]} [[{rows.path_of(4, '2026-03-04')}|summary]] ^{nodes[4][:8]}"]


# ── by the agent ──


def test_a_page_changes_by_itself_at_midnight_or_when_a_session_leaves_the_window(tmp_path):
    vault = Vault(tmp_path / "vault")
    for number, captured_at, then in (
        (1, "2026-03-20T10:00:00.000Z", rows.us("2026-03-30T00:00:00Z")),
        (2, "2026-02-27T20:00:00.000Z", rows.us("2026-03-29T20:00:00Z") + 1),
    ):
        vault.session(number, captured_at=captured_at)
        vault.reindex(now="2026-03-29T12:00:00.000Z")
        assert vault.rows("select next_us from pages where path = 'MEMORY.md'") == [(then,)]


def test_projects_of_one_name_show_what_tells_them_apart():
    assert sections.distinct_names(["/x/lantern", "example.org/ada/prism", None, ""]) == {}
    apart = {"github.com/acme/shop": "acme/shop", "/home/ada/old/shop": "old/shop"}
    assert sections.distinct_names([*apart, "/x/lantern", *apart]) == apart
    assert sections.distinct_names(["/x/a/Shop", "/y/a/shop"]) == {"/x/a/Shop": "x/a/Shop", "/y/a/shop": "y/a/shop"}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Send the report (^f-bmhpdq ^f-dfsvlj).", "Send the report."),
        ("Send the report ^f-bmhpdq", "Send the report"),
        ("See ^s-abcdef before it", "See ^ s-abcdef before it"),
    ],
)
def test_a_text_shows_no_handles_of_what_it_ends_and_none_that_could_be_ours(text: str, shown: str) -> None:
    assert sections.inert(text) == shown
