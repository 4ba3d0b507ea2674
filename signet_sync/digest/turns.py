"""Groups a transcript by the person's messages: what was asked, what was done for it, and the report at its end.

A message's Markdown is read as passages: headings, paragraphs and list items.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Literal, NamedTuple

from signet_sync.formats.lazy_pattern import late
from signet_sync.text.chunking import TurnStart, is_ours, speaker_of, turns

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

# Meaningful lines are not longer, and rules read only this much of a line.
LINE_LIMIT = 4_000
# The kept part of a message is its beginning, that of a call's output its end.
MESSAGE_CHARACTERS, OUTPUT_CHARACTERS, OUTPUT_LINES = 40_000, 100_000, 18
_WHOLE = 300  # characters of words that are a report whatever they announce, and that the person did not cut
_TURNS = 1_000  # from the beginning, and as many from the end
_PRINTED = late(r"^ {2}(`{3,})\n(.*?)(?:^ {2}\1$|\Z)", re.MULTILINE | re.DOTALL)
_LONG = late(rf"[^\n]{{{LINE_LIMIT + 1},}}")
# What follows is announced: "I will." agrees.
_NARRATES = late(
    r"(?:\b(?:let me|i'?ll|i’ll|i will|now i|i'?m going to|i am going to|next,? i|going to|ich werde|jetzt|je vais"
    r"|maintenant|voy a|ahora|vou|agora|ora|adesso|сейчас|теперь)\b|まず|次に|これから|接下来|现在|我来|让我|이제|먼저)"
    r"(?=\W*\w)",
    re.IGNORECASE,
)


class SpokenMessage(NamedTuple):
    """The words of one speaker between two calls; `text` is Markdown, `line` that of its first words."""

    speaker: Literal["user", "assistant", "other"]
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
        lines = self.printed.rsplit("\n", OUTPUT_LINES + 1)[-OUTPUT_LINES - 1 :]
        return [line.removeprefix("  ")[:LINE_LIMIT] for line in lines if line.strip()]


@dataclass(frozen=True, slots=True)
class Interruption:
    """A note of the harness: the person stopped it."""


DigestTurn = SpokenMessage | ToolCall | Interruption


@dataclass(slots=True)
class Turn:
    """A message of the person (none before the first one) and the steps that followed; numbers count from 1.

    `report` are the agent's last words, `ended` is whether no call followed them; `interrupted`: the person stopped it.
    """

    number: int
    words: SpokenMessage | None = None
    steps: list[DigestTurn] = field(default_factory=list)
    report: SpokenMessage | None = None
    ended: bool = False
    interrupted: bool = False

    @property
    def calls(self) -> list[ToolCall]:
        return [step for step in self.steps if isinstance(step, ToolCall)]

    @property
    def messages(self) -> list[SpokenMessage]:
        return [step for step in self.steps if isinstance(step, SpokenMessage)]


def parse(text: str) -> Iterator[DigestTurn]:
    """Yields the messages, tool calls and interruptions of a transcript in order. Total, linear."""
    ours, nobody, at, line = is_ours(text), TurnStart(0, None), 0, 1
    for turn, after in pairwise(chain([nobody], turns(text), [TurnStart(len(text), None)])):
        words = text[turn.words : min(after.start, turn.words + MESSAGE_CHARACTERS)]
        role, speaker = turn.label.partition(" ")[0], speaker_of(turn.label)
        if ours and role in ("Tool", "Sub-agent"):
            yield _read_call(turn, text[turn.words : after.start])
        elif ours and role in ("Compaction", "Harness"):
            if role == "Harness" and ("interrupted" in words or "turn aborted" in words):
                yield Interruption()
        elif said := words.strip():
            begins = text.index(said[0], turn.words)
            begins = max(text.rfind("\n", turn.words, begins) + 1, turn.words)
            line, at = line + text.count("\n", at, begins), begins
            said = words[begins - turn.words :].rstrip()
            said = _LONG.sub(lambda found: found[0][:LINE_LIMIT], said) if len(said) > LINE_LIMIT else said
            yield SpokenMessage(speaker if speaker in ("user", "assistant") else "other", said, line)


def _read_call(turn: TurnStart, text: str) -> ToolCall:
    """Reads a call: its arguments behind the head, as code, and what it printed in the fences below."""
    given, _, below = text.partition("\n")
    detail = given.removeprefix(" · ").rstrip()
    failed = detail == "failed" or detail.endswith(" · failed")
    detail = detail.removesuffix("failed").removesuffix(" · ") if failed else detail
    ticks = len(detail) - len(detail.lstrip("`"))
    if ticks and len(detail) > 2 * ticks and detail.endswith("`" * ticks):
        inner = detail[ticks:-ticks]  # one blank on either side parts it from ticks
        detail = inner[1:-1] if inner[:1] == inner[-1:] == " " and len(inner) > 2 else inner
    role, _, name = turn.label.partition(" ")
    detail = "" if role == "Sub-agent" or detail == "gave back" else detail
    printed = "".join(found[2] for found in _PRINTED.finditer(below)) if "```" in below else ""
    return ToolCall((name or role).lower(), detail, failed, printed[-OUTPUT_CHARACTERS:])


def turns_of(transcript: str) -> list[Turn]:
    """Returns the turns of a transcript; of very many the first and the last ones."""
    found: list[Turn] = []
    for step in parse(transcript):
        if isinstance(step, SpokenMessage) and step.speaker == "user":
            found.append(Turn(len(found) + 1, step))
            continue
        if not found:
            found.append(Turn(1))
        turn = found[-1]
        turn.steps.append(step)
        if isinstance(step, SpokenMessage) and step.speaker == "assistant":
            turn.report, turn.ended, turn.interrupted = step, True, False
        elif isinstance(step, ToolCall):
            turn.ended = turn.interrupted = False
        elif isinstance(step, Interruption):
            said = turn.report.text if turn.ended and turn.report else ""
            turn.interrupted = len(said) < _WHOLE or not is_report(said)
    return found if len(found) <= 2 * _TURNS else found[:_TURNS] + found[-_TURNS:]


def is_report(text: str) -> bool:
    """Returns whether words of the agent say a result, and do not only announce a step."""
    said = text.strip()
    if not said or (said.endswith((":", "：", "…")) and len(said) < _WHOLE):
        return False
    last = said.rsplit("\n", 1)[-1]
    return len(said) >= _WHOLE or _NARRATES.search(last[-200:]) is None or last.endswith(("?", "？"))


# ── a message as passages ──


_LONGEST = 40_000

# What people use as bullets, beside those of Markdown.
_BULLET = late(r"^([ \t]*)[・•‣◦▪●○–—·✅✔☑✓⛔🚫❌✗✘⬜☐🔲][️]?[ \t]*(?=\S)", re.MULTILINE)
_BOX = late(r"^\[([ xX])\][ \t]+")
_INLINE = late(r"[*_`\[\\]")
_SPAN = late(r"(`+)([^`\n]{1,2000})\1(?!`)")
_STRONG = late(r"\s*(\*\*|__(?=[^_\n]{1,200}\s))(?=\S)(.{1,200}?)\1", 16)
_LINK = late(r"!?\[([^\[\]\n]{0,500})\]\([^()\n]{0,1000}\)")
_EMPHASIS = late(r"\*\*+|(?<![\w*])\*(?=\S)|(?<=\S)\*(?![\w*])|\\(?=[!-/:-@\[-`{-~])")
_EDGE = " \t:：.*_#-–—"
_TITLE = 60  # characters of a line that ends in a colon


class Passage(NamedTuple):
    """A paragraph, list item or heading as plain text on one line.

    A bold line, or a short one that leads to what follows, is a heading, too. `head` are the bold words that an item
    opens with.
    """

    text: str
    form: Literal["paragraph", "item", "heading"]
    head: str = ""


@lru_cache(maxsize=32)
def passages(text: str) -> Sequence[Passage]:
    """Returns the passages of a message in order, without code, quotes, tables and HTML."""
    found = list[Passage]()
    listed = apart = 0
    heading = False
    for token in _parser().parse(_BULLET.sub(r"\1- ", text[:_LONGEST])):
        name = token.type.removesuffix("_open").removesuffix("_close")
        listed += token.nesting if name == "list_item" else 0
        apart += token.nesting if name in ("blockquote", "table") else 0
        heading = token.nesting == 1 if name == "heading" else heading
        if name == "inline" and not apart:
            said = Passage(plain(token.content).strip(_EDGE), "heading") if heading else None
            found.append(said or _read_passage(token.content, item=listed > 0))
    return [one for one in found if any(map(str.isalnum, one.text))]


@cache
def _parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt  # slow import, for sessions that are read anew

    return MarkdownIt("commonmark", {"maxNesting": 20}).enable("table").disable("inline")


def _read_passage(markdown: str, *, item: bool) -> Passage:
    said, strong = _inline(markdown)
    strong = strong.strip(_EDGE)
    if item:
        return Passage(_BOX.sub("", said).strip(), "item", strong)
    bare = said.strip(_EDGE)
    titles = (strong and strong == bare) or (len(said) <= _TITLE and said.endswith((":", "：")))
    return Passage(bare, "heading") if titles else Passage(said, "paragraph")


def plain(text: str) -> str:
    """Returns Markdown within a line as plain text."""
    return _inline(text)[0]


def _inline(content: str) -> tuple[str, str]:
    """Returns a line of Markdown as plain text, and its leading bold words."""
    if not _INLINE.search(content):
        return " ".join(content.split()), ""
    bold = _STRONG.match(content)
    parts = _SPAN.split(content)  # text and code by turns
    parts[::3] = [_EMPHASIS.sub("", _LINK.sub(r"\1", text)) for text in parts[::3]]
    del parts[1::3]  # the ticks of code
    strong = _inline(bold[2])[0] if bold else ""
    return " ".join("".join(parts).split()), strong
