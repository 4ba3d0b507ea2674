"""Tells a person's own words in a message from what they pasted: logs, code, reviews, templates, earlier output.

By form: shapes and density of lines, who is addressed, lines that a tool or the agent said before. What cannot be told
is no statement.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from signet_sync.digest.sentences import split
from signet_sync.digest.turns import HarnessNote, ToolCall, Turn
from signet_sync.formats.lazy_pattern import late

_LONGEST = 4_000  # characters of a message's beginning, and of its end
_LINE = 2_000
_EDGE, _SHORTEST = " \t-*>•`#\\", 24  # of a line that can be known again
_SIGN = late(r"[^\w\s.,'’!?;:()\-\"/`，。！？、：]|_")

FENCE = late(r"^[ \t]*(```+|~~~+)[^\n]*\n.*?(?:^[ \t]*\1[^\n]*$|\Z)", re.M | re.S)
# Prompts, boxes, marks and trees of terminals; times, levels, frames and places of logs; headers; diffs.
_PRINTED = late(
    r"^\s*(?:[❯➜>$%⏺⎿✻✽│├└┌✔✗✘✓✕❌•]|#\s+\S+@|\+\d+ more lines|\(ctrl\+|[\w.-]+@[\w-]+[:~ ].{0,40}[%$#] "
    r"|\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d|\[?\d\d:\d\d:\d\d|\[?(?:ERROR|WARN(?:ING)?|INFO|DEBUG|TRACE|FATAL|FAIL(?:ED)?|PASS(?:ED)?)\b[\]: ]"
    r"|npm (?:ERR|error|WARN|warn)|error(?:\[\w+\])?:|warning:|fatal:|panic:|make(?:\[\d+\])?:|Traceback|File \"|at \S+ ?\(|\w*(?:Error|Exception):"
    r"|=> |#\d+ |@@ |diff --git|index [0-9a-f]{7}|\+\+\+|--- |[+-]\s{2,}|[|>]|[a-z][\w-]{1,30}: \S.{0,200}HTTP/|HTTP/\d|GET |POST |(?:From|To|Subject|Date|Cc): \S"
    r"|\S+\.(?:go|tsx?|jsx?|py|rs|java|rb|kt|c|cpp|h|cs|swift|php|vue)[:(]\d+|[0-9a-f]{7,40}\b|\d+ (?:passed|failed)|<\/?\w+[ >])"
)
_CODE = late(
    r"[{};]\s*$|=>|:=|&&|\|\||^\s*(?:import|from|const|let|var|func|def|class|return|if|for|#include|public|private|export|async"
    r"|SELECT|INSERT|CREATE|UPDATE|\"[\w-]+\"|[\w-]+):?\s?.*[(){}=<>\[\]\"]"
)
_QUOTES_A_RUN = 6  # lines between two printed ones that belong to them
# A review or a ticket begins.
_REVIEW = late(
    r"^(?:[^\w\n]{0,20}(?:strengths|weaknesses|suggestions?|steps to reproduce|expected behaviou?r|actual behaviou?r"
    r"|(?:low|medium|high|critical|minor|major) (?:severity|priority)|acceptance criteria|code review (?:for|of)|reviewer feedback|reviewed? \d+ of \d+)\b"
    r"|##? (?:Description|Summary|Context|Problem|Goal|Task|Requirements|Instructions|Output|Role|Objective)\b)",
    re.I | re.M,
)
# What programs say in the person's place: prompts of commands, skills, sub-agents and hooks, compactions.
_TEMPLATE = late(
    r"\s*(?:<[a-z][\w-]*>|You are (?:a|an|the)\b|This session is being continued|Base directory for this skill|Caveat:"
    r"|# AGENTS\.md|Stop hook feedback|Full transcript available|\[Image|# \w[^\n]{2,60}\n[\s\S]{600,}|---\n\w+:|Implement the following plan:"
    r"|## (?:Context|Task|Goal)|Read and follow)"
)
OWN = late(
    r"\b(?:i|i'm|i'd|i'll|i've|we|we're|let's|lets|can you|could you|please|pls|you|my|our|me|us|ich|wir|bitte|mir|du|je|j'\w+"
    r"|nous|tu|moi|s'il|yo|nosotros|por favor|eu|nós|io|noi|я|мы|мне|ben|biz|lütfen|mình|tôi|bạn)\b"
    r"|私|僕|我|你|请|저|나는|우리|해줘|주세요|ください|して",
    re.I,
)
_HOOK = late(
    r"^\W*(?:Operation |\w+ )?(?:stopped by hook|hook (?:feedback|error|blocked|stopped))\b",
    re.IGNORECASE | re.MULTILINE,
)
_HANDS_OVER = late(
    r"\b(?:below|following|output|logs?|transcript|error|message|review|feedback|says|here|wrote|schreibt|écrit)\s*[:：]\s*$"
    r"|^\W*(?:transcript|output|logs?|error|trace|review|日志|报错|ログ|エラー|로그)\W*$",
    re.I,
)
_ITEM = late(r"^\s*(?:[-*•]|\d{1,2}[.)]|#{1,6})\s+")


class OwnWords(Mapping[int, Sequence[str]]):
    """Gives by turn the sentences that its person wrote; knows the lines that tools and the agent said before.

    A turn is read when it is asked for: of a long session few are.
    """

    def __init__(self, turns: Sequence[Turn]) -> None:
        self._turns = turns
        self._words = {turn.number: turn.words.text for turn in turns if turn.words is not None}
        self._own: dict[int, list[str]] = {}
        self._heard = 0
        self._said: dict[str, int] = {}  # lines by the turn that had them first

    def __getitem__(self, number: int) -> list[str]:
        if number not in self._own:
            self._own[number] = self._read(self._words[number], number)
        return self._own[number]

    def __iter__(self) -> Iterator[int]:
        return iter(self._words)

    def __len__(self) -> int:
        return len(self._words)

    def _was_said(self, bare: str, number: int) -> bool:
        """Returns whether a line stood in a turn before."""
        while self._heard < len(self._turns) and self._turns[self._heard].number < number:
            turn = self._turns[self._heard]
            for step in turn.steps:
                if isinstance(step, HarnessNote):
                    continue
                for line in (step.printed if isinstance(step, ToolCall) else step.text).split("\n"):
                    if len(line) >= _SHORTEST:
                        self._said.setdefault(line.strip(_EDGE), turn.number)
            self._heard += 1
        return self._said.get(bare, number) < number

    def _read(self, text: str, number: int) -> list[str]:
        """Returns the sentences of a message that are the person's own."""
        if _TEMPLATE.match(text):
            return []
        if "```" in text or "~~~" in text:
            text = FENCE.sub("\n\n", text)
        if len(text) > 2 * _LONGEST:
            text = f"{text[:_LONGEST]}\n\n{text[-_LONGEST:]}"
        if "hook" in text and (printed := _HOOK.search(text)) is not None:
            text = text[: printed.start()]
        text = _cut_before_paste(text)
        found: list[str] = []
        for paragraph in re.split(r"\n\s*\n", "\n".join(self._kept(text.split("\n"), number))):
            lines = [line for line in paragraph.split("\n") if line.strip()]
            if len(paragraph) > 350 and not OWN.search(paragraph):
                continue
            for line in lines:
                if len(lines) > 1 and line.rstrip().endswith((":", "：")):
                    continue
                found += (sentence.strip(" \t*_") for sentence in split(_ITEM.sub("", line[:_LINE])))
        return [one for one in found if len(one) > 1]

    def _kept(self, lines: list[str], number: int) -> list[str]:
        """Empties lines that somebody else made, and the few between two of them."""
        foreign = [place for place, line in enumerate(lines) if self._is_foreign(line, number)]
        for before, after in pairwise(foreign):
            if after - before <= _QUOTES_A_RUN:
                lines[before:after] = [""] * (after - before)
        for place in foreign:
            lines[place] = ""
        return lines

    def _is_foreign(self, line: str, number: int) -> bool:
        bare = line.strip(_EDGE)
        if not bare:
            return False
        if len(bare) >= _SHORTEST and self._was_said(bare, number):
            return True
        if _PRINTED.match(line):
            return True
        signs = len(_SIGN.findall(line[:400]))
        return signs > 2 and (signs > 0.2 * min(len(line), 400) or _CODE.search(line[:400]) is not None)


def _cut_before_paste(text: str) -> str:
    """Cuts a message where a long text of somebody else begins."""
    if len(text) < 300:
        return text
    at = 0
    for line in text.split("\n"):
        at += len(line) + 1
        if len(text) - at <= 200:
            break
        if (len(line) < 20 or (len(line) < 400 and line.rstrip().endswith((":", "：")))) and _HANDS_OVER.search(line):
            return text[: at - 1]
    review = _REVIEW.search(text)
    if review:
        head = text[: review.start()].split("\n\n")[0]
        return head if len(head) < 400 and OWN.search(head) else ""
    return text
