"""Splits text into sentences, and compares them by their words."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import pairwise

from signet_sync.formats.lazy_pattern import late

_END = late(r"[.!?…。！？](?:(?<![。！？])[\"'”’»)]*\s+|(?<=[。！？])\s*)(?=\S)")
_SAYS_SOMETHING = late(r"[^\W_]")
_FORM = 8  # characters of the longest abbreviation
_SHORT_WORDS = tuple("bzw ca vs etc approx no nr ej resp incl inkl dr mr ms st usw".split())
_SHORT_FORMS = late(
    rf"(?:(?<!\d )\b(?:e\.g|i\.e|z\.B|d\.h|{'|'.join(_SHORT_WORDS)}|p\.ex|u\.a|т\.е|т\.д)\.|\b\w\.|^\d+\.)$",
    re.IGNORECASE,
)
_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff"
_OTHER_WORDS = late(r"[^\W_][\w.+#-]*[\w+#]|\d+")
_WORDS = late(rf"[{_CJK}]{{2}}|[^\W_{_CJK}][\w.+#-]*[\w+#]|\d+")
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
COMMON = frozenset(_COMMON_WORDS.split())
# What only introduces, offers, or says that checks went well.
EMPTY = late(
    r"^\W*(?:(?:perfect|great|excellent|done|all done|good|ok(?:ay)?|sure|right|exactly|understood|got it"
    r"|you'?re (?:absolutely )?right)\b[^.!?:]{0,25}[.!:]?\W*$"
    r"|(?:here(?:’|')?s|here are|below (?:is|are)|let me|i'll|i’ll|i will|voici|hier (?:ist|sind)|ecco|aquí|aqui"
    r"|вот)\b.{0,80}:?$"
    r"|(?:all|everything|the)?\s*(?:\d+ )?(?:[\w-]+ )?(?:tests?|lint\w*|checks?|builds?"
    r"|ci|changes)\b[^.]{0,40}(?:pass\w*|green|clean|succeed\w*|verified)\b(?:.{0,20}$|\s*[:(])"
    r"|(?:want|would you like|shall|should|do you want|let me know|soll|möchtest|veux-tu|voulez|dis-moi|quieres"
    r"|quer|vuoi|хотите)\b"
    r"|(?:the )?(?:build|rebase|merge|push|commit|task|fix)(?: is| was)?(?: now)? (?:complete\w*|successful\w*|done)\b"
    r".{0,20}$"
    r"|committed(?: and pushed)?\W*[\w/`]{0,30}\W*$|no response requested)",
    re.I,
)


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
    has_cjk = max(text, default="") >= _CJK[0] and IS_CJK.search(text) is not None  # a class so large compiles slowly
    words = set((_WORDS if has_cjk else _OTHER_WORDS).findall(text.casefold())) - COMMON
    found = {word[:5] for word in words if len(word) > 2 or not word.isalpha()}
    if has_cjk:
        found.update(word for word in words if IS_CJK.match(word))
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
