"""Holds what is read of a transcript, so that several readers of one session parse it once."""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise

from signet_sync.digest.claims import Claims
from signet_sync.digest.deeds import Deeds, deeds_of
from signet_sync.digest.person import OwnWords
from signet_sync.digest.printed import Printed, printed_in
from signet_sync.digest.proposals import answered
from signet_sync.digest.transcript import SpokenMessage, ToolCall
from signet_sync.digest.turns import Turn, turns_of


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
        return printed_in(self.turns)

    @cached_property
    def own(self) -> dict[int, list[str]]:
        """Returns the person's own sentences by turn."""
        reader = OwnWords()
        found = {}
        for turn in self.turns:
            if turn.words is not None:
                found[turn.number] = reader.own(turn.words.text)
            for step in turn.steps:
                if isinstance(step, ToolCall):
                    reader.hear(step.printed)
                elif isinstance(step, SpokenMessage):
                    reader.hear(step.text)
        return found

    @cached_property
    def claims(self) -> Claims:
        """Returns what tells whether the session's calls show what its reports claim."""
        return Claims(self.turns, self.own)

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
            said = answered(message, report)
            if said == [] and (said := answered(message, proposals)):
                found = [one for one in found if one[2] != before.number]
                report = proposals
            proposals = report if said else ""
            topic = " ".join(self.own.get(before.number, ())[-1:])  # letters without a question answer a request
            found += [
                (asked or topic, option, turn.number)
                for asked, option in said or ()
                if (asked or topic) and not self.printed.holds(option, place)
            ]
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
