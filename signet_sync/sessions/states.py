"""Derives the state of a write flow and its next step; finds the new part of a transcript. Pure rules.

Nothing is remembered between steps: the state is observed from files and
hashes, so a flow continues after a crash where it stopped.
"""

from collections.abc import Callable, Container, Iterator, Sequence
from enum import StrEnum
from typing import Literal, NamedTuple, Protocol

from signet_sync.digest.outcome import ModelDigest
from signet_sync.formats.body import normalize
from signet_sync.sessions.live.turns import drop_live, drop_turns, is_cut, live_turns_in, turns_in
from signet_sync.text.redacted_match import begins

FlowKind = Literal["end", "compact"]
ArtifactState = Literal["absent", "ours", "other"]
Quality = Literal["ok", "fallback"]


class Propose(Protocol):
    """Asks a model about new words of a session; None without an answer that holds. Never raises."""

    def __call__(self, words: str, *, project: str | None, harness: str | None) -> ModelDigest | None: ...


# In the order in which they are written: a text before what is derived from it.
ARTIFACTS: dict[FlowKind, tuple[str, ...]] = {"end": ("transcript", "summary"), "compact": ("compaction",)}


def kinds_of(kind: FlowKind, bodies: Container[str]) -> tuple[str, ...]:
    """Lists the artifacts that a flow writes: a compaction first writes live turns, if any, as a transcript."""
    kinds = ARTIFACTS[kind]
    return kinds if "transcript" in kinds or "transcript" not in bodies else ("transcript", *kinds)


class FlowState(StrEnum):
    """The state of a flow; the values describe it to a person. In the first six, a write failed half-way."""

    TRANSCRIPT_WITHOUT_SUMMARY = "transcript written, summary failed"
    SENTENCE_WITHOUT_ARTIFACT = "sentence generated, artifact write failed"
    FALLBACK_WITHOUT_ARTIFACT = "sentence generation failed, fallback path engaged"
    ARTIFACTS_WITHOUT_MANIFEST = "summary/transcript written, manifest failed"
    MANIFEST_WITHOUT_PAGE = "artifacts+manifest written, MEMORY.md update failed"
    MANIFEST_WITHOUT_ROWS = "canonical writes done, DB index update failed"

    RECEIVED = "inputs journalled, nothing written"
    SUMMARY_WITHOUT_TRANSCRIPT = "summary written, transcript gone"
    SEGMENT_WITHOUT_COMPACTION = "live turns written, compaction failed"
    COMPACTION_WITHOUT_SEGMENT = "compaction written, its transcript gone"
    BUFFERS_LEFT = "all written, live transcript buffers not reset"
    UNANSWERED = "all written, result not recorded"
    JOURNAL_LEFT = "result recorded, journal not cleared"
    REMOVED = "its session was removed"
    TAKEN = "another artifact has its name"
    DONE = "done"


class FlowStep(StrEnum):
    """The next step. `refuse` records that the flow can never be finished; nothing of it is written."""

    SENTENCE = "sentence"
    TRANSCRIPT = "transcript"
    SUMMARY = "summary"
    COMPACTION = "compaction"
    MANIFEST = "manifest"
    RECONCILE = "reconcile"
    RESET = "reset"
    ANSWER = "answer"
    FORGET = "forget"
    REFUSE = "refuse"
    NOTHING = "nothing"


class FlowObservation(NamedTuple):
    """What is observed of a flow.

    `files`: for each artifact kind of the flow (`kinds_of`), whether the file of its name is the flow's. `sentence`:
    the quality of the generated sentence or of the one in a written artifact. `linked`: the manifest links these
    artifacts or newer ones. `indexed`: their rows exist. `projected`: pages were rendered since. `live`: turns of the
    session are still buffered. `answered`: the result is recorded. `journalled`: the inputs are still kept. `removed`:
    the session was removed.
    """

    kind: FlowKind
    files: tuple[tuple[str, ArtifactState], ...]
    sentence: Quality | None = None
    linked: bool = False
    indexed: bool = False
    projected: bool = False
    live: bool = False
    answered: bool = False
    journalled: bool = True
    removed: bool = False


def state_of(facts: FlowObservation) -> FlowState:
    """Derives the state from the observations. Total: every combination, including double failures, has a state."""
    if facts.answered:
        return FlowState.JOURNAL_LEFT if facts.journalled else FlowState.DONE
    if facts.removed:
        return FlowState.REMOVED
    files = dict(facts.files)
    kinds = kinds_of(facts.kind, files)
    if "other" in files.values():
        return FlowState.TAKEN
    written = [kind for kind in kinds if files.get(kind) == "ours"]
    if len(written) < len(kinds):
        if facts.sentence is None:
            return FlowState.RECEIVED
        if not written:
            ok = facts.sentence == "ok"
            return FlowState.SENTENCE_WITHOUT_ARTIFACT if ok else FlowState.FALLBACK_WITHOUT_ARTIFACT
        first, second = _HALVES[facts.kind]
        return first if "transcript" in written else second
    if not facts.linked:
        return FlowState.ARTIFACTS_WITHOUT_MANIFEST
    if not facts.indexed:
        return FlowState.MANIFEST_WITHOUT_ROWS
    if not facts.projected:
        return FlowState.MANIFEST_WITHOUT_PAGE
    if facts.live:
        return FlowState.BUFFERS_LEFT
    return FlowState.UNANSWERED


# With its transcript written, and with only the other artifact.
_HALVES = {
    "end": (FlowState.TRANSCRIPT_WITHOUT_SUMMARY, FlowState.SUMMARY_WITHOUT_TRANSCRIPT),
    "compact": (FlowState.SEGMENT_WITHOUT_COMPACTION, FlowState.COMPACTION_WITHOUT_SEGMENT),
}
_STEPS = {
    FlowState.RECEIVED: FlowStep.SENTENCE,
    FlowState.TRANSCRIPT_WITHOUT_SUMMARY: FlowStep.SUMMARY,
    FlowState.SUMMARY_WITHOUT_TRANSCRIPT: FlowStep.TRANSCRIPT,
    FlowState.SEGMENT_WITHOUT_COMPACTION: FlowStep.COMPACTION,
    FlowState.COMPACTION_WITHOUT_SEGMENT: FlowStep.TRANSCRIPT,
    FlowState.ARTIFACTS_WITHOUT_MANIFEST: FlowStep.MANIFEST,
    FlowState.MANIFEST_WITHOUT_ROWS: FlowStep.RECONCILE,
    FlowState.MANIFEST_WITHOUT_PAGE: FlowStep.RECONCILE,
    FlowState.BUFFERS_LEFT: FlowStep.RESET,
    FlowState.UNANSWERED: FlowStep.ANSWER,
    FlowState.JOURNAL_LEFT: FlowStep.FORGET,
    FlowState.REMOVED: FlowStep.REFUSE,
    FlowState.TAKEN: FlowStep.REFUSE,
    FlowState.DONE: FlowStep.NOTHING,
}


def next_step(state: FlowState, kind: FlowKind, *, segment: bool = False) -> FlowStep:
    """Returns the step that follows a state; `segment`: a compaction that first writes live turns as a transcript."""
    if state in (FlowState.SENTENCE_WITHOUT_ARTIFACT, FlowState.FALLBACK_WITHOUT_ARTIFACT):
        return FlowStep.TRANSCRIPT if segment else FlowStep(ARTIFACTS[kind][0])
    return _STEPS[state]


def refusal_key(flow_key: str, captured_at: str) -> str:
    """Returns the key of a flow's refusal: the same words may be accepted with another `captured_at`."""
    return f"{flow_key}@{captured_at}"


def _exact_end(whole: str, at: int, part: str) -> int:
    return at + len(part) if whole.startswith(part, at) else -1


def new_part(whole: str, segments: Sequence[str]) -> str | None:
    """Returns what a whole transcript adds to its kept segments; None if it does not begin with them.

    Texts that are equal apart from redactions match too: the segments were written under other sanitizer rules. All
    texts are normalised bodies. The rest begins at a line; it is empty if nothing is new, also if the transcript is
    shorter than what is kept. The segments may come in any order (clocks do), and older ones may belong to what the
    harness has rewritten since.
    """
    kept = _drop_leading_lines(segments)
    for ends in (_exact_end, begins):
        for first in range(max(1, len(kept))):
            rest = _text_after_segments(whole, kept[first:], ends)
            if rest is not None:
                return rest
    return None


def new_words(whole: str, segments: Sequence[str], *, tail: bool = False) -> str:
    """Returns what a transcript adds to its kept segments; all of it if it is another transcript.

    All texts are normalised bodies. With `tail`, it contains only what was said since. Where a segment holds live
    turns, they are left out turn by turn.
    """
    live = [said for text in segments if (said := live_turns_in(text))]
    if tail:
        return (
            ""
            if whole in segments
            else normalize(drop_turns(whole, [turn for said in live for turn in said], leading=True))
        )
    # With live turns, text counts as new only if it follows all segments together.
    rest = _text_after_all_segments(whole, segments) if live else new_part(whole, segments) if segments else whole
    if rest is not None or not live:
        return whole if rest is None else rest
    left = whole
    for said in live:
        left = drop_turns(left, said)
    bare = [text for segment in segments if (text := normalize(drop_live(segment))).strip()]
    rest = new_part(normalize(left).lstrip("\n"), bare) if bare else left
    if rest is None or is_cut(whole, rest):
        # One segment's text is in the middle of another's: compare all of it.
        rest = left
        for text in bare:
            rest = drop_turns(rest, turns_in(text))
    return normalize(rest).lstrip("\n")


def _text_after_all_segments(whole: str, segments: Sequence[str]) -> str | None:
    rests = (_text_after_segments(whole, _drop_leading_lines(segments), ends) for ends in (_exact_end, begins))
    return next((rest for rest in rests if rest is not None), None)


def _drop_leading_lines(segments: Sequence[str]) -> list[str]:
    # Cutting removed the empty lines between segments; a tail may have added some.
    return [text for segment in segments if (text := segment.lstrip("\n"))]


def _text_after_segments(whole: str, kept: list[str], ends: Callable[[str, int, str], int]) -> str | None:
    at = 0
    while kept:
        start = _skip_empty_lines(whole, at)
        found = ((segment, end) for segment in kept if (end := ends(whole, start, segment)) >= 0)
        following, end = next(found, (None, at))
        if following is None:
            return "" if _is_beginning(whole, start, kept, ends) else None
        kept.remove(following)
        at = end
    if at and whole[at : at + 1] not in ("", "\n"):
        return None
    return whole[_skip_empty_lines(whole, at) :] if at else whole


def _is_beginning(whole: str, start: int, kept: Sequence[str], ends: Callable[[str, int, str], int]) -> bool:
    """Returns whether the remaining text is empty, or the first lines of a kept segment."""
    left = whole[start:]
    return not left or any((end := ends(s, 0, left)) >= 0 and s[end : end + 1] in ("", "\n") for s in kept)


def _skip_empty_lines(text: str, at: int) -> int:
    while text.startswith("\n", at):
        at += 1
    return at


def cut_parts(body: str, limit: int) -> Iterator[str]:
    """Cuts a body into parts of at most `limit` UTF-8 bytes: before a turn's heading, else a paragraph, else a line.

    Only empty lines at the cuts are lost; a line longer than the limit is cut within.
    """
    if len(body) * 4 <= limit or len(body.encode("utf-8", "replace")) <= limit:
        yield body
        return
    at = 0
    while at < len(body):
        end = _end_within(body, at, limit)
        if end < len(body):
            end = _cut(body, at, end)
        part = normalize(body[at:end])
        if part:
            yield part
        at = _skip_empty_lines(body, end)


def _end_within(body: str, at: int, limit: int) -> int:
    """Returns the furthest end whose text fits into `limit` bytes."""
    raw = body[at : at + limit].encode("utf-8", "replace")
    if len(raw) <= limit:
        return min(at + limit, len(body))
    return at + len(raw[:limit].decode("utf-8", "ignore"))


def _cut(body: str, at: int, end: int) -> int:
    middle = at + (end - at) // 2
    for mark, least in (("\n## ", middle), ("\n\n", middle), ("\n", at)):
        found = body.rfind(mark, least, end)
        if found > at:
            return found + 1
    # Within a line: trailing blanks of a part would be lost, so they begin the next part.
    kept = len(body[at:end].rstrip(" \t"))
    return at + kept if kept else end
