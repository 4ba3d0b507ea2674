"""Holds a session's dialogue: its turns, with the look-ups that rules use repeatedly."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple

from signet_sync.formats.lazy_pattern import late
from signet_sync.text.digest.cues import cues, languages_of
from signet_sync.text.digest.lines import EDITORS, SHELLS
from signet_sync.text.digest.sentences import sentences, unpasted
from signet_sync.text.digest.turns import HarnessNote, SpokenMessage, ToolCall, turns
from signet_sync.text.digest_mark import Status as Status

Kind = Literal["decision", "constraint", "blocker", "next", "preference"]

KEPT = 400  # files and commands
_TURNS = 500  # of the person: from the beginning, and as many from the end
_PATH = late(r"(?<![^\s,'\"])[^\s,'\"/.]*+[/.][^\s,'\"]*+|\w+")
_COMMIT = late(
    r"""git\b[^|;&]{0,60}?\bcommit\b[^|;&]{0,60}?\s-\w{0,8}m\s{0,4}"""
    r"""(?:"([^"\n]{3,300})|'([^'\n]{3,300})|\$\(cat <<'?EOF'?\s{0,4}([^\n]{3,300}))"""
)
_PULL = late(r"""\bgh pr create\b[^|;&]{0,200}?--title\s{1,4}(?:"([^"\n]{3,300})|'([^'\n]{3,300}))""")
# Commands that people read are not longer; a backtracking pattern reads no more than this.
_COMMAND = 2_000


class OutcomeItem(NamedTuple):
    """A statement worth keeping: its kind, its words, and its line in the transcript (from 1).

    `order` is the turn, so that a later statement can replace it; `source` is the rule that found it.
    """

    kind: Kind
    text: str
    line: int
    order: int
    source: str


class SessionOutcome(NamedTuple):
    """The outcome of a session.

    `results` are the passages that describe it best, in their order; empty without any result. `request` is the first
    one that is more than a greeting. `edited` are the edited files with their number of edits, `commands` the
    commands run, with whether the last run failed. `opening` are the first words of all, `parting` what the person said
    when it was stopped. `status` is None if the speakers cannot be distinguished.
    """

    results: tuple[str, ...] = ()
    items: tuple[OutcomeItem, ...] = ()
    status: Status | None = None
    request: str = ""
    edited: Mapping[str, int] = {}
    commands: Mapping[str, bool] = {}
    opening: str = ""
    parting: str = ""


PlacedMessage = tuple[int, SpokenMessage]
Sentence = tuple[str, int]


class Dialogue:
    """The turns by speaker and by what was run; each message is split into sentences once."""

    def __init__(self, transcript: str) -> None:
        self.turns = turns(transcript)
        self.users: list[PlacedMessage] = []
        self.assistants: list[PlacedMessage] = []
        self.edits: list[int] = []
        self.runs: list[int] = []
        self.commits: list[tuple[int, str]] = []
        self.interrupted = -1
        for place, turn in enumerate(self.turns):
            if isinstance(turn, SpokenMessage):
                if turn.speaker == "user":
                    self.users.append((place, turn))
                elif turn.speaker == "assistant":
                    self.assistants.append((place, turn))
            elif isinstance(turn, HarnessNote):
                self.interrupted = place if turn.kind == "interrupted" else self.interrupted
            elif turn.tool in EDITORS:
                self.edits.append(place)
            elif turn.tool in SHELLS:
                self.runs.append(place)
                self.commits += [(place, subject) for subject in _subjects(turn)]
        of_person = [message.text[:2_000] for _, message in [*self.users[:40], *self.users[-40:]]]
        of_assistant = [message.text[:1_000] for _, message in [*self.assistants[:20], *self.assistants[-40:]]]
        self.cues = cues(languages_of([*of_person, *of_assistant]))
        self._places = [place for place, _ in self.assistants]
        self._sentences: dict[int, list[Sentence]] = {}
        self.last_edit = max([-1, *self.edits[-1:], *(place for place, _ in self.commits[-1:])])
        self.last_run = self.runs[-1] if self.runs else -1
        self.last_word = self._places[-1] if self._places else -1

    @property
    def some_users(self) -> list[PlacedMessage]:
        """Returns the person's first and last messages: all of them unless there are very many."""
        return [*self.users[:_TURNS], *self.users[_TURNS:][-_TURNS:]]

    def sentences_of(self, place: int) -> list[Sentence]:
        """Returns the sentences of a message with their lines in the transcript, without what a person pasted."""
        known = self._sentences.get(place)
        if known is None:
            message = self.turns[place]
            assert isinstance(message, SpokenMessage)
            text = unpasted(message.text) if message.speaker == "user" else message.text
            known = [(sentence, message.line + at) for sentence, at in sentences(text)]
            self._sentences[place] = known
        return known

    def opening(self) -> str:
        """Returns the first line with a letter or digit that anybody said."""
        said = (turn.text.split("\n", 50)[:50] for turn in self.turns[:20] if isinstance(turn, SpokenMessage))
        return next((line.strip()[:400] for lines in said for line in lines if any(map(str.isalnum, line[:400]))), "")

    def before(self, place: int) -> PlacedMessage | None:
        """Returns the assistant's last message before a turn."""
        at = bisect_left(self._places, place)
        return self.assistants[at - 1] if at else None

    def after(self, place: int) -> PlacedMessage | None:
        """Returns the assistant's first message after a turn."""
        at = bisect_right(self._places, place)
        return self.assistants[at] if at < len(self.assistants) else None

    def command_before(self, place: int) -> str:
        """Returns the last command among the seven turns before a turn, else an empty text."""
        for at in range(place - 1, max(-1, place - 8), -1):
            turn = self.turns[at]
            if isinstance(turn, ToolCall) and turn.tool in SHELLS:
                return turn.detail[:_COMMAND]
        return ""

    def edited(self) -> dict[str, int]:
        """Returns the files that were edited without failure, with their number of edits; at most `KEPT`."""
        found: dict[str, int] = {}
        for place in self.edits:
            call = self.turns[place]
            if isinstance(call, ToolCall) and not call.failed:
                for path in _PATH.findall(call.detail[:_COMMAND])[:20]:
                    if path in found or len(found) < KEPT:
                        found[path] = found.get(path, 0) + 1
        return found

    def commands(self) -> dict[str, bool]:
        """Returns the commands by their last run, oldest first, with whether it failed; the newest `KEPT`."""
        found: dict[str, bool] = {}
        for place in self.runs:
            call = self.turns[place]
            if isinstance(call, ToolCall) and call.detail:
                found.pop(call.detail, None)
                found[call.detail] = call.failed
                if len(found) > KEPT:
                    del found[next(iter(found))]
        return found


def _subjects(call: ToolCall) -> Iterator[str]:
    """Yields the subjects of commits and titles of pull requests that a call makes."""
    for pattern in (_COMMIT, _PULL):
        for found in pattern.finditer(call.detail[:_COMMAND]):
            subject = next(filter(None, found.groups()), "").split("\\n")[0].strip()
            if subject:
                yield subject
