"""Reads a transcript's text as messages, tool calls and notes, each with the line where it stands."""

from __future__ import annotations

from typing import Literal, NamedTuple

from signet_sync.digest.lines import Speaker, call_of, fence_of, is_ours, note_of, numbered, turn_of

# What is kept of a message and of a call's output; a longer one keeps its beginning and its end.
MESSAGE_CHARACTERS, OUTPUT_LINES = 12_000, 40


class Message(NamedTuple):
    """What somebody said between two calls. `text` is Markdown, blank lines included; `line` is that of its first one."""

    speaker: Speaker
    text: str
    line: int


class Call(NamedTuple):
    """A tool call: its name in lower case, what it was called with, whether it failed, lines that it gave back."""

    tool: str
    detail: str
    failed: bool
    output: tuple[str, ...]


class Note(NamedTuple):
    """What the harness noted: `interrupted` where the person stopped the assistant, `compacted` where context was cut."""

    kind: Literal["interrupted", "compacted"]


Turn = Message | Call | Note


def turns(text: str) -> list[Turn]:
    """The turns of a transcript in order; one walk over its lines, whatever the text."""
    walk = _Walk(is_ours(text))
    for number, line in numbered(text):
        walk.step(number, line)
    walk.close()
    return walk.found


class _Walk:
    def __init__(self, ours: bool) -> None:
        self.found: list[Turn] = []
        self._ours = ours
        self._speaker: Speaker = "other"
        self._words: list[str] = []
        self._size = self._start = 0
        self._fence = ""
        self._call: tuple[str, str, bool] | None = None
        self._output: list[str] = []

    def step(self, number: int, line: str) -> None:
        turn = turn_of(line, ours=self._ours) if self._ours or not self._fence else None
        if turn is not None:
            self.close()
            self._fence = ""
            self._speaker, rest = turn
            if line.startswith("## Compaction"):
                self.found.append(Note("compacted"))
            if rest.strip():
                self._add(number, rest)
            return
        if self._fence:
            if line.strip().startswith(self._fence) and not line.strip().strip(self._fence[0]):
                self._fence = ""
                self._keep(number, line)
            else:
                self._keep(number, line)
            return
        self._fence = fence_of(line)
        call = call_of(line) if self._ours and not self._fence else None
        if call is not None:
            self.close()
            self._call = call
        elif self._ours and note_of(line) is not None:
            self.close()
            if "interrupted by the user" in line:
                self.found.append(Note("interrupted"))
        elif self._call is not None and (not line.strip() or line.startswith("  ")):
            # What a call gave back stands below it, in a fence of its own; its marks are no output.
            return
        else:
            if self._call is not None:
                self.close()
            self._add(number, line)

    def _keep(self, number: int, line: str) -> None:
        if self._call is None:
            self._add(number, line)
        elif self._fence and len(self._output) < 2 * OUTPUT_LINES:
            self._output.append(line.removeprefix("  "))

    def _add(self, number: int, line: str) -> None:
        if not self._words:
            if not line.strip():
                return
            self._start, self._size = number, 0
        self._size += len(line) + 1
        if self._size <= MESSAGE_CHARACTERS:
            self._words.append(line)

    def close(self) -> None:
        """Ends the message or call that is being read."""
        if self._call is not None:
            self.found.append(Call(*self._call, tuple(self._output)))
            self._call, self._output = None, []
        if self._words:
            self.found.append(Message(self._speaker, "\n".join(self._words), self._start))
            self._words = []
