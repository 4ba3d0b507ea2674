"""Recognises labels and statements by their words; the table is `cues.tsv`, one cue per line with an example."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, lru_cache
from importlib import resources
from typing import NamedTuple

from signet_sync.formats.lazy_pattern import Caseless, late

# The order in which kinds are tried for a label; the first match counts.
LABELS = ("blocker", "next", "decision", "constraint", "preference", "plan", "state", "done")
# A cue counts near a label's beginning, or in a short label: "Two pull requests are open:" lists no open items.
_NEAR, _SHORT = 14, 3
_LABEL, _SEARCHED = 120, 600  # longest label; characters of a sentence that are searched
_KNOWN = 2_000  # labels whose kinds are remembered

# Words that distinguish a language written in Latin letters from the others.
_TELLS = {
    "de": "der die das und nicht ist ich wir bitte ein eine einen für mit auf noch den dem es zu im von sind "
    "wird haben aus nach lieber dann ohne kein keine ab doch ja pro einem eigenen laut mir mich muss",
    "fr": "le les des est pas je nous il ne pour dans avec une du sur et la en que ce qui au plus vous tu on "
    "sont sans mon puis plutôt oui aucune désormais prochaine demain première deuxième réponds",
    "es": "el los las no se para con una por que del está y en la lo como más pero al hay sin qué es ahora sí "
    "nos esta siempre prefiero mañana mejor primera falta queda hasta usa",
    "pt": "não os as um uma para com está do da dos das no na em que por mais o é e ainda foi sem isso quando "
    "você sempre amanhã melhor primeira falta até",
    "it": "il la non di che per con una è gli nel della del i un le si sono ma alla dal ora anche più sul "
    "preferisco domani anzi prima resta manca usiamo senza dobbiamo",
}  # fmt: skip
_WORD = late(r"[^\W\d_]+")
_SCRIPTS = (
    ("ru", late("[а-яё]", re.IGNORECASE)),
    ("ja", late("[\u3040-\u30ff]")),
    ("zh", late("[\u4e00-\u9fff]")),
    ("ko", late("[\uac00-\ud7a3]")),
)


class Cue(NamedTuple):
    """A line of the table: kind, language, pattern, and a text that matches."""

    kind: str
    language: str
    pattern: str
    example: str


@cache
def table() -> tuple[Cue, ...]:
    """Returns the lines of the table."""
    text = (resources.files("signet_sync.sessions.digest") / "cues.tsv").read_text("utf-8")
    return tuple(Cue(*line.split("\t")) for line in text.split("\n") if line and not line.startswith("#"))


def languages_of(texts: Iterable[str]) -> frozenset[str]:
    """Returns the languages that some messages may be written in; always includes English."""
    found = {"en"}
    telling_words = {language: frozenset(words.split()) for language, words in _TELLS.items()}
    for text in texts:
        if not text.isascii():
            found.update(language for language, letters in _SCRIPTS if letters.search(text))
        words = {word.lower() for word in _WORD.findall(text)}
        for language in [one for one in telling_words if one not in found]:
            # One word is enough for few words: "la segunda".
            if len(words & telling_words[language]) >= (1 if len(words) <= 8 else 2 if len(words) <= 20 else 4):
                found.add(language)
    return frozenset(found)


@cache
def _patterns() -> dict[tuple[str, str], list[str]]:
    """Returns the table's patterns by language and kind."""
    found: dict[tuple[str, str], list[str]] = {}
    for cue in table():
        found.setdefault((cue.language, cue.kind), []).append(cue.pattern)
    return found


def any_of(patterns: Sequence[str]) -> Caseless:
    """Joins patterns to one that matches where any of them does."""
    return Caseless(_gathered(patterns, plain=False), _gathered(patterns, plain=True))


def _gathered(patterns: Iterable[str], *, plain: bool) -> str:
    """Joins patterns so that few are tried at each position: at the start of a word, of the text, or anywhere.

    With `plain`, alternatives that begin with a letter beyond ASCII are left out: no ASCII text contains them.
    """
    words: list[str] = []
    starts: list[str] = []
    others: list[str] = []
    for branch in (one for pattern in patterns for whole in _branches(pattern) for one in _opened(whole)):
        behind = _BEHIND.match(branch)
        if behind:
            words.append(behind[1] + branch[behind.end() :])
        elif branch.startswith(r"\b"):
            words.extend(_opened(branch[2:]))
        elif branch.startswith("^"):
            starts.extend(_opened(branch[1:]))
        else:
            others.append(branch)
    if plain:
        words, starts, others = ([one for one in some if not _BEYOND.match(one)] for some in (words, starts, others))
    grouped = [rf"\b(?=\w)(?:{_by_letter(words)})"] if words else []
    grouped += [f"^(?:{_by_letter(starts)})"] if starts else []
    return "|".join([*grouped, *others]) or "(?!)"


_SHORT_END = 40  # characters; a longer end of a pattern is repeated for each first letter only
_BEYOND = late(r"[^\x00-\x7f](?![?*{])")
_BEHIND = late(r"((?:\(\?<[!=][^()]*\))+)\\b")


def _opened(branch: str) -> Iterator[str]:
    """Yields a pattern that begins with a group once for each of the group's alternatives."""
    if branch.startswith("(?:") and "(?P" not in branch:
        end = next((at for at, mark, depth in _marks(branch) if mark == ")" and not depth), len(branch))
        behind = branch[end + 1 :]
        if not behind.startswith(("?", "*", "+", "{")):
            found = list(_branches(branch[3:end]))
            if len(behind) > _SHORT_END:
                found = _letters(found)
            for one in found:
                yield from _opened(one + behind)
            return
    yield branch


def _by_letter(branches: Iterable[str]) -> str:
    """Joins alternatives to one pattern, grouped by first letter."""
    return "|".join(_letters(branches))


def _letters(branches: Iterable[str]) -> list[str]:
    """Groups alternatives by the letter that they begin with."""
    letters: dict[str, list[str]] = {}
    others = []
    for branch in branches:
        if branch[:1].isalpha() and branch[1:2] not in ("?", "*", "+", "{"):
            letters.setdefault(branch[0].lower(), []).append(branch[1:])
        else:
            others.append(branch)
    return [*(f"{letter}(?:{'|'.join(rest)})" for letter, rest in letters.items()), *others]


def _branches(pattern: str) -> Iterator[str]:
    """Yields the alternatives of a pattern that are outside any group."""
    begun = 0
    for at, mark, depth in _marks(pattern):
        if mark == "|" and not depth:
            yield pattern[begun:at]
            begun = at + 1
    yield pattern[begun:]


def _marks(pattern: str) -> Iterator[tuple[int, str, int]]:
    """Yields a pattern's brackets and bars outside sets and escapes: position, character, group depth after it."""
    depth = at = 0
    in_set = False
    while at < len(pattern):
        mark = pattern[at]
        if mark == "\\":
            at += 1
        elif in_set:
            in_set = mark != "]"
        elif mark == "[":
            in_set = True
        elif mark in "()|":
            depth += (mark == "(") - (mark == ")")
            yield at, mark, depth
        at += 1


class Cues:
    """The table for some languages: one pattern per kind."""

    def __init__(self, languages: frozenset[str]) -> None:
        self._languages = sorted(languages)
        self._gathered: dict[str, Caseless | None] = {}
        self._labels: dict[str, str] = {}

    def kind_of(self, label: str) -> str:
        """Returns the kind that a label announces (one of `LABELS`), else an empty text."""
        if not label or len(label) > _LABEL:
            return ""
        known = self._labels.get(label)
        if known is None:
            known = next((kind for kind in LABELS if self._announces(kind, label)), "")
            if len(self._labels) < _KNOWN:
                self._labels[label] = known
        return known

    def _announces(self, kind: str, label: str) -> bool:
        pattern = self._of_kind(f"label.{kind}")
        found = pattern.search(label) if pattern else None
        return found is not None and (found.start() < _NEAR or len(label.split()) <= _SHORT)

    def has(self, kind: str, text: str) -> bool:
        """Whether a text contains a cue of a kind."""
        pattern = self._of_kind(kind)
        return pattern is not None and pattern.search(text[:_SEARCHED]) is not None

    def _of_kind(self, kind: str) -> Caseless | None:
        """Returns the pattern of a kind, compiled at first use."""
        if kind not in self._gathered:
            found = [pattern for language in self._languages for pattern in _patterns().get((language, kind), ())]
            self._gathered[kind] = any_of(found) if found else None
        return self._gathered[kind]


@lru_cache(maxsize=16)
def cues(languages: frozenset[str]) -> Cues:
    """Returns the table for some languages; compiled at first use."""
    return Cues(languages)
