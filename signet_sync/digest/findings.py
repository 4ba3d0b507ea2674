"""What a transcript says about its session: requests, decisions, files, commands, errors, how it ended."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from signet_sync.digest.lines import EDITORS, READERS, SHELLS, Line

FIRST, LAST = 4, 6
# What is kept of a stretch of words (at its beginning and at its end), and of files, commands and errors; a longer
# transcript takes no more memory.
STRETCH_LINES, LINE_CHARACTERS, KEPT = 30, 1_000, 400
RECENT, OPENINGS = 3, 20

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[.!?][\"'”)*])\s+(?![a-z])|(?<=[。！？])")
_DECIDED = re.compile(
    r"\bdecided\b|\bdecisions?(?: is| was|:)|\blet['’]s (?:go with|use|keep|stick|drop|avoid|not)\b"
    r"|\b(?:go|going) with\b|\bchose\b|\bagreed\b|\bsettled on\b|\bopt(?:ed|ing)? for\b|\bstick(?:ing)? with\b"
    r"|\bfrom now on\b|决定|选择了|改用|采用|就用|同意",
    re.IGNORECASE,
)
_LEANS = re.compile(
    r"\b(?:we(?:['’]ll| will| should| must)|instead of|rather than|i prefer|must (?:not|never)|by design|always use"
    r"|never use|don['’]t use)\b|而不是|应该用",
    re.IGNORECASE,
)
_WANTED = re.compile(r"\b(?:only want|don['’]?t want|must|never|always|make sure|no need)\b|不要|必须", re.IGNORECASE)
# One of these stands in whatever the three rules above find: almost every line is spared their search.
_CUES = (
    "decid", "decision", "let's ", "let’s ", "go with", "going with", "chose", "agreed", "settled on", "opt for",
    "opted for", "opting for", "stick with", "sticking with", "from now on", "we'll", "we’ll", "we will", "we should",
    "we must", "instead of", "rather than", "i prefer", "must", "by design", "always", "never", "n't use", "n’t use",
    "only want", "t want", "make sure", "no need",
    "决定", "选择了", "改用", "采用", "就用", "同意", "而不是", "应该用", "不要", "必须",
)  # fmt: skip
_OPEN = re.compile(
    r"\bTODO\b|\bFIXME\b|(?i:\bnot yet\b|\bnext steps?\b|\bremain(?:s|ing)\b|\bleft to do\b|\bfollow[- ]ups?\b"
    r"|\bstill (?:need|have to|missing|open|fail)\w*|\b(?:un|not )finished\b)|待办|下一步|尚未|还没|剩下",
)
_OPEN_HEADING = re.compile(
    r"\W*(?:next steps?|next|todo|to do|remaining(?: work)?|open (?:items|points)|follow[- ]ups?|下一步|待办)\W*",
    re.IGNORECASE,
)
_ITEM = re.compile(r"[ \t]*(?:[-*+]|\d{1,3}[.)])[ \t]+(.*)", re.DOTALL)

_ERROR = re.compile(
    r"\W{0,6}(?:E {1,4}(?=[\w.]+:|assert))?(?:"
    r"[\w.]{0,80}(?:Error|Exception)\b|(?i:(?:fatal|panic|error|failed|aborted)(?:\[\w+\])?:)|(?:FAILED|FAIL|ERROR|FATAL)\b"
    r"|npm ERR!|[1-9]\d{0,6} (?:failed|errors?)\b|\S{1,200}:\d{1,7}(?::\d{1,5})?:? (?:fatal )?error\b"
    r"|.{1,160}?(?:command not found|No such file or directory|Permission denied)\b)"
)
_TRACEBACK = "Traceback (most recent call last)"
_PROMPT = re.compile(r"[ \t]*(?:\$|❯)[ \t]+(\S.*)", re.DOTALL)

_EXTENSIONS = (
    "py|pyi|ts|tsx|js|jsx|mjs|cjs|rs|go|rb|java|kt|c|h|cc|cpp|hpp|cs|swift|php|sh|toml|ya?ml|jsonl?|mdx?|rst|txt|sql"
    "|s?css|html?|vue|svelte|proto|lock|cfg|ini|conf|env|tf|nix|xml|csv|ipynb|lua|exs?|service|plist|db|Dockerfile|Makefile"
)
_FILE = re.compile(rf"(?<![\w.~/:-])@?((?:[~.]{{0,2}}/)?(?:[\w@.+-]+/)*+[\w+-][\w@.+-]*\.(?:{_EXTENSIONS}))(?![\w/-])")
_PATH_OF_TOOL = re.compile(r"[^\s,'\"]*[/.][^\s,'\"]*|\w+")


@dataclass(slots=True)
class Found:
    """What was found; all texts are raw.

    `openings` are the first lines of all; `first` and `last` are requests of the user, `decided` and `leans` sentences
    with their place; `edited`, `named` and `errors` count; `commands` says whether the last run failed; `endings` are
    the last stretches of the assistant's words, `unanswered` what the user said after them, `recent` of both.
    """

    requests: int = 0
    first: list[str] = field(default_factory=list)
    last: deque[str] = field(default_factory=lambda: deque(maxlen=LAST))
    decided: deque[tuple[int, str]] = field(default_factory=lambda: deque(maxlen=8))
    leans: deque[tuple[int, str]] = field(default_factory=lambda: deque(maxlen=8))
    edited: dict[str, int] = field(default_factory=dict)
    named: dict[str, int] = field(default_factory=dict)
    commands: dict[str, bool] = field(default_factory=dict)
    errors: dict[str, int] = field(default_factory=dict)
    openings: list[str] = field(default_factory=list)
    endings: deque[list[str]] = field(default_factory=lambda: deque(maxlen=RECENT))
    unanswered: str = ""
    recent: deque[list[str]] = field(default_factory=lambda: deque(maxlen=RECENT))


def find(lines: Iterable[Line]) -> Found:
    """One walk over the lines."""
    walk = _Walk()
    for line in lines:
        walk.step(line)
    walk.close()
    return walk.found


class _Stretch:
    """Words without a tool between them: the first lines and the last ones."""

    def __init__(self) -> None:
        self._head: list[str] = []
        self._tail: deque[str] = deque(maxlen=STRETCH_LINES)

    def add(self, line: str) -> None:
        (self._head if len(self._head) < STRETCH_LINES else self._tail).append(line[:LINE_CHARACTERS])

    def lines(self) -> list[str]:
        return [*self._head, *self._tail]


class _Walk:
    """The stretch of words that is being read, and what was found before it."""

    def __init__(self) -> None:
        self.found = Found()
        self._words = _Stretch()
        self._speaker = "other"
        self._order = 0
        self._traceback = False
        self._output = ("", 0)  # the failed tool whose output is read, how many errors were taken from it

    def step(self, line: Line) -> None:
        if line.kind in ("turn", "tool") or line.speaker != self._speaker:
            self.close()
        self._speaker = line.speaker
        if line.text and len(self.found.openings) < OPENINGS:
            self.found.openings.append(line.text)
        if line.kind == "words":
            self._said(line)
        elif line.kind == "tool":
            self._called(line)
        elif line.kind == "output":
            self._printed(line)

    def close(self) -> None:
        """The stretch of words is over: a request, or what the assistant said last."""
        words, self._words = self._words.lines(), _Stretch()
        found = self.found
        if not words:
            return
        if self._speaker == "user":
            request = "\n".join(words[:STRETCH_LINES])
            found.requests += 1
            found.unanswered = request
            if len(found.first) < FIRST:
                found.first.append(request)
            else:
                found.last.append(request)
        else:
            found.endings.append(words)
            found.unanswered = ""
        found.recent.append(words)

    def _said(self, line: Line) -> None:
        found = self.found
        self._words.add(line.text)
        self._order += 1
        text = line.text
        rules = (_DECIDED, _LEANS, _WANTED) if line.speaker == "user" else (_DECIDED, _LEANS)
        lowered = text.lower()
        hopeful = any(map(lowered.__contains__, _CUES)) and any(rule.search(text) for rule in rules)
        for sentence in sentences(text) if hopeful else ():
            # What asks is open, and what ends in a colon announces the next thing to do.
            if sentence.endswith(("?", "？", ":")) or not _has_substance(sentence):
                continue
            if _DECIDED.search(sentence):
                found.decided.append((self._order, sentence))
            elif any(rule.search(sentence) for rule in rules):
                found.leans.append((self._order, sentence))
        for path in _FILE.findall(text) if "." in text else ():
            _count(found.named, path)
        if line.speaker != "assistant":
            self._look_for_errors(text)
            prompt = _PROMPT.fullmatch(text) if line.speaker == "other" else None
            if prompt:
                self._ran(prompt[1], False)

    def _called(self, line: Line) -> None:
        self._traceback = False
        self._output = (line.tool if line.failed else "", 0)
        self.found.unanswered = ""
        if not line.text:
            return
        if line.tool in SHELLS:
            self._ran(line.text, line.failed)
        elif line.tool in EDITORS or line.tool in READERS:
            for path in _PATH_OF_TOOL.findall(line.text)[:20]:
                _count(self.found.edited if line.tool in EDITORS and not line.failed else self.found.named, path)

    def _ran(self, command: str, failed: bool) -> None:
        self.found.commands.pop(command, None)
        self.found.commands[command] = failed
        _forget(self.found.commands)

    def _printed(self, line: Line) -> None:
        if line.tool in SHELLS or line.failed or line.speaker != "assistant":
            self._look_for_errors(line.text)
        tool, taken = self._output
        if tool and not taken and tool not in SHELLS:
            # What a failed tool says first is why.
            self._met(line.text.strip())
        prompt = None if line.tool else _PROMPT.fullmatch(line.text)
        if prompt and line.speaker != "user":
            self._ran(prompt[1], False)

    def _look_for_errors(self, text: str) -> None:
        if _TRACEBACK in text:
            self._traceback = True
        elif self._traceback and not text.lstrip("| ").startswith("File ") and _indent(text) <= 2:
            self._traceback = False
            self._met(text.strip())
        elif not self._traceback and _ERROR.match(text):
            self._met(text.strip())

    def _met(self, error: str) -> None:
        self._output = (self._output[0], self._output[1] + 1)
        times = self.found.errors.pop(error, 0)
        self.found.errors[error] = times + 1
        _forget(self.found.errors)


def sentences(text: str) -> Iterator[str]:
    """The sentences of a line, without what makes it an item of a list."""
    item = _ITEM.fullmatch(text)
    for sentence in _SENTENCE_END.split(item[1] if item else text):
        if sentence.strip():
            yield sentence.strip()


def questions(lines: Iterable[str]) -> list[str]:
    """The sentences that ask."""
    return [
        s for line in lines for s in sentences(line) if s.rstrip("*_)\"'").endswith(("?", "？")) and _has_substance(s)
    ]


def open_ends(stretches: Iterable[list[str]]) -> list[str]:
    """Sentences about what is not done yet, and the items below a line that says that such follow."""
    ends: list[str] = []
    for lines in stretches:
        listed = False
        for line in lines:
            item = _ITEM.fullmatch(line)
            if _OPEN_HEADING.fullmatch(line):
                listed = True
            elif listed and item:
                ends.append(item[1])
            else:
                listed = False
                ends.extend(s for s in sentences(line) if _OPEN.search(s) and _has_substance(s))
    return list(dict.fromkeys(ends))


def _has_substance(sentence: str) -> bool:
    """Whether a sentence says something outside its conversation: four words, or as much in a script without blanks."""
    return len(sentence.split(None, 4)) >= 4 or (not sentence.isascii() and len(sentence) >= 8)


def _indent(text: str) -> int:
    return len(text) - len(text.lstrip())


def _count(counts: dict[str, int], name: str) -> None:
    if name in counts or len(counts) < KEPT:
        counts[name] = counts.get(name, 0) + 1


def _forget(found: dict[str, bool] | dict[str, int]) -> None:
    """The oldest goes, so that memory stays small."""
    if len(found) > KEPT:
        del found[next(iter(found))]
