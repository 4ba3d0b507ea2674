r"""Sanitizes text, deterministically: newlines, control characters, body normalisation, secrets.

Contract: *Sanitizer* and *Secrets*. What counts as a secret is defined in the package `secrets`: vendors' tokens in
`providers.txt`, everything else in its modules. The rules are part of the version: once `v2` is released, changing one
means `v3` with a migration note, because artifacts that were written under `v2` stay as they are. Rows follow at once:
a full pass that finds another `sanitizer_stamp` on them derives them again.

Decisions that a reader of the output may ask about:

* Keys that documentation uses (`AKIAIOSFODNN7EXAMPLE`) are placeholders like `ghp_xxxx`, and stay.
* Under an unambiguous name of a secret everything is removed that is no placeholder; under a name with other
  meanings, and in a sentence, only what cannot be a word (`secrets.values`).
* Of a URL only the password is removed, of a webhook its path, of a header the credential, of a private key all of it.
* VT, FF, FS to US, NEL, LS and PS separate words or lines and become a space; what a terminal obeys, every other
  control character but LF and tab, and what nobody sees (`formats.body`) is deleted without a space, so that it
  cannot split a secret. Sequences that a text spells out (`\x1b[31m`) stay: they are what somebody wrote; the rules
  look through them.
"""

from __future__ import annotations

from collections import Counter

from signet_sync.formats.body import drop_unseen, find_non_ascii, fix_surrogates, may_hold_unseen, normalize
from signet_sync.formats.lazy_pattern import late
from signet_sync.text.secrets.engine import redact as redact
from signet_sync.text.secrets.searched_text import SEQUENCES, table_digest

# What a transcript says in `sanitizer_version`: Signet refuses every other value. The version of our rules is in
# `sanitizer_rules`.
SANITIZER_VERSION = "sanitize_transcript_v1"
SANITIZER_RULES = "v2"


def sanitizer_stamp() -> str:
    """Identifies the sanitizer that made a text by rules and tables: text with another stamp is derived again."""
    return f"{SANITIZER_RULES} {table_digest()}"


# ── control characters ──

_PARTING = "\v\f\x1c\x1d\x1e\x1f\x85\u2028\u2029"
_ASCII_CONTROLS = tuple(chr(c) for c in (*range(9), *range(11, 32), 127))
_OTHER_CONTROLS = late("[\x80-\x9f\u2028\u2029\ud800-\udfff]")
_REPLACED = {**dict.fromkeys((*range(9), *range(11, 32), *range(127, 160))), **{ord(c): " " for c in _PARTING}}
_SEQUENCES = late(SEQUENCES)


def has_controls(text: str) -> bool:
    """Returns whether `drop_controls` could change a text."""
    # Thirty searches for one character are five times as fast as one search for thirty.
    if any(map(text.__contains__, _ASCII_CONTROLS)):
        return True
    beyond = find_non_ascii(text)
    return bool(beyond) and (_OTHER_CONTROLS.search(beyond) is not None or may_hold_unseen(text, beyond))


def drop_controls(text: str) -> str:
    """Converts newlines to LF; removes control sequences and characters, what nobody sees, lone surrogates."""
    if not has_controls(text):
        return text
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if "\x1b" in text or "\x9b" in text:
        text = _SEQUENCES.sub("", text)
    return drop_unseen(fix_surrogates(text.translate(_REPLACED)))


def sanitize_counted(text: str) -> tuple[str, dict[str, int]]:
    """Returns what `sanitize_transcript_v2` returns, and how often each rule replaced something."""
    # Removing spaces could uncover a value: the body is normalised before, and a mark leaves no space at a line's end.
    return redact(normalize(drop_controls(text)))


def sanitize_transcript_v2(text: str) -> str:
    """Sanitizes a text of many lines before it is written: newlines, control characters, normalisation, secrets.

    Pure, deterministic, idempotent and total: any `str` is accepted, lone surrogates become U+FFFD.
    """
    return sanitize_counted(text)[0]


def sanitize_normalized(text: str) -> str:
    """Sanitizes a body that is normalised already, like `sanitize_transcript_v2`; the same object if it is clean."""
    clean = drop_controls(text)
    return redact(clean if clean is text else normalize(clean))[0]


def sanitize_line_counted(text: str) -> tuple[str, dict[str, int]]:
    """Returns what `sanitize_line` returns, and how often each rule replaced something."""
    text, counts = redact(drop_controls(text))
    line = text.replace("\n", " ").replace("\t", " ").strip(" ")
    if line != text:
        line, more = redact(line)
        counts = Counter(counts) + Counter(more)
    return line, counts


def sanitize_beginning(text: str, most: int) -> str:
    """Sanitizes the beginning of a text, at most `most` characters, as a line."""
    # Cut between words, so that no secret is cut in two and missed.
    return sanitize_line(text if len(text) <= most else " ".join(text[:most].split()[:-1]))


def sanitize_line(text: str) -> str:
    """Sanitizes a value of one line (sentence, project, key): newlines and tabs become spaces, none at the ends.

    Secrets are searched before and after that: a token broken over two lines is recognized only before, `password:`
    above its value only after.
    """
    return sanitize_line_counted(text)[0]
