"""Finds what a transcript adds to the segments that are kept of its session."""

from collections.abc import Callable, Sequence

from signet_sync.formats.body import normalize
from signet_sync.sessions.live.turns import drop_live, drop_turns, is_cut, live_turns_in, turns_in
from signet_sync.text.redaction import begins


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
