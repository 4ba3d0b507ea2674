"""Splits text into sentences, and compares them by their words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise

from signet_sync.formats.lazy_pattern import late

_FENCE = late(r"^[ ]{0,3}(`{3,}+|~{3,}+)[^\n]*+\n.*?(?:^[ ]{0,3}\1[^\n]*$|\Z)", re.MULTILINE | re.DOTALL)
_QUOTED_LINE = late(r"^\s*(?:>|\||\+\+\+|---|@@|diff --git|\$ |#!/|at \S+\(|File \"|Traceback)")
_LOG_LINE = late(
    r"^\s*(?:\[?\d{4}-\d\d-\d\d[T ]|\d\d:\d\d:\d\d"
    r"|\[?(?:INFO|WARN(?:ING)?|ERROR|DEBUG|FATAL|TRACE|E|W)\]?[:\s]\s*\S|npm (?:ERR|WARN|error)"
    r"|error(?:\[\w+\])?:|warning:|fatal:|panic:|make(?:\[\d+\])?:|\S+\.\w{1,5}:\d+[:,]|E\s{2,}|\w+Error:"
    r"|FAIL(?:ED)?\b|---|\{\"|//|/\*|\* @)"
)
_END = late(r"[.!?…。！？](?:(?<![。！？])[\"'”’»)]*\s+|(?<=[。！？])\s*)(?=\S)")
_SAYS_SOMETHING = late(r"[^\W_]")
_FORM = 8  # characters of the longest abbreviation
_SHORT_WORDS = tuple("bzw ca vs etc approx no nr ej resp incl inkl dr mr ms st usw".split())
_SHORT_FORMS = late(
    rf"(?:(?<!\d )\b(?:e\.g|i\.e|z\.B|d\.h|{'|'.join(_SHORT_WORDS)}|p\.ex|u\.a|т\.е|т\.д)\.|\b\w\.|^\d+\.)$",
    re.IGNORECASE,
)
# "drop C and D. but keep B": the letter is a name, not an abbreviation.
_LETTER = late(r"\s[A-Z]\.$")
_GOES_ON = late(r"(?:but|and|also|btw|then|mais|aber|und|pero|mas|ma|но)\b")
_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff"
_WORDS = late(rf"[{_CJK}]{{2}}|[^\W_{_CJK}][\w.+#-]*[\w+#]|\d+", re.UNICODE)
IS_CJK = late(f"[{_CJK}]")
_STEMMED = 1_000  # characters of a text that are compared
_COMMON_WORDS = (
    "the and for with that this from into are was were has have had been not dont but you your our its "
    "it's they them there here when then than what which will would should could can may also just now "
    "only all any some one two out off over about after before because please let use used using make made "
    "get got still yet more most less very too each other same new does did done doing where who how why "
    "so if or as at by in on of to is it be we me my do no yes ok okay und der die das den dem ein eine "
    "ist nicht mit von für auf aus bei wir ich sie es auch noch nur aber dass wie wenn les des une est pas "
    "dans pour sur avec que qui mais nous vous los las una por para con pero del como más sin это что как "
    "для при или так уже они его было нет она "
)
_COMMON = frozenset(_COMMON_WORDS.split())


def sentences(text: str) -> Iterator[tuple[str, int]]:
    """Yields the sentences of a message with the line (from 0) on which each begins, without code, quotes and logs."""
    if "```" in text or "~~~" in text:
        text = _FENCE.sub(lambda found: "\n" * found[0].count("\n"), text)
    for number, line in enumerate(text.split("\n")):
        if not line.strip() or _QUOTED_LINE.match(line) or _LOG_LINE.match(line):
            continue
        yield from ((sentence, number) for sentence in split(line))


_TAG = late(r"^<([a-z][a-z0-9_-]{2,40})[ >]", re.MULTILINE)
_PASTES = late(
    r"\b(?:thread|wrote|writes|said|says|log|output|message|mail|email|from|paste[ds]?|quote[ds]?"
    r"|stack ?trace|console|slack|ticket|schreibt|meldet|écrit|escribe|scrive|пишет)\b[^\n]{0,60}[:：]\s*$"
    r"|(?:日志|报错|原文|ログ|エラー|로그)[^\n]{0,20}[:：]\s*$",
    re.IGNORECASE,
)
_SPEAKS = late(
    r"^\s*(?:[-*] )?(?:\[?\d\d?:\d\d\]? )?@?([A-ZÀ-Þ][\w.-]{1,20})(?: [A-Z][\w.]{1,20})?(?: \(\d\d?:\d\d\))?:\s"
)


def unpasted(text: str) -> str:
    """Drops tagged text and other people's words from a person's message; line numbers stay the same."""
    if "<" in text:
        text = _untagged(text)
    lines = text.split("\n")
    speakers = [found[1] for line in lines if (found := _SPEAKS.match(line))]
    dialogue = len(speakers) > 2 and len(set(speakers)) > 1
    pasted = False
    for number, line in enumerate(lines):
        if pasted and not line.strip():
            pasted = number > 0 and not lines[number - 1].strip()
            pasted = pasted or _PASTES.search(lines[number - 1]) is not None
        if pasted or (dialogue and _SPEAKS.match(line)):
            lines[number] = ""
            continue
        pasted = _announces(line)
    return "\n".join(lines)


def _announces(line: str) -> bool:
    """Returns whether a line announces another person's words."""
    return line.rstrip().endswith((":", "：")) and _PASTES.search(line[-120:]) is not None


def _untagged(text: str) -> str:
    kept: list[str] = []
    at = 0
    unclosed: set[str] = set()
    for tag in _TAG.finditer(text):
        if tag.start() < at or tag[1] in unclosed:
            continue
        end = text.find(f"</{tag[1]}>", tag.end())
        if end < 0:
            unclosed.add(tag[1])
            continue
        end += len(tag[1]) + 3
        kept += [text[at : tag.start()], "\n" * text.count("\n", tag.start(), end)]
        at = end
    return "".join([*kept, text[at:]])


_QUOTED = late(r"\"[^\"\n]{12,}\"|“[^”\n]{12,}”|„[^“”\n]{12,}[“”]|«[^»\n]{12,}»|「[^」\n]{6,}」")


_SAYS = late(r"\b(?:log|error|message|console|it|output|docs?|readme|compiler|linter) says\b.{0,400}", re.IGNORECASE)


def unquoted(sentence: str) -> str:
    """Returns a sentence without its quotations: the words of others request nothing."""
    if any(mark in sentence for mark in '"“„«「'):
        sentence = _QUOTED.sub(" ", sentence)
    return _SAYS.sub(" ", sentence) if "says" in sentence else sentence


def split(line: str) -> list[str]:
    """Splits a line into sentences; the point of an abbreviation ends none."""
    line = line.strip()
    parts = []
    at = 0
    for end in _END.finditer(line):
        parts.append(line[at : end.start() + 1])
        at = end.end()
    if not at:
        return [line] if _SAYS_SOMETHING.search(line) else []
    found: list[str] = []
    begun = ""
    for part in (*parts, line[at:]):
        if begun and _GOES_ON.match(part) and _LETTER.search(begun):
            found.append(begun)
            begun = ""
        begun = f"{begun} {part}".strip() if begun else part.strip()
        if not begun.endswith(".") or not _is_short_form(begun):
            found.append(begun)
            begun = ""
    if begun:
        found.append(begun)
    return [sentence for sentence in found if sentence[0].isalnum() or _SAYS_SOMETHING.search(sentence)]


def _is_short_form(begun: str) -> bool:
    """Returns whether the point at a text's end belongs to an abbreviation."""
    word = begun[begun.rfind(" ", max(0, len(begun) - 40)) + 1 : -1]
    if len(word) > 1 and word.isascii() and word.isalpha() and word.lower() not in _SHORT_WORDS:
        return False  # nearly all words
    return _SHORT_FORMS.search(begun, max(0, len(begun) - _FORM)) is not None


def stems(text: str) -> frozenset[str]:
    """Returns the content words of a text, cut to five letters; for CJK scripts, pairs of characters."""
    return _stems(text[:_STEMMED])


@lru_cache(maxsize=4096)
def _stems(text: str) -> frozenset[str]:
    found = set()
    east = not text.isascii() and IS_CJK.search(text) is not None
    for word in _WORDS.findall(text.casefold()):
        if east and IS_CJK.match(word):
            found.add(word)
        elif word not in _COMMON and (len(word) > 2 or any(c.isdigit() for c in word)):
            found.add(word[:5])
    if east:
        run = [c for c in text if IS_CJK.match(c)]
        found.update(a + b for a, b in pairwise(run))
    return frozenset(found)


def overlap(one: str, other: str) -> float:
    """Returns the share of one text's words that the other has too, of the text with fewer words."""
    first, second = stems(one), stems(other)
    least = min(len(first), len(second))
    return len(first & second) / least if least else 0.0


def is_question(sentence: str) -> bool:
    """Returns whether a sentence asks something."""
    return sentence.rstrip(" \"'”’»)*_").endswith(("?", "？", "か。")) or sentence.startswith("¿")
