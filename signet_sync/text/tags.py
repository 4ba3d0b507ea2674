"""Derives concept tags: the few words that name what a text is about, found by rules alone.

Candidates, in this order: terms of the glossary, tokens joined by `. _ / -`, words after UAX #29. Each is normalized or
refused; the first different ones are the tags. Where we deviate from the original, a comment names the correction;
`docs/internals/conformance.md` lists them all.
"""

from __future__ import annotations

import re
from functools import cache
from itertools import chain
from unicodedata import normalize as unicode_form

from signet_sync.formats.lazy_pattern import late
from signet_sync.text.index_words import CJK

MOST = 8
LONGEST = 32  # characters of a tag. Correction "characters": the original counts bytes
MOST_READ = 4_000  # characters of a text, as many as a memory may have

# Runs and joiners are possessive, so that any text is read only once.
_COMPOUND = late(r"(?<![^\W_])[^\W_]++(?:[._/-][^\W_]++)++")
_DATE = late(r"\d{4}-\d{2}-\d{2}(?:\.[^\W_]+)?")
# Correction "redactions": the name of the rule that found a secret is not a topic of the text.
_REDACTED = late(r"\[REDACTED:[a-z0-9-]+\]")
_ENDS = late(r"^[\W_]+|[\W_]+$")
_DENSE = late(f"[{CJK}]")
_KANA = late("[\u3040-\u30ff\uff66-\uff9f]{2}")  # two alone are mostly grammar


def derive(text: str) -> tuple[str, ...]:
    """Returns the tags of a text: at most `MOST`, in the order in which they were found.

    Only the first `MOST_READ` characters of a text are read. Total, deterministic; `()` if there is no tag.
    """
    from apsw.unicode import word_iter  # late: most processes never derive a tag, and its tables take long to load

    read = text[:MOST_READ]
    if len(text) > MOST_READ and not text[MOST_READ].isspace():
        read = read.rsplit(None, 1)[0] if read.strip() else ""  # a long one ends with its last whole word
    source = _REDACTED.sub(" ", read)
    tags: dict[str, None] = {}
    for candidate in chain(glossary_terms(source), _COMPOUND.findall(source), word_iter(source)):
        if (tag := normalize(candidate)) is not None:
            tags[tag] = None
            if len(tags) == MOST:
                break
    return tuple(tags)


def glossary_terms(text: str, limit: int = MOST) -> tuple[str, ...]:
    """Returns at most `limit` glossary terms in a text, also inside other words, in the glossary's order."""
    low = _lower(text)
    found = [term for term in _glossary() if term in low]
    # Correction "short terms": `css3` and `mkv` are not about `s3` and `kv`.
    return tuple([term for term in found if not _is_short(term) or _alone(term).search(low)][:limit])


def normalize(token: str) -> str | None:
    """Normalizes a token to a tag: NFKC, lower case, nothing but letters and numbers at its ends, `-` for `_`.

    None for what cannot be one: too long or too short for its script, a number, a date, a stop word.
    """
    if len(token) > 4 * LONGEST:  # no more than four characters compose to one
        return None
    # Correction "stable": the original strips before it lowers, and its `İ` leaves a mark at the end that a second
    # normalization would remove.
    tag = _ENDS.sub("", _lower(token)).replace("_", "-")
    if not tag or len(tag) > LONGEST or tag.isdecimal() or tag in _stop_words() or _DATE.fullmatch(tag):
        return None
    # Correction "short terms": a term of the glossary is long enough.
    is_tag = not any(map(str.isspace, tag)) and (not _is_short(tag) or tag in _glossary())
    return tag if is_tag else None


@cache
def _alone(term: str) -> re.Pattern[str]:
    """Makes a pattern for a term between characters that are not letters or numbers, or need no spaces (Chinese)."""
    beside = rf"[^\W_{CJK}]"
    return re.compile(f"(?<!{beside}){re.escape(term)}(?!{beside})")


def _lower(text: str) -> str:
    if text.isascii():
        return text.lower()
    # Twice: lower case may leave characters that compose.
    return unicode_form("NFKC", unicode_form("NFKC", text).lower())


def _is_short(tag: str) -> bool:
    """Returns whether a tag has fewer than three characters, or two if it is Chinese, Korean, or Japanese with Han."""
    return len(tag) < 2 or (len(tag) == 2 and (not _DENSE.search(tag) or _KANA.fullmatch(tag) is not None))


# ── lists ──


@cache
def _glossary() -> dict[str, None]:
    """Returns the terms in their order; a dict, because they are looked up too."""
    return dict.fromkeys(map(_lower, _lines("glossary.txt")))


@cache
def _stop_words() -> frozenset[str]:
    return frozenset(_lines("stop_words.txt"))


def _lines(file: str) -> list[str]:
    """Returns the entries of a list, without its headings."""
    from pkgutil import get_data

    raw = get_data(__package__, file)
    assert raw is not None, "the loader of every ordinary installation gives data"
    lines = map(str.strip, raw.decode("utf-8").splitlines())
    return [line for line in lines if line and not line.startswith("#")]
