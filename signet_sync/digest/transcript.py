"""Parses a transcript into messages, tool calls and notes, each with its line number."""

import re
from typing import Literal, NamedTuple

from signet_sync.formats.lazy_pattern import late
from signet_sync.text.turn_heads import HEAD, OUR_HEAD, TOOL_NAME

# Meaningful lines are not longer, and rules read only this much of a line.
LINE_LIMIT = 4_000
# The kept part of a message is its beginning, that of a call's output its end.
MESSAGE_CHARACTERS, OUTPUT_CHARACTERS, OUTPUT_LINES = 40_000, 100_000, 18
_HEADINGS = ("## User · ", "## Assistant · ", "## Harness · ", "## Compaction · ")
# With one of these begins, or continues, a line that may be no plain words.
_MARKS = ("\n#", "\n- `", "\n- sub-agent `", "```", "~~~")
_INDENT = 8  # of a closing fence
_BLANK = late(r"\n+")

Speaker = Literal["user", "assistant", "harness", "other"]
_OURS = late(rf"\n{HEAD}", re.ASCII)
_ROLES: dict[str, Speaker] = {
    "user": "user", "human": "user", "me": "user", "用户": "user", "人类": "user",
    "assistant": "assistant", "ai": "assistant", "agent": "assistant", "claude": "assistant", "codex": "assistant",
    "gemini": "assistant", "model": "assistant", "助手": "assistant", "助理": "assistant",
    "system": "other", "tool": "other", "系统": "other", "compaction": "other",
}  # fmt: skip
_OUR_ROLES: dict[str, Speaker] = {"User": "user", "Assistant": "assistant"}
_ROLE = "|".join(_ROLES)
_LABEL = late(rf"[ ]{{0,3}}(?:\*\*)?({_ROLE})(?:\*\*)?[ \t]*[:：](?:\*\*)?[ \t]*(.*)", re.IGNORECASE | re.DOTALL)
_HEADING = late(
    rf"(?:#{{1,6}}[ \t]+|\*\*)({_ROLE})(?:\*\*)?(?:[ \t]+{TOOL_NAME})?[ \t]*(?:[·(|—-].*)?:?[ \t]*", re.IGNORECASE
)
# A fence of backticks with more backticks behind it is inline code.
_FENCE = late(r" {0,3}(?:(`{3,})[^`]*|(~{3,}).*)", re.DOTALL)
_FAILED = late(r"(?:^| · )failed$")
_GAVE_BACK = "gave back"


class SpokenMessage(NamedTuple):
    """The words of one speaker between two calls; `text` is Markdown with blank lines, `line` that of its first one."""

    speaker: Speaker
    text: str
    line: int


class ToolCall(NamedTuple):
    """A tool call: its name in lower case, its arguments, whether it failed, what it printed (indented, its end)."""

    tool: str
    detail: str
    failed: bool
    printed: str

    @property
    def output(self) -> list[str]:
        """Returns the last lines that it printed."""
        lines = self.printed.rsplit("\n", OUTPUT_LINES + 1)[-OUTPUT_LINES - 1 :]
        return [line.removeprefix("  ")[:LINE_LIMIT] for line in lines if line.strip()]


class HarnessNote(NamedTuple):
    """A note of the harness: `interrupted` if the person stopped it, `compacted` if context was cut."""

    kind: Literal["interrupted", "compacted"]


DigestTurn = SpokenMessage | ToolCall | HarnessNote


def _closes(line: str, fence: str) -> bool:
    """Returns whether a line closes a fence: at least as many of its signs, nothing else, near the margin."""
    signs = line.lstrip(" \t")
    return len(line) - len(signs) <= _INDENT and signs.startswith(fence) and not signs.rstrip(" \t").strip(fence[0])


def _cut(block: str) -> str:
    return "\n".join(line[:LINE_LIMIT] for line in block.split("\n"))


def parse(text: str) -> list[DigestTurn]:
    """Returns the turns of a transcript in order; reads each line once."""
    walk = _Parser(text)
    walk.run()
    return walk.found


class _Parser:
    """Parses line by line; the content of a fence is taken as a whole."""

    def __init__(self, text: str) -> None:
        self.found: list[DigestTurn] = []
        self._text = text
        self._ours = is_ours(text)
        self._at, self._number = 0, 0
        # Where each mark of a line that is no plain words is next, as far as it has been searched.
        self._marks = dict.fromkeys(_MARKS, -1)
        # The next heading in our format, as far as it has been searched.
        self._heading = -1 if self._ours else len(text)
        self._speaker: Speaker = "other"
        self._words: list[str] = []
        self._size = self._start = 0
        self._call: tuple[str, str, bool] | None = None
        self._output: list[str] = []

    def run(self) -> None:
        text, size = self._text, len(self._text)
        while self._at < size:
            if self._at and self._ours and self._call is None and self._speaker != "harness" and self._plain():
                continue
            end = text.find("\n", self._at)
            if end == self._at:
                self._blank()
                continue
            end = size if end < 0 else end
            line = text[self._at : min(end, self._at + LINE_LIMIT)]
            self._at, self._number = end + 1, self._number + 1
            fence = self._step(line)
            if fence:
                self._fenced(fence)
        self._close()

    def _plain(self) -> bool:
        """Takes a speaker's lines up to one that may begin something else; returns whether there were any."""
        text, at, stop = self._text, self._at, len(self._text)
        for mark, place in self._marks.items():
            if place < at:
                place = text.find(mark, max(0, at - 1))
                self._marks[mark] = place = place if place >= 0 else len(text)
            stop = min(stop, place + 1 if mark[0] == "\n" else max(at, text.rfind("\n", at, place) + 1))
        if stop <= at:
            return False
        count, room = text.count("\n", at, stop), MESSAGE_CHARACTERS - self._size if self._words else MESSAGE_CHARACTERS
        block = text[at : min(stop, at + max(0, room))].removesuffix("\n")
        if not self._words:
            begun = len(block) - len(block.lstrip())
            begun = block.rfind("\n", 0, begun) + 1
            self._start, self._size = self._number + block.count("\n", 0, begun) + 1, 0
            block = block[begun:]
        block = _cut(block) if len(block) > LINE_LIMIT else block
        self._size += stop - at
        if block.strip() or (block and self._words):
            self._words.append(block)
        self._at, self._number = stop, self._number + count + (not text.endswith("\n", at, stop))
        return True

    def _blank(self) -> None:
        """Takes empty lines, as many as there are."""
        after = _BLANK.match(self._text, self._at).end()  # type: ignore[union-attr] # an empty line is there
        count = after - self._at
        self._at, self._number = after, self._number + count
        if self._call is None and self._words:
            self._words += [""] * min(count, max(0, MESSAGE_CHARACTERS - self._size))
            self._size += count

    def _step(self, line: str) -> str:
        """Reads a line; returns the fence that it opens."""
        turn = turn_of(line, ours=self._ours) if line.startswith("#") or not self._ours else None
        if turn is not None:
            self._close()
            self._speaker, rest = turn
            if line.startswith("## Compaction"):
                self.found.append(HarnessNote("compacted"))
            if rest.strip():
                self._add(rest)
            return ""
        if self._call is not None and line.startswith("  ") and (fence := fence_of(line)):
            return fence
        call = call_of(line) if self._ours and line.startswith("- ") else None
        if call is not None:
            self._close()
            self._call = call
        elif self._ours and self._speaker == "harness" and self._call is None:
            if "interrupted" in line or "turn aborted" in line:
                self.found.append(HarnessNote("interrupted"))
        elif self._call is None or (line.strip() and not line.startswith("  ")):
            # A call's output is indented below it; the words begin where that ends.
            if self._call is not None:
                self._close()
            self._add(line)
            return fence_of(line)
        return ""

    def _fenced(self, fence: str) -> None:
        """Reads the content of a fence with its closing line; a heading in our format ends an unclosed fence."""
        end, after = self._closed(fence)
        if self._call is not None:
            self._output.append(self._text[max(self._at, end - OUTPUT_CHARACTERS) : end])
        else:
            # A message that a fence begins has its opening line.
            content = self._text[
                self._at : min(after, self._at + max(0, MESSAGE_CHARACTERS - self._size))
            ].removesuffix("\n")
            self._size += after - self._at
            if content:
                self._words.append(content if len(content) <= LINE_LIMIT else _cut(content))
        self._number += self._text.count("\n", self._at, after)
        self._at = after

    def _closed(self, fence: str) -> tuple[int, int]:
        """Returns where the closing line of a fence begins, and where the line after it does."""
        text, at, limit = self._text, self._at, self._next_heading()
        while (at := text.find(fence, at, limit)) >= 0:
            begun, end = max(self._at, text.rfind("\n", self._at, at) + 1), text.find("\n", at, limit)
            if _closes(text[begun : end if end >= 0 else limit], fence):
                return begun, end + 1 if end >= 0 else limit
            if end < 0:
                break
            at = end
        return limit, limit

    def _next_heading(self) -> int:
        """Returns where the next heading in our format begins, else the end of the text."""
        if self._ours and self._heading < self._at:
            at = self._text.find("\n## ", self._at - 1)
            while at >= 0 and not self._text.startswith(_HEADINGS, at + 1):
                at = self._text.find("\n## ", at + 1)
            self._heading = at + 1 if at >= 0 else len(self._text)
        return self._heading

    def _add(self, line: str) -> None:
        if not self._words:
            if not line.strip():
                return
            self._start, self._size = self._number, 0
        self._size += len(line) + 1
        if self._size <= MESSAGE_CHARACTERS:
            self._words.append(line)

    def _close(self) -> None:
        """Ends the message or call that is being read."""
        if self._call is not None:
            self.found.append(ToolCall(*self._call, "".join(self._output)))
            self._call, self._output = None, []
        if self._words:
            self.found.append(SpokenMessage(self._speaker, "\n".join(self._words), self._start))
            self._words = []


# ── a line ──


def is_ours(text: str) -> bool:
    """Returns whether a text has turn headings in our format."""
    return OUR_HEAD.match(text) is not None or _OURS.search(text) is not None


def call_of(line: str) -> tuple[str, str, bool] | None:
    """Returns name, detail and failure of a tool call's line; None for a list item in a message."""
    head = OUR_HEAD.match(line)
    if head is None or head["tool"] is None:
        return None
    detail = line[head.end() :].removeprefix(" · ").rstrip()
    outcome = _FAILED.search(detail)
    detail = detail[: outcome.start()] if outcome else detail
    ticks = len(detail) - len(detail.lstrip("`"))
    if ticks and len(detail) > 2 * ticks and detail.endswith("`" * ticks):
        inner = detail[ticks:-ticks]  # one blank on either side parts it from ticks
        detail = inner[1:-1] if inner[:1] == inner[-1:] == " " and len(inner) > 2 else inner
    return head["tool"].strip("`").lower(), "" if head["sub"] or detail == _GAVE_BACK else detail, outcome is not None


def fence_of(line: str) -> str:
    """Returns the fence that a line opens, else an empty text; the fence of a tool's output is indented."""
    mark = _FENCE.fullmatch(line) if "```" in line or "~~~" in line else None
    return (mark[1] or mark[2]) if mark else ""


def turn_of(line: str, *, ours: bool) -> tuple[Speaker, str] | None:
    """Returns the speaker whose turn a line begins, and the words on that line."""
    if ours:
        head = OUR_HEAD.match(line)
        return (_OUR_ROLES.get(head["role"], "harness"), "") if head and head["role"] else None
    heading = _HEADING.fullmatch(line) if line.startswith(("#", "**")) else None
    if heading:
        return _ROLES[heading[1].lower()], ""
    label = _LABEL.match(line) if ":" in line or "：" in line else None
    return (_ROLES[label[1].lower()], label[2]) if label else None
