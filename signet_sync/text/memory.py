"""Prepares texts to be remembered: cleaned, limited in length, with their id, and tags for what they are about.

Concept tags are found by rules alone. Candidates, in this order: terms of the glossary, tokens joined by `. _ / -`,
words after UAX #29. Each is normalized or refused; the first different ones are the tags. Where we deviate from the
original, a comment names the correction; `docs/internals/conformance.md` lists them all.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import cache
from itertools import chain

from signet_sync.errors import UsageError
from signet_sync.formats.handle import id_of
from signet_sync.formats.lazy_pattern import late
from signet_sync.text.index_words import CJK

# The type decides the section of MEMORY.md (`formats.statement.SECTION_OF`).
TYPES = ("preference", "decision", "constraint", "person", "blocker", "note")
LONGEST = 4_000  # characters: a memory is a thought, a document belongs in a file
MOST_TAGS = 32

MOST_CONCEPTS = 8
LONGEST_TAG = 32  # characters of a concept tag. Correction "characters": the original counts bytes

_TAG = late(r"[\w/-]{1,64}")
_REDACTED = late(r"\[REDACTED:[^\]]*\]")
_WORD = late(r"[^\W_]+")


def memory_id(agent_id: str, kind: str, content: str) -> str:
    """Returns `m-…`: the same for texts that differ only in white space, line ends and Unicode normalization."""
    return id_of("m", agent_id, kind, " ".join(unicodedata.normalize("NFC", content).split()))


def clean_text(text: str) -> tuple[str, dict[str, int]]:
    """Returns the text as it may be kept, with its line breaks, and how often each rule redacted something.

    Raises `UsageError` if it is too long (`memory-too-long`) or nothing is left of it (`memory-empty`).
    """
    if len(text) > LONGEST * 4:  # the sanitizer would take long for a file that was passed by mistake
        raise _too_long(len(text))
    from signet_sync.text.sanitizer import sanitize_counted  # slow import; `recall` needs only the glossary

    content, redactions = sanitize_counted(text)
    content = content.strip()
    if len(content) > LONGEST:
        raise _too_long(len(content))
    if not _WORD.search(_REDACTED.sub(" ", content)):
        what, hint = "there are no words in it", 'for example: signet-sync remember "Ada wants short answers"'
        if redactions:
            what, hint = "it is a secret and nothing else", "say in words what it is for, and where it is kept"
        raise UsageError(f"this cannot be remembered: {what}", hint=hint, code="memory-empty")
    return content, redactions


def _too_long(length: int) -> UsageError:
    return UsageError(
        f"this is too long to be remembered: {length:,} characters, at most {LONGEST:,}",
        hint="remember what matters in it, and keep the rest in a file",
        code="memory-too-long",
    )


def tags_of(given: Iterable[str]) -> tuple[str, ...]:
    """Normalizes tags: lower case, `-` for spaces, no leading `#`, each once, sorted.

    Raises `UsageError` (`tag-invalid`) for what is no tag, or holds a secret.
    """
    from signet_sync.text.sanitizer import sanitize_line_counted  # likewise

    found = set()
    for text in given:
        line, redactions = sanitize_line_counted(text)
        tag = "-".join(unicodedata.normalize("NFC", line).casefold().removeprefix("#").split())
        if redactions or _TAG.fullmatch(tag) is None:
            shown = "a tag that holds a secret" if redactions else repr(line[:80])
            raise UsageError(
                f"{shown} is no tag", hint="use letters, digits, -, _ and /, at most 64", code="tag-invalid"
            )
        found.add(tag)
    if len(found) > MOST_TAGS:
        raise UsageError(f"{len(found)} tags are too many, at most {MOST_TAGS}", code="tag-invalid")
    return tuple(sorted(found))


# ── concept tags ──

# Runs and joiners are possessive, so that any text is read only once.
_COMPOUND = late(r"(?<![^\W_])[^\W_]++(?:[._/-][^\W_]++)++")
_DATE = late(r"\d{4}-\d{2}-\d{2}(?:\.[^\W_]+)?")
_ENDS = late(r"^[\W_]+|[\W_]+$")
_DENSE = late(f"[{CJK}]")
_KANA = late("[\u3040-\u30ff\uff66-\uff9f]{2}")  # two alone are mostly grammar


def derive_tags(text: str) -> tuple[str, ...]:
    """Returns the tags of a text: at most `MOST_CONCEPTS`, in the order in which they were found.

    Only the first `LONGEST` characters of a text are read. Total, deterministic; `()` if there is no tag.
    """
    from apsw.unicode import word_iter  # late: most processes never derive a tag, and its tables take long to load

    read = text[:LONGEST]
    if len(text) > LONGEST and not text[LONGEST].isspace():
        read = read.rsplit(None, 1)[0] if read.strip() else ""  # a long one ends with its last whole word
    # Correction "redactions": the name of the rule that found a secret is not a topic of the text.
    source = _REDACTED.sub(" ", read)
    tags: dict[str, None] = {}
    for candidate in chain(glossary_terms(source), _COMPOUND.findall(source), word_iter(source)):
        if (tag := normalize_tag(candidate)) is not None:
            tags[tag] = None
            if len(tags) == MOST_CONCEPTS:
                break
    return tuple(tags)


def glossary_terms(text: str, limit: int = MOST_CONCEPTS) -> tuple[str, ...]:
    """Returns at most `limit` glossary terms in a text, also inside other words, in the glossary's order."""
    low = _lower(text)
    found = [term for term in _glossary() if term in low]
    # Correction "short terms": `css3` and `mkv` are not about `s3` and `kv`.
    return tuple([term for term in found if not _is_short(term) or _alone(term).search(low)][:limit])


def normalize_tag(token: str) -> str | None:
    """Normalizes a token to a tag: NFKC, lower case, nothing but letters and numbers at its ends, `-` for `_`.

    None for what cannot be one: too long or too short for its script, a number, a date, a stop word.
    """
    if len(token) > 4 * LONGEST_TAG:  # no more than four characters compose to one
        return None
    # Correction "stable": the original strips before it lowers, and its `İ` leaves a mark at the end that a second
    # normalization would remove.
    tag = _ENDS.sub("", _lower(token)).replace("_", "-")
    if not tag or len(tag) > LONGEST_TAG or tag.isdecimal() or tag in _stop_words() or _DATE.fullmatch(tag):
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
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).lower())


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
