"""Derives concept tags: the few words that name what a text is about, found by rules alone.

Candidates, in this order: terms of the glossary, tokens joined by `. _ / -`, words after UAX #29. Each is normalized or
refused; the first different ones are the tags. Where we deviate from the original, a comment names the correction;
`docs/internals/conformance.md` lists them all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from unicodedata import is_normalized, name
from unicodedata import normalize as unicode_form

from signet_sync.formats.lazy_pattern import late
from signet_sync.text.index_words import CJK

MOST = 8
LONGEST = 32  # characters of a tag. Correction "characters": the original counts bytes
MOST_READ = 4_000  # characters of a text, as many as a memory may have
MOST_WORDS = 400  # different words of a text: where so many are refused, later ones are no better

# Runs and joiners are possessive, so that any text is read only once.
_COMPOUND = late(r"(?<![^\W_])[^\W_]++(?:[._/-][^\W_]++)++")
_DATE = late(r"\d{4}-\d{2}-\d{2}(?:\.[^\W_]+)?")
# Correction "redactions": the name of the rule that found a secret is not a topic of the text.
_REDACTED = late(r"\[REDACTED:[a-z0-9-]+\]")
# Correction "heaps of marks": sorting them is quadratic, and a stream-safe text has no more than thirty (UAX #15).
_HEAP = late(r"([^\w\s!-~]{30})[^\w\s!-~]++")
# Correction "phrases": each of these two characters represents a whole phrase with spaces, which is no tag.
_PHRASES = {ord(ligature): " " for ligature in "\ufdfa\ufdfb"}
# No more than four characters compose to one: what is longer cannot become a tag.
_COMPOSED = 4
# So begin the names of letters of which two can be a word.
_TELLING = ("CJK", "IDEOGRAPHIC", "HANGZHOU", "HANGUL")


def derive(text: str) -> tuple[str, ...]:
    """Returns the tags of a text: at most `MOST`, in the order in which they were found.

    Only the first `MOST_READ` characters of a text are read. Total, linear, deterministic; `()` if there is no tag.
    """
    tags: dict[str, None] = {}
    for candidate in _candidates(_source(text)):
        tag = normalize(candidate)
        if tag is not None:
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
    # Correction "stable": the original strips before it lowers, and its `İ` leaves a mark at the end that a second
    # normalization would remove.
    tag = _bare(_lower(token)).replace("_", "-")
    if not tag or len(tag) > LONGEST or tag.isdecimal() or tag in _stop_words() or _DATE.fullmatch(tag):
        return None
    # Correction "phrases": NFKC turns `¸`, too, into a space.
    if any(map(str.isspace, tag)):
        return None
    # Correction "short terms": a term of the glossary is long enough.
    return tag if not _is_short(tag) or tag in _glossary() else None


# ── candidates ──


def _source(text: str) -> str:
    """Returns what is read of a text; a long one ends with its last whole word."""
    read = text[:MOST_READ]
    if len(text) > MOST_READ and not text[MOST_READ].isspace():
        read = read.rsplit(None, 1)[0] if read.strip() else ""
    source = _REDACTED.sub(" ", read)
    return source if source.isascii() else _HEAP.sub(r"\1", source).translate(_PHRASES)


def _candidates(source: str) -> Iterator[str]:
    yield from glossary_terms(source)
    yield from dict.fromkeys(token for token in _COMPOUND.findall(source) if len(token) <= LONGEST * _COMPOSED)
    yield from _words(source)


def _words(source: str) -> Iterator[str]:
    """Yields the first different words after UAX #29, without those whose length alone rules them out as tags."""
    # Imported late: most processes never derive a tag, and its tables take longer to load than everything else here.
    from apsw.unicode import word_iter

    # In a Chinese text every word has one character; one that represents several, such as `㏒`, is examined.
    shortest = 2 if is_normalized("NFKC", source) else 1
    seen: set[str] = set()
    for word in word_iter(source):
        if shortest <= len(word) <= LONGEST * _COMPOSED and word not in seen:
            seen.add(word)
            yield word
            if len(seen) == MOST_WORDS:
                return


@cache
def _alone(term: str) -> re.Pattern[str]:
    """Makes a pattern for a term between characters that are not letters or numbers, or need no spaces (Chinese)."""
    beside = rf"[^\W_{CJK}]"
    return re.compile(f"(?<!{beside}){re.escape(term)}(?!{beside})")


# ── tokens ──


def _lower(text: str) -> str:
    if text.isascii():
        return text.lower()
    # Twice: lower case may leave characters that compose.
    return unicode_form("NFKC", unicode_form("NFKC", text).lower())


def _bare(token: str) -> str:
    """Strips from the ends of a token what is neither letter nor number."""
    start, end = 0, len(token)
    while start < end and not token[start].isalnum():
        start += 1
    while start < end and not token[end - 1].isalnum():
        end -= 1
    return token[start:end]


def _is_short(tag: str) -> bool:
    """Returns whether a tag has fewer than three characters, or two if it is Chinese, Korean, or Japanese with Han.

    Two kana alone are mostly grammar.
    """
    if len(tag) != 2:
        return len(tag) < 2
    names = [name(letter, "") for letter in tag]
    return any(one.startswith("LATIN") for one in names) or not any(one.startswith(_TELLING) for one in names)


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
