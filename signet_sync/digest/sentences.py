"""Splits text into sentences, and compares them by their words."""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise

from signet_sync.formats.lazy_pattern import late

# The point of a common abbreviation, of a number at the beginning and of an initial ends no sentence.
_END = late(
    r"(?<!\be\.g)(?<!\bi\.e)(?<!\bz\.B)(?<!\bd\.h)(?<!\bvs)(?<!\bbzw)(?<!\bca)(?<!\bDr)(?<!^\d)(?<!\b[A-Z])"
    r"[.!?…。！？](?:(?<![。！？])[\"'”’»)]*\s+|(?<=[。！？])\s*)(?=\S)"
)
_SAYS_SOMETHING = late(r"[^\W_]")
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


def split(line: str) -> list[str]:
    found, at = list[str](), 0
    for end in _END.finditer(line := line.strip()):
        found.append(line[at : end.start() + 1])
        at = end.end()
    found.append(line[at:])
    return [one for one in found if _SAYS_SOMETHING.search(one)]


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
    return sentence.rstrip(" \"'”’»)*_").endswith(("?", "？", "か。")) or sentence.startswith("¿")
