"""Groups a transcript by the person's messages: what was asked, what was done for it, and the report at its end.

A message's Markdown is read as passages: headings, paragraphs and list items, each with the label above it. Labels are
the names of sections in the languages that agents write: what waits, and what is aside.
Line by line, without a parser of Markdown: that took most of the time of a digest.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from itertools import chain, pairwise
from typing import Literal, NamedTuple

from signet_sync.formats.lazy_pattern import late
from signet_sync.text.chunking import TurnStart, is_ours, speaker_of, turns

# Meaningful lines are not longer, and rules read only this much of a line.
LINE_LIMIT = 4_000
# The kept part of a message is its beginning, that of a call's output its end.
MESSAGE_CHARACTERS, OUTPUT_CHARACTERS, OUTPUT_LINES = 40_000, 100_000, 18
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
        """Returns the last lines that it printed."""
        lines = self.printed.rsplit("\n", OUTPUT_LINES + 1)[-OUTPUT_LINES - 1 :]
        return [line.removeprefix("  ")[:LINE_LIMIT] for line in lines if line.strip()]


class HarnessNote(NamedTuple):
    """A note of the harness: `interrupted` if the person stopped it, `compacted` if context was cut."""

    kind: Literal["interrupted", "compacted"]


DigestTurn = SpokenMessage | ToolCall | HarnessNote


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
    def worked(self) -> bool:
        return any(isinstance(step, ToolCall) for step in self.steps)


def parse(text: str) -> Iterator[DigestTurn]:
    """Yields the messages, tool calls and notes of a transcript in order. Total, linear."""
    ours, nobody, at, line = is_ours(text), TurnStart(0, None), 0, 1
    for turn, after in pairwise(chain([nobody], turns(text), [TurnStart(len(text), None)])):
        words = text[turn.words : min(after.start, turn.words + MESSAGE_CHARACTERS)]
        role, speaker = turn.label.partition(" ")[0], speaker_of(turn.label)
        if ours and role in ("Tool", "Sub-agent"):
            yield _read_call(turn, text[turn.words : after.start])
        elif ours and role == "Compaction":
            yield HarnessNote("compacted")
        elif ours and role == "Harness":
            if "interrupted" in words or "turn aborted" in words:
                yield HarnessNote("interrupted")
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
        elif isinstance(step, HarnessNote) and step.kind == "interrupted":
            turn.interrupted = not turn.ended or turn.report is None or not is_report(turn.report.text)
    return found if len(found) <= 2 * _TURNS else found[:_TURNS] + found[-_TURNS:]


def is_report(text: str) -> bool:
    """Returns whether words of the agent say a result, and do not only announce a step."""
    said = text.strip()
    if not said or (said.endswith((":", "：", "…")) and len(said) < 300):
        return False
    last = said.rsplit("\n", 1)[-1]
    return len(said) >= 300 or _NARRATES.search(last[-200:]) is None or last.endswith(("?", "？"))


# ── a message as passages ──


Label = Literal["blocker", "aside"]

# One row a language. A name counts whole, without numbers, marks and emoji around it.
_NAMES: dict[Label, str] = {
    "blocker": (
        "blocked|blocked by|blocked on|blocker|blockers|open blockers|waiting for|waiting on"
        "|blockiert|blockiert durch|wartet auf|bloqué|bloqué par|blocages|bloqueado|bloqueado por|bloqueos|bloqueios"
        "|bloccato|bloccato da|ブロック|ブロック中|ブロッカー|阻塞|卡住|차단|막힘|заблокировано|ждёт|блокеры|engellendi"
    ),
    # What is left, and what is said about the work.
    "aside": (
        "next|next step|next steps|suggested next steps|remaining|remaining work|what's left|what's next|not done|to do"
        "|todo|open items|open questions|follow-up|follow-ups|outstanding|deferred|pending|future work|action items"
        "|nächste schritte|offen|offene punkte|offene fragen|noch zu tun|prochaines étapes|reste à faire|à faire"
        "|questions ouvertes|próximos pasos|pendiente|pendientes|próximos passos|pendências|prossimi passi|da fare"
        "|残り|残作業|次のステップ|今後|未対応|やること|下一步|后续|待办|未完成|다음 단계|남은 작업|할 일"
        "|следующие шаги|осталось|sonraki adımlar|kalan işler|bước tiếp theo"
        "|problem|the problem|bug|the bug|issue|the issue|cause|root cause|the cause|context|background|before|example"
        "|why|why it happened|verification|verified|test|tests|testing|test results|validation|note|notes|reason"
        "|how it works|usage|caveat|caveats|files|files changed|files modified|modified files|changed files|how to test"
        "|ursache|hintergrund|vorher|beispiel|überprüfung|hinweis|dateien|geänderte dateien|cause racine|contexte|avant"
        "|exemple|vérification|vérifications|remarque|fichiers|fichiers modifiés|causa|contexto|ejemplo|verificación"
        "|nota|archivos|exemplo|verificação|arquivos|contesto|esempio|verifica|file|原因|背景|例|検証|テスト|注意|ファイル"
        "|问题|示例|验证|测试|注意事项|文件|원인|배경|예시|검증|테스트|참고|причина|контекст|пример|проверка|тесты|файлы"
    ),
}  # fmt: skip
_OF: dict[str, Label] = {name: label for label, names in _NAMES.items() for name in names.split("|")}
_NAME_EDGE = late(r"^[^\w]*(?:\d{1,2}[.)]\s*)?[^\w]*|[^\w]+$")
_BEHIND = late(r"\s*[(（:：].*$|\s+(?:for|in|of|to|für|pour|para)\b.*$")
_LONGEST_NAME = 60


@cache
def label_of(title: str) -> Label | None:
    """Returns what the name of a section says; None for any other words."""
    if len(title) > _LONGEST_NAME:
        return None
    bare = " ".join(_NAME_EDGE.sub("", title).replace("’", "'").casefold().split())
    return _OF.get(bare) or _OF.get(_BEHIND.sub("", bare).strip())


def names_label(text: str, label: Label) -> bool:
    """Returns whether a text has a name of sections that say this, wherever it stands."""
    said = text.casefold()
    return any(name in said for name in _NAMES[label].split("|"))


PASSAGES = 300  # of one message
_LONGEST = 40_000

# What begins with a line; any other one is words.
_BLOCK = late(
    r"[ \t]*(?:(?P<fence>`{3,}(?=[^`]*$)|~{3,})|(?P<quote>>)|(?P<row>\|)|(?P<rule>(?:[-*_=][ \t]*){3,}$)"
    r"|(?P<heading>#{1,6})[ \t]+"
    r"|(?P<item>(?:[-*+]|\d{1,9}[.)])(?:[ \t]+|$)|[・•‣◦▪●○–—·✅✔☑✓⛔🚫❌✗✘⬜☐🔲][️]?[ \t]*(?=\S)))"
)
_CODE = 4  # blanks before a line outside a list
_BOX = late(r"^\[([ xX])\][ \t]+")
_RUN_IN = late(r"^([^:：\n]{2,60}?)\s*(?:[:：]|\s[–—])\s*(?=\S)")
_INLINE = late(r"[*_`\[\\]")
_SPAN = late(r"(`+)([^`\n]{1,2000})\1(?!`)")
_STRONG = late(r"\s*(\*\*|__(?=[^_\n]{1,200}\s))(?=\S)(.{1,200}?)\1", 16)
_LINK = late(r"!?\[([^\[\]\n]{0,500})\]\([^()\n]{0,1000}\)")
_EMPHASIS = late(r"\*\*+|(?<![\w*])\*(?=\S)|(?<=\S)\*(?![\w*])|\\(?=[!-/:-@\[-`{-~])")
_EDGE = " \t:：.*_#-–—"


class Passage(NamedTuple):
    """A paragraph, list item or heading as plain text on one line.

    `label` is the heading, bold line or lead-in above it, or the known label before its own colon. `head` are the bold
    words that an item opens with.
    """

    text: str
    form: Literal["paragraph", "item", "heading"]
    label: str = ""
    head: str = ""


@lru_cache(maxsize=32)
def passages(text: str, most: int = PASSAGES) -> Sequence[Passage]:
    """Returns the first passages of a message in order, without code, quotes, tables and HTML."""
    reader = _Reader()
    reader.read(text[:_LONGEST].split("\n"), most)
    return reader.found[:most]


class _Reader:
    """Gathers the lines of a passage, and keeps the label that holds for what follows."""

    def __init__(self) -> None:
        self.found: list[Passage] = []
        self._heading = self._label = ""
        self._lead_in = False  # the label is a sentence before a list, and ends with the list
        self._words: list[str] = []
        self._item = self._listed = False  # an item is gathered; a list is around it

    def read(self, lines: Sequence[str], most: int) -> None:
        """Reads lines until there are so many passages."""
        fence, apart, quoted = "", False, False
        for line in lines:
            if len(self.found) >= most:
                return
            bare = line.strip()
            if fence:
                fence = "" if bare.startswith(fence) and not bare.strip(fence[0]) else fence
                continue
            if not bare:
                apart, quoted = True, False
                continue
            found = _BLOCK.match(line)
            indent = len(line) - len(line.lstrip())
            if found is None:
                # Without a blank line between, words continue what is above them.
                if apart or not self._words:
                    self._end()
                    self._listed = self._listed and indent > 0
                if not quoted and (self._words or self._listed or indent < _CODE):
                    self._words.append(bare)
                    apart = False
                continue
            kind = found.lastgroup
            self._end(leads=kind == "item")
            quoted, apart = kind == "quote", True
            if kind == "item":
                self._words, self._item, self._listed, apart = [line[found.end() :]], True, True, False
            elif kind == "fence":
                fence = found["fence"]
            elif kind == "heading":
                self._heading, self._label, self._lead_in = _inline(bare.strip("#"))[0].strip(_EDGE), "", False
                self._say(self._heading, "heading")
        self._end()

    def _end(self, *, leads: bool = False) -> None:
        """Ends the passage that is gathered; `leads`: a list follows."""
        if self._words:
            said, strong = _inline("\n".join(self._words))
            if self._item:
                said = _BOX.sub("", said)
                own, rest = _own_label(said, strong)
                own, rest = (own, rest) if label_of(own) else ("", said)
                self._say(rest, "item", own, strong.strip(_EDGE))
            else:
                self._paragraph(said, strong, leads=leads)
        self._words, self._item = [], False

    def _paragraph(self, said: str, strong: str, *, leads: bool) -> None:
        """Reads a paragraph; a bold line, or one that leads to a list, labels what follows."""
        ends = said.endswith((":", "："))
        if (strong and strong.strip(_EDGE) == said.strip(_EDGE)) or (
            len(said) <= 60 and (ends or (leads and label_of(said)))
        ):
            self._label, self._lead_in = said.strip(_EDGE), not strong
            return
        own, rest = _own_label(said, strong)
        if own and not rest:
            self._label, self._lead_in = own, False
            return
        self._label, self._lead_in = "" if self._lead_in else self._label, False
        self._say(rest if own else said, "paragraph", own)

    def _say(self, text: str, form: Literal["paragraph", "item", "heading"], label: str = "", head: str = "") -> None:
        if any(map(str.isalnum, text)):
            self.found.append(Passage(text.strip(), form, label or self._label or self._heading, head))


def _own_label(text: str, strong: str) -> tuple[str, str]:
    """Splits a text into its own label and the rest; only bold words and known labels count."""
    if strong and text.startswith(strong) and len(strong) <= 60:
        rest = text[len(strong) :].lstrip()
        if strong.endswith((":", "：")) or rest.startswith((":", "：")):
            return strong.strip(_EDGE), rest.lstrip(":：–—- ")
    run_in = _RUN_IN.match(text)
    if run_in and label_of(run_in[1]):
        return run_in[1].strip(_EDGE), text[run_in.end() :]
    return "", text


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
