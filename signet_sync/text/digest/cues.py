"""Recognises labels and statements by their words; the table is `cues.tsv`, one cue per line with an example."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
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
    text = (resources.files("signet_sync.text.digest") / "cues.tsv").read_text("utf-8")
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


def any_of(patterns: Iterable[str]) -> Caseless:
    """Joins patterns so that few are tried at each position: at the start of a word, of the text, or anywhere."""
    words: list[str] = []
    starts: list[str] = []
    others: list[str] = []
    for branch in (one for pattern in patterns for one in _branches(pattern)):
        if branch.startswith(r"\b"):
            words.append(branch[2:])
        elif branch.startswith("^"):
            starts.append(branch[1:])
        else:
            others.append(branch)
    grouped = [rf"\b(?=\w)(?:{'|'.join(words)})"] if words else []
    grouped += [f"^(?:{'|'.join(starts)})"] if starts else []
    return Caseless("|".join([*grouped, *others]))


def _branches(pattern: str) -> Iterator[str]:
    """Yields the alternatives of a pattern that are outside any group."""
    begun = depth = 0
    escaped = in_set = False
    for at, sign in enumerate(pattern):
        if escaped:
            escaped = False
        elif sign == "\\":
            escaped = True
        elif in_set:
            in_set = sign != "]"
        elif sign == "[":
            in_set = True
        elif sign in "()":
            depth += 1 if sign == "(" else -1
        elif sign == "|" and not depth:
            yield pattern[begun:at]
            begun = at + 1
    yield pattern[begun:]


class Cues:
    """The table for some languages: one pattern per kind."""

    def __init__(self, languages: frozenset[str]) -> None:
        self._languages = sorted(languages)
        self._of_kinds: dict[str, Caseless | None] = {}
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
        """Returns whether a text contains a cue of a kind."""
        pattern = self._of_kind(kind)
        return pattern is not None and pattern.search(text[:_SEARCHED]) is not None

    def _of_kind(self, kind: str) -> Caseless | None:
        """Returns the pattern of a kind, compiled at first use."""
        if kind not in self._of_kinds:
            found = [pattern for language in self._languages for pattern in _patterns().get((language, kind), ())]
            self._of_kinds[kind] = any_of(found) if found else None
        return self._of_kinds[kind]


@lru_cache(maxsize=16)
def cues(languages: frozenset[str]) -> Cues:
    """Returns the table for some languages; compiled at first use."""
    return Cues(languages)
