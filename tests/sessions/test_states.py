"""The desk of the write flows: every combination of facts has a name, and every name leads to the end of the flow."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from signet_sync.formats.body import normalize
from signet_sync.sessions.states import (
    FlowKind,
    FlowObservation,
    FlowState,
    FlowStep,
    Quality,
    cut_parts,
    kinds_of,
    new_part,
    next_step,
    state_of,
)

KINDS: tuple[FlowKind, ...] = ("end", "compact")
WRITES = {FlowStep.TRANSCRIPT, FlowStep.SUMMARY, FlowStep.COMPACTION, FlowStep.MANIFEST}


def every_fact(kind: FlowKind) -> Iterator[FlowObservation]:
    """Every combination of what can be seen of a flow, the impossible ones among them."""
    for names in {kinds_of(kind, ()), kinds_of(kind, {"transcript"})}:
        for files in itertools.product(("absent", "ours", "other"), repeat=len(names)):
            for sentence in (None, "ok", "fallback"):
                for flags in itertools.product((False, True), repeat=7):
                    yield FlowObservation(kind, tuple(zip(names, files, strict=True)), sentence, *flags)


def step_of(facts: FlowObservation) -> FlowStep:
    return next_step(state_of(facts), facts.kind, segment=dict(facts.files).get("transcript") is not None)


def after(facts: FlowObservation, step: FlowStep, quality: Quality = "ok") -> FlowObservation:
    """What is seen when a step was done: nothing else moves."""
    if step.value in dict(facts.files):
        files = tuple((name, "ours" if name == step.value else what) for name, what in facts.files)
        return facts._replace(files=files)
    changes = {
        FlowStep.SENTENCE: {"sentence": quality}, FlowStep.MANIFEST: {"linked": True},
        FlowStep.RECONCILE: {"indexed": True, "projected": True},
        FlowStep.RESET: {"live": False}, FlowStep.ANSWER: {"answered": True}, FlowStep.FORGET: {"journalled": False},
    }  # fmt: skip
    return facts._replace(**changes[step])


def walk(facts: FlowObservation, quality: Quality = "ok") -> list[FlowStep]:
    """The steps from what is seen to the end of the flow."""
    steps: list[FlowStep] = []
    while len(steps) < 12:
        step = step_of(facts)
        if step is FlowStep.NOTHING:
            return steps
        steps.append(step)
        if step is FlowStep.REFUSE:
            return steps
        facts = after(facts, step, quality)
    raise AssertionError(f"no end: {steps}")


@pytest.mark.parametrize("kind", KINDS)
def test_every_combination_of_facts_has_a_state_and_a_step(kind):
    seen = {state_of(facts) for facts in every_fact(kind)}
    of_endings = {FlowState.TRANSCRIPT_WITHOUT_SUMMARY, FlowState.SUMMARY_WITHOUT_TRANSCRIPT}
    of_compactions = {FlowState.SEGMENT_WITHOUT_COMPACTION, FlowState.COMPACTION_WITHOUT_SEGMENT}
    assert seen == set(FlowState) - (of_endings if kind == "compact" else of_compactions)
    assert all(isinstance(next_step(state, kind), FlowStep) for state in seen)


@pytest.mark.parametrize("quality", ["ok", "fallback"])
@pytest.mark.parametrize("kind", KINDS)
def test_from_every_combination_the_steps_come_to_an_end(kind, quality):
    for facts in every_fact(kind):
        steps = walk(facts, quality)
        assert len(steps) == len(set(steps)), (facts, steps)
        refused = not facts.answered and (facts.removed or "other" in dict(facts.files).values())
        if refused:
            assert steps == [FlowStep.REFUSE], (facts, steps)
        elif facts.answered:
            assert steps == ([FlowStep.FORGET] if facts.journalled else []), (facts, steps)
        else:
            assert steps[-1] is FlowStep.FORGET or not facts.journalled, (facts, steps)


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_done_before_what_it_stands_on(kind):
    for facts in every_fact(kind):
        step = step_of(facts)
        files = dict(facts.files)
        written = all(what == "ours" for what in files.values())
        if step in WRITES:
            assert not facts.answered and not facts.removed and "other" not in files.values(), facts
        if step.value in files:
            assert files[step.value] == "absent" and facts.sentence is not None, facts
        if step in (FlowStep.MANIFEST, FlowStep.RECONCILE, FlowStep.RESET, FlowStep.ANSWER):
            assert written, facts
        if step in (FlowStep.RECONCILE, FlowStep.RESET, FlowStep.ANSWER):
            assert facts.linked, facts
        if step in (FlowStep.RESET, FlowStep.ANSWER):
            assert facts.indexed and facts.projected, facts
        if step is FlowStep.ANSWER:
            assert not facts.live, facts
        if step is FlowStep.FORGET:
            assert facts.answered, facts


def test_the_order_of_seed_000_from_the_beginning():
    for kind, files, live, steps in (
        ("end", "transcript summary", True, "SENTENCE TRANSCRIPT SUMMARY MANIFEST RECONCILE RESET ANSWER FORGET"),
        ("compact", "compaction", False, "SENTENCE COMPACTION MANIFEST RECONCILE ANSWER FORGET"),
        ("compact", "transcript compaction", True,
         "SENTENCE TRANSCRIPT COMPACTION MANIFEST RECONCILE RESET ANSWER FORGET"),
    ):  # fmt: skip
        nothing = FlowObservation(kind, tuple((name, "absent") for name in files.split()), live=live)
        assert [step.name for step in walk(nothing)] == steps.split()


def ended(
    transcript: str = "ours", summary: str = "ours", sentence: str | None = "ok", **given: bool
) -> FlowObservation:
    return FlowObservation("end", (("transcript", transcript), ("summary", summary)), sentence, **given)


SIX = {
    "transcript written, summary failed": (ended(summary="absent"), FlowStep.SUMMARY),
    "sentence generated, artifact write failed": (ended("absent", "absent"), FlowStep.TRANSCRIPT),
    "sentence generation failed, fallback path engaged": (ended("absent", "absent", sentence="fallback"),
     FlowStep.TRANSCRIPT),
    "summary/transcript written, manifest failed": (ended(), FlowStep.MANIFEST),
    "artifacts+manifest written, MEMORY.md update failed": (ended(linked=True, indexed=True), FlowStep.RECONCILE),
    "canonical writes done, DB index update failed": (ended(linked=True), FlowStep.RECONCILE),
}  # fmt: skip


@pytest.mark.parametrize("name", SIX)
def test_the_six_partial_failures_of_seed_000(name):
    facts, step = SIX[name]
    assert state_of(facts) == name
    assert next_step(state_of(facts), "end") is step


def test_the_six_names_are_those_of_the_seed(shared):
    (place,) = (shared / "seeds").glob("000_*.txt")
    lines = [line.strip(" •\t") for line in place.read_text(encoding="utf-8").splitlines()]
    assert set(SIX) <= set(lines)


# ── segments ──

LINES = st.lists(
    st.text(st.sampled_from("ab# é\t🙂\u2028\u00a0\x0c"), max_size=30)
    | st.sampled_from(["", "", "## User", "## Assistant", "- a\tb", "word " * 30]),
    max_size=40,
)


def without_empty_lines(text: str) -> list[str]:
    return [line for line in text.split("\n") if line]


def joined(pieces: list[str]) -> str:
    return "".join(pieces).replace("\n", "")


@given(LINES, st.integers(24, 400))
@example(["# a", "", "", "b" * 100, "", "c"], 24)
@example(["a" + " " * 60 + "b", "c"], 32)
@example(["\x0c" * 100], 24)
def test_parts_lose_nothing_but_empty_lines_and_keep_to_the_limit(lines, limit):
    body = normalize("\n".join(lines))
    pieces = list(cut_parts(body, limit))
    assert all(len(piece.encode()) <= limit for piece in pieces)
    assert all(piece == normalize(piece) for piece in pieces)
    # A run of blanks within a line that is longer than a part stands for itself; it can't end up in one.
    if not any(" " * limit in line or "\t" * limit in line for line in lines):
        assert joined(pieces) == joined([body])
    if all(len(line.encode()) + 1 <= limit // 2 for line in lines):
        found = [line for piece in pieces for line in without_empty_lines(piece)]
        assert found == without_empty_lines(body)


def test_parts_are_cut_before_a_turn_else_a_paragraph_else_a_line():
    turns = "".join(f"## User\n\n{word * 30}\n\n{word * 30}\n\n" for word in "abc").rstrip("\n")
    assert [piece[:8] for piece in cut_parts(turns, 100)] == ["## User\n"] * 3
    paragraphs = "\n\n".join(word * 30 for word in "abcdef")
    assert [set(piece) - {"\n"} for piece in cut_parts(paragraphs, 100)] == [{*"abc"}, {*"def"}]
    lines = "\n".join(word * 30 for word in "abcdef")
    assert list(cut_parts(lines, 100)) == ["\n".join(word * 30 for word in three) for three in ("abc", "def")]


@given(LINES, st.integers(24, 400), st.lists(st.integers(0, 41), max_size=4))
def test_what_was_kept_in_parts_is_recognised_and_the_rest_is_what_is_new(lines, limit, cuts):
    whole = normalize("\n".join(lines))
    if any(" " * 20 in line or "\t" * 20 in line for line in lines):
        return
    bounds = sorted({min(cut, whole.count("\n") + 1) for cut in cuts})
    split = whole.split("\n")
    kept: list[str] = []
    for start, stop in itertools.pairwise([0, *bounds]):
        segment = normalize("\n".join(split[start:stop]))
        if kept:
            segment = segment.lstrip("\n")
        if segment.strip("\n"):
            kept += cut_parts(segment, limit)
    rest = new_part(whole, kept)
    new = "\n".join(split[bounds[-1] if bounds and kept else 0 :])
    if kept:
        assert rest is not None
        assert without_empty_lines(rest) == without_empty_lines(new)
        assert not rest.startswith("\n")
    else:
        assert rest == whole


@pytest.mark.parametrize(("whole", "segments"), [
    ("a\nb\nc", ["x"]), ("a\nb\nc", ["a\nx"]), ("a\nbc", ["a\nb"]), ("ab", ["a"]),
])  # fmt: skip
def test_a_whole_that_does_not_begin_with_what_is_kept_is_all_new(whole, segments):
    assert new_part(whole, segments) is None


@pytest.mark.parametrize("shape", ["lines", "one line", "empty lines", "turns"])
def test_time_grows_with_length_and_not_faster(shape):
    """64 times the text in at most 600 times the time: a square would take 4,096 times as long."""
    unit = {
        "lines": "word after word\n", "one line": "word ", "empty lines": "a\n\n\n\n\n\n", "turns": "## User\n\nb\n\n",
    }  # fmt: skip
    small, large = (normalize(unit[shape] * count) for count in (2_000, 128_000))

    def taken(body: str, limit: int) -> float:
        best = 60.0
        for _ in range(3):
            began = time.process_time()
            pieces = list(cut_parts(body, limit))
            assert new_part(body, pieces) == ""
            best = min(best, time.process_time() - began)
        return best

    assert taken(large, len(large) // 16) <= 600 * max(taken(small, len(small) // 16), 0.001)


@given(LINES, st.integers(24, 400))
def test_what_fits_into_one_part_is_left_alone(lines, limit):
    body = normalize("\n".join(lines))
    pieces = list(cut_parts(body, limit))
    assert (pieces == [body]) == (len(body.encode()) <= limit)
