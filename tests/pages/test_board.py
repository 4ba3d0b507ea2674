"""The choice of lines: each statement once, best first, within the budget; how they are laid out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signet_sync.formats.managed_block import drop_matching
from signet_sync.memories.score import rank
from signet_sync.pages.board import MORE, Board, Line, Said, blocks, choose
from signet_sync.pages.sections import SECTIONS
from signet_sync.text.token_estimate import estimate_tokens

SAME = [
    ("Every migration needs Priya's approval.", "every migration needs Priya's approval"),
    ("The harbour office signs off every chart of pier.", "Harbour office signs off every chart of pier"),
    ("Priya owns the warehouse schema and approves every migration, so she reads the summary.",
     "Priya owns the warehouse schema, and approves every migration."),
]  # fmt: skip
OTHER = [
    ("Retry limit of lantern is 5", "Retry limit of lantern is 7"),
    ("The queue of lantern is not read lazily", "The queue of lantern is read lazily"),
    ("Deploy pier on Tuesdays", "Deploy pier on Tuesdays only after 18:00"),
    ("lantern depends on pier for tides", "pier depends on lantern for tides"),
    ("Keep logs short", "Keep logs"),
    ("港務局はまだ深さを送っていない", "港務局は深さを送った"),
]


@pytest.mark.parametrize(
    ("said", "new", "same"), [*((*pair, True) for pair in SAME), *((*one, False) for one in OTHER)]
)
def test_what_is_a_part_of_a_statement_says_the_same_and_nothing_else_does(said, new, same):
    page = Said()
    page.add(said, "lantern")
    assert page.holds(new, "lantern") == page.holds(new) == same


def test_other_projects_may_say_the_same_in_other_words_and_a_sentence_contains_what_it_says():
    page = Said()
    page.add("The harbour office signs off every chart", "pier")
    assert not page.holds("The harbour office signs off", "lantern")
    page.add("Since the harbour office sent the depths, the chart of pier is drawn at 1:5,000.", "pier", sentence=True)
    assert page.holds("The chart is drawn at 1:5,000", "pier") and not page.holds("The chart is drawn", "lantern")


def line(section, number, text, at, score, pinned, *, group="", place=0.0) -> Line:
    one = f"f-{number:012d}"
    order = (not pinned, place, *rank(score, at, one, pinned=pinned))
    return Line(one, section, text, rank(score, at, one, pinned=pinned), text, order, group=group)


def filled(lines, budget) -> Board:
    return choose(lines, SECTIONS, budget)


SAYINGS = st.sampled_from(
    ["Ada", "ADA", "ada.", "the wick", "燈塔", "a longer saying about src/queue.py and its broker"]
)
LINES = st.lists(
    st.builds(
        lambda section, number, saying, at, score, pinned: line(
            section, number, f"{saying} {number % 7}", at, score, pinned,
            group=f"### 2026-03-0{1 + number % 3}" if section == "dreamed" else "", place=-(number % 3),
        ),
        st.sampled_from(list(SECTIONS)), st.integers(0, 99), SAYINGS, st.integers(0, 5),
        st.sampled_from([0.0, 0.25, 0.5, 1.0]), st.booleans(),
    ),
    max_size=30, unique_by=lambda one: one.id,
)  # fmt: skip


@given(LINES, st.integers(-5, 500), st.randoms(use_true_random=False))
def test_a_board_is_within_its_budget_says_things_once_and_drops_the_lowest(lines, budget, chance):
    board = filled(lines, budget)
    laid_out = blocks(board, SECTIONS)
    text = "\n\n".join("\n".join([heading, "", *some]) for heading, some in laid_out)
    assert estimate_tokens(f"{text}\n\n{MORE}") + 2 <= max(budget, 0) if text else True
    assert blocks(filled(chance.sample(lines, len(lines)), budget), SECTIONS) == laid_out
    said, ended = set(), False
    for one in sorted(lines, key=lambda one: one.rank):
        words = one.text.casefold().replace(".", "")
        if one.id in board.line_ids:
            assert not ended and words not in said
            said.add(words)
        elif words not in said and estimate_tokens(one.render()) + 90 <= budget:
            ended = True
    bullets = [line for _, some in laid_out for line in some if line.startswith("- ")]
    assert len(bullets) == len(board.line_ids)


def test_a_line_that_can_never_be_shown_is_passed_over():
    long, short = (line("people", n, f"{n} word " * n, 0, n / 100, False) for n in (90, 5))
    assert filled([long, short], 80).line_ids == {short.id}
    assert filled([long, short], 400).line_ids == {long.id, short.id}
    # But nothing of less worth takes the place of what would fit alone.
    six = line("people", 6, "other " * 5, 0, 1.0, False)
    least = next(budget for budget in range(1_000) if filled([long], budget).line_ids)
    assert filled([long, short, six], least + 6).line_ids == {six.id}


def test_with_its_last_line_a_heading_goes():
    lines = b"# A\n\n### one\n\n- x\n\n### two\n\n- x\n- y\n\n### three\n\n## B"
    left = drop_matching(lines, lambda line: line == b"- x")
    assert left == b"# A\n\n### two\n\n- y\n\n### three\n\n## B"
    assert drop_matching(lines, lambda line: False) == lines
