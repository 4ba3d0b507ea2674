"""Prepares texts to be remembered: cleaned, limited in length, with the id that follows from their words."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

from signet_sync.errors import UsageError
from signet_sync.formats.handle import id_of
from signet_sync.formats.lazy_pattern import late
from signet_sync.text.sanitizer import sanitize_counted, sanitize_line_counted

# The type decides the section of MEMORY.md (`formats.statement.SECTION_OF`).
TYPES = ("preference", "decision", "constraint", "person", "blocker", "note")
LONGEST = 4_000  # characters: a memory is a thought, a document belongs in a file
MOST_TAGS = 32

_TAG = late(r"[\w/-]{1,64}")
_REDACTED = late(r"\[REDACTED:([^\]]*)\]")
_WORD = late(r"[^\W_]+")
# Beside a secret these only say that it is one.
_OF_SECRETS = frozenset(
    "a an the my our this that it is here access api auth credential credentials key keys apikey passwd password pwd"
    " secret secrets token tokens".split()
)


def memory_id(agent_id: str, kind: str, content: str) -> str:
    """Returns `m-…`: the same for texts that differ only in white space, line ends and Unicode normalization."""
    return id_of("m", agent_id, kind, " ".join(unicodedata.normalize("NFC", content).split()))


def clean_text(text: str) -> tuple[str, dict[str, int]]:
    """Returns the text as it may be kept, with its line breaks, and how often each rule redacted something.

    Raises `UsageError` if it is too long (`memory-too-long`) or nothing is left of it (`memory-empty`).
    """
    if len(text) > LONGEST * 4:  # the sanitizer would take long for a file that was passed by mistake
        raise _too_long(len(text))
    content, redactions = sanitize_counted(text)
    content = content.strip()
    if len(content) > LONGEST:
        raise _too_long(len(content))
    if not _says_something(content):
        what, hint = "there are no words in it", 'for example: signet-sync remember "Ada wants short answers"'
        if redactions:
            what, hint = "it is a secret and nothing else", "say in words what it is for, and where it is kept"
        raise UsageError(f"this cannot be remembered: {what}", hint=hint, code="memory-empty")
    return content, redactions


def _says_something(content: str) -> bool:
    """Returns whether a text says more than that there is a secret."""
    rules = _REDACTED.findall(content)
    words = {word.casefold() for word in _WORD.findall(_REDACTED.sub(" ", content))}
    known = {word.casefold() for rule in rules for word in _WORD.findall(rule)} | _OF_SECRETS if rules else set()
    return not words <= known


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
