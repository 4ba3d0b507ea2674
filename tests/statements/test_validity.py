"""Which statements still hold: a case for each rule, and cases that must not end anything."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signet_sync.formats.statement import Kind, Speaker
from signet_sync.statements.validity import Known, Mark, Outcome, Settled, settle_statements, status_now, word_hashes

OPEN = ("open", None)
HELD = "a statement"  # the one of a case whose end is asked for: of the session and day 1


def said(
    text: str,
    day: int = 2,
    kind: Kind = "decision",
    *,
    speaker: Speaker = "agent",
    session: int | None = None,
    artifact: int = 1,
    done: bool = False,
) -> Known:
    """A statement of a session of its own on a day, unless the session is given."""
    one = f"f-{kind}-{day}-{text}"
    return Known(hash(one), one, kind, text, speaker, day, session if session is not None else day, artifact, done)


def held(text: str, kind: Kind = "decision", *, speaker: Speaker = "agent", artifact: int = 1) -> Known:
    """The statement of the first day."""
    return said(text, 1, kind, speaker=speaker, artifact=artifact)._replace(number=0, id=HELD)


def came(
    sentence: str = "", day: int = 2, status: str | None = "done", *, session: int | None = None, deeds: str = "",
    worked: str = "",
) -> Outcome:  # fmt: skip
    return Outcome(session if session is not None else day, day, sentence, status, deeds, worked)


def marked(one: Known, status: str, day: int, *, text: str = "", by: str = "f-of-an-older-wording") -> Mark:
    return Mark(by, one.kind, word_hashes(text or one.text), status, day)  # type: ignore[arg-type]


def end_of(one: Known, *others: Known | Outcome | Mark) -> Settled:
    """What becomes of the statement among others."""
    known = [one, *(other for other in others if isinstance(other, Known))]
    outcomes = [other for other in others if isinstance(other, Outcome)]
    marks = [other for other in others if isinstance(other, Mark)]
    own = {other.id: other.at_us for other in known if other.speaker == "person"}
    found = settle_statements(known, outcomes, marks, (), own)
    assert settle_statements(known[::-1], outcomes[::-1], marks[::-1], (), own) == found
    return found[one.number]


STORE = held("Storage: the ledger is kept in SQLite")
STEP = held("Measure the retry loop of the queue", "next")
BLOCKER = held("The signing key of the release is missing", "blocker")
WISH = held("Answers are short and in German", "preference", speaker="person")
NAMED = WISH._replace(id="f-abcdefgh2345")
AGAIN = "Storage: the whole ledger is kept in SQLite"
LONG = held("Add a layer of checks between making and sending an order (caps, rates, the keeper confirms)", "next")
MADE = "feat: add checks of an order: caps and rates"
DEAD = held('"oil run wick" is not a command here; "run wick" worked', "tried")
LIVE = held("Trim the wick of the lamp", "next", artifact=-1)

# What ends a statement: the rule, the statement, what comes besides, and what becomes of it.
ENDS: dict[str, tuple[Known, tuple[Known | Outcome | Mark, ...], str]] = {
    "a newer list of the session": (STEP, (said("Ship the release", 2, "next", session=1),), "replaced"),
    "nearly the same words": (STORE, (said(AGAIN),), "replaced"),
    "another number": (
        held("The retry loop has a budget of 5 tries"), (said("The retry loop has a budget of 12.5 tries"),), "replaced"
    ),
    "a person over an agent": (STORE, (said("Storage: ledger kept in SQLite", speaker="person"),), "replaced"),
    "a deed with the step's words": (STEP, (came("Measured the retry loop of the queue: 4 ms"),), "done"),
    "a deed of a session that goes on": (STEP, (came("The queue's retry loop was measured", status="open"),), "done"),
    "a deed that ends a blocker": (BLOCKER, (came("The missing signing key of the release came"),), "done"),
    "an outcome with its rare words": (
        held("Repeat the drill after a full night and expect 61,902 files", "next"),
        (came("The repeated restore drill found all 61,902 files identical"),), "done",
    ),
    "a commit with some of its rare words": (LONG, (came(deeds=f"ci: faster\n{MADE}"),), "done"),
    "a commit with its branch and name": (LONG, (came(deeds=f"[pier 1a2b3c4] {MADE}"),), "done"),
    "a dead end that worked later": (DEAD, (came(worked="run wick\noil run wick"),), "done"),
    "a dead end that worked in its session": (DEAD, (came(day=1, session=1, worked="oil run wick"),), "done"),
    "done, by its id": (STEP, (marked(STEP, "done", 2, by=HELD, text="x"),), "done"),
    "withdrawn, by its id": (STORE, (marked(STORE, "withdrawn", 2, by=HELD, text="x"),), "withdrawn"),
    "done, by an older wording": (STEP, (marked(STEP, "done", 2, text="Measure the queue's retry loop"),), "done"),
    "a person over a person, by the handle": (
        NAMED, (said("f-abcdefgh: answers are long", 2, "preference", speaker="person"),), "replaced"
    ),
    "done, by more words of its session": (
        STEP, (marked(STEP, "done", 2, text=f"{STEP.text} and of all its five workers")._replace(session=1),), "done"
    ),
    "withdrawn, whenever it was said": (STORE, (marked(STORE, "withdrawn", 0),), "withdrawn"),
    "the last mark": (STEP, (marked(STEP, "open", 2), marked(STEP, "done", 3)), "done"),
    "what a person marks is above what was said": (
        STORE, (said(AGAIN), marked(STORE, "withdrawn", 3)), "withdrawn"
    ),
}  # fmt: skip

# What must not end a statement.
HOLDS: dict[str, tuple[Known, tuple[Known | Outcome | Mark, ...]]] = {
    "nothing else": (STEP, ()),
    "another command": (DEAD, (came(worked="run wick\noil run wick --all"),)),
    "a command that worked before": (DEAD, (came(day=0, worked="oil run wick"),)),
    "another session's list": (STEP, (said("Ship the release", 2, "next"),)),
    "a list of another kind": (STEP, (said("No broker answers", 2, "blocker", session=1),)),
    "a running session's next words": (LIVE, (said("Ship the release", 2, "next", session=1, artifact=-1),)),
    "what was said before": (STORE, (said("Storage: ledger kept in SQLite", 0),)),
    "the same words of another kind": (STORE, (said("Storage: ledger kept in SQLite", 2, "note"),)),
    "half of the words": (STORE, (said("Storage: the pages are kept in files"),)),
    "other words beside the number": (
        held("The retry loop has a budget of 5 tries"), (said("The page cache has a budget of 12 tokens"),)
    ),
    "an agent over a person, by the handle": (NAMED, (said("f-abcdefgh: answers are long", 2, "preference"),)),
    "an agent over a person": (WISH, (said("Short answers in German", 2, "preference"),)),
    "what was only asked for": (STEP, (came("lantern: asked: measure the retry loop of the queue", status="open"),)),
    "a failed deed": (STEP, (came("Measured the retry loop of the queue", status="aborted"),)),
    "a deed that is blocked": (STEP, (came("Measured the retry loop of the queue", status="blocked"),)),
    "a deed of the session itself": (STEP, (came("Measured the retry loop of the queue", 2, session=1),)),
    "a deed with some of its words": (STEP, (came("Measured the page cache of the queue"),)),
    "an outcome with three of its words": (
        held("Repeat the drill after a full night and expect 61,902 files", "next"), (came("A drill: 61,902 files"),)
    ),
    "a commit with three of its words": (LONG, (came(deeds="feat: caps of an order, checks"),)),
    "a commit with words of every session": (
        LONG, (*(came(day=day, deeds=f"{MADE} {day}") for day in (-2, -1, 0)), came(deeds=MADE)),
    ),
    "a commit that a decision speaks of": (LONG._replace(kind="decision"), (came(deeds=MADE),)),
    "a mark for other words": (STEP, (marked(STEP, "done", 2, text="Measure the page cache"),)),
    "a mark for the same words of another kind": (STORE, (marked(STEP, "withdrawn", 2, text=STORE.text),)),
    "said by the person after it was not true": (WISH, (marked(WISH, "withdrawn", 0, by=HELD),)),
    "open again though it was replaced": (
        STORE, (said(AGAIN), marked(STORE, "open", 3, by=HELD))
    ),
}  # fmt: skip


@pytest.mark.parametrize(("one", "others", "status"), ENDS.values(), ids=ENDS)
def test_what_ends_a_statement(one, others, status):
    assert end_of(one, *others)[0] == status


@pytest.mark.parametrize(("one", "others"), HOLDS.values(), ids=HOLDS)
def test_what_does_not_end_a_statement(one, others):
    assert end_of(one, *others) == OPEN


def test_what_replaces_a_statement_is_named_and_holds():
    newer = said(AGAIN)
    found = settle_statements([STORE, newer], [], [], (), {})
    assert (found[STORE.number], found[newer.number]) == (("replaced", newer.id), OPEN)


def test_what_is_ticked_is_done_whatever_comes_later():
    ticked = STEP._replace(done=True)
    assert end_of(ticked, said("Ship the release", 2, "next", session=1), said(STEP.text, 2, "next")) == ("done", None)


TEXT = st.sampled_from(
    ["The ledger is kept in SQLite", "The whole ledger is kept in SQLite", "The budget is 5 tries",
     "The budget is 7 tries", "Measure the retry loop", "Measured the retry loop", "用 SQLite 保存账本", ""]
)  # fmt: skip
KNOWN = st.builds(
    said, TEXT, st.integers(0, 3), st.sampled_from(["decision", "next", "question"]),
    speaker=st.sampled_from(["person", "agent"]), session=st.integers(0, 2), artifact=st.sampled_from([-1, 1]),
    done=st.booleans(),
)  # fmt: skip
OUTCOME = st.builds(came, TEXT, st.integers(0, 3), st.sampled_from(["done", "aborted", None]))
MARK = st.builds(
    marked, KNOWN, st.sampled_from(["done", "withdrawn", "open"]), st.integers(0, 9), by=st.sampled_from("ab")
)


@pytest.mark.parametrize(("one", "day", "expected"), [
    (STEP, 2, ("done", None)), (BLOCKER, 2, ("done", None)), (STORE, 2, OPEN), (STEP, 1, OPEN),
])  # fmt: skip
def test_what_a_later_session_carried_out_by_its_handle_is_done(one: Known, day: int, expected: Settled) -> None:
    known = one._replace(id="f-abcdefgh2345")
    assert end_of(known, said("f-abcdefgh: it works on every machine", day, "next", done=True)) == expected


@given(
    st.lists(KNOWN, max_size=8, unique_by=lambda one: one.id),
    st.lists(OUTCOME, max_size=4),
    st.lists(MARK, max_size=2, unique_by=lambda one: (one.at_us, one.id)),
    st.randoms(use_true_random=False),
)
def test_the_order_in_which_they_are_given_does_not_matter(known, outcomes, marks, random):
    found = settle_statements(known, outcomes, marks, (), {})
    assert found.keys() == {one.number for one in known}
    for some in (known, outcomes, marks):
        random.shuffle(some)
    assert settle_statements(known, outcomes, marks, (), {}) == found


@pytest.mark.parametrize(("ended", "left", "expected"), [
    ("blocked", {}, "blocked"), ("blocked", {"blocker": True, "next": False}, "blocked"),
    ("blocked", {"blocker": False}, "open"), ("blocked", {"blocker": False, "next": True}, "open"),
    ("blocked", {"blocker": False, "next": False}, "done"), ("open", {}, "open"), ("open", {"next": False}, "done"),
    ("open", {"next": False, "question": True}, "open"), ("open", {"next": False, "blocker": True}, "open"),
    ("done", {"next": True}, "done"), ("aborted", {"next": False}, "aborted"), (None, {"blocker": True}, None),
])  # fmt: skip
def test_a_session_is_blocked_or_open_while_something_of_it_is(
    ended: str | None, left: dict[str, bool], expected: str | None
) -> None:
    assert status_now(ended, left) == expected
