"""Holds what is read of a transcript, so that several readers of one session parse it once."""

from __future__ import annotations

from functools import cached_property, lru_cache
from itertools import pairwise

from signet_sync.digest.deeds import Deeds, deeds_of
from signet_sync.digest.person import OwnWords
from signet_sync.digest.printed import Printed, read_printed
from signet_sync.digest.proposals import match_answer
from signet_sync.digest.turns import Turn, turns_of

END = 400_000  # characters of a transcript's end that are quoted


def record_of(text: str) -> Record:
    """Reads a transcript; the last one is held unless it is long: at an end it is digested and then quoted."""
    return _hold_record(text) if len(text) <= END else Record(text)


@lru_cache(maxsize=1)
def _hold_record(text: str) -> Record:
    return Record(text)


class Record:
    """A (sanitized) transcript; each part is read when it is first asked for. Total, deterministic, linear."""

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def turns(self) -> list[Turn]:
        return turns_of(self.text)

    @cached_property
    def deeds(self) -> Deeds:
        return deeds_of(self.turns)

    @cached_property
    def printed(self) -> Printed:
        """Returns what the tools of each turn printed."""
        return read_printed(self.turns)

    @cached_property
    def own(self) -> OwnWords:
        """Returns the person's own sentences by turn."""
        return OwnWords(self.turns)

    @cached_property
    def picks(self) -> list[tuple[str, str, int]]:
        """Returns the agent's questions with what the person picked, and the turn: in a picker, or by letter or number.

        An option that a tool printed before is none of the agent's.
        """
        found: list[tuple[str, str, int]] = []
        proposals = ""  # what the message before answered
        for place, (before, turn) in enumerate(pairwise(self.turns), 1):
            report = before.report.text if before.report is not None else ""
            message = turn.words.text if turn.words is not None else ""
            said = match_answer(message, report)
            if said == [] and (said := match_answer(message, proposals)):
                found = [one for one in found if one[2] != before.number]
                report = proposals
            proposals = report if said else ""
            for asked, option in said or ():
                # Letters without a question answer a request.
                about = asked or " ".join(self.own.get(before.number, ())[-1:])
                if about and not self.printed.holds(option, place):
                    found.append((about, option, turn.number))
        return sorted([*self.deeds.picks, *found], key=lambda one: one[2])

    @cached_property
    def lines(self) -> dict[int, tuple[int, int]]:
        """Returns by turn the lines of the person's words and of the report."""
        words = {one.number: one.words.line if one.words else 1 for one in self.turns}
        return {
            one.number: (words[one.number], one.report.line if one.report else words[one.number]) for one in self.turns
        }

    @property
    def is_silent(self) -> bool:
        """Returns whether nobody said a word."""
        return not any(turn.words or turn.report for turn in self.turns)
