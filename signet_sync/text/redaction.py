"""Redacts artifacts, and recognizes redactions: some text is replaced by marks `[REDACTED:<rule>]`.

The former text is enough to recognize one. So a redaction made on one machine is recognized on every other, and an
older version that comes back is recognized as such.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from signet_sync.formats.artifact import REPOSITORY_FIELDS, Transcript, validate
from signet_sync.formats.body import body_sha256, normalize
from signet_sync.formats.frontmatter import FrontmatterProblem, Raw, parse, unknown_entries, write
from signet_sync.formats.timestamps import parse_instant
from signet_sync.text.redacted_match import MARK, is_filled, is_marked
from signet_sync.text.sanitizer import (
    SANITIZER_RULES,
    SANITIZER_VERSION,
    drop_controls,
    redact,
    sanitize_line_counted,
    sanitize_normalized,
)

REMOVED = "[REDACTED:removed]"

# Fields that a redaction computes again.
_COMPUTED = frozenset(("content_sha256", "hash_scope", "sanitizer_version", "sanitizer_rules"))
# Fields of one line that may hold anyone's words. The others are instants, numbers, paths, versions, and what names the
# file: no redaction changes those.
_LINES = ("project", "harness", "source_node_id", "memory_sentence", *REPOSITORY_FIELDS)

Clean = Callable[[str], str]


class Cleaning(NamedTuple):
    """How text is redacted: bodies, and fields of one line; `rules` is the version of the sanitizer's rules."""

    body: Clean
    line: Clean
    rules: str | None = None


class Rewritten(NamedTuple):
    """An artifact with redactions: its bytes, and how many new marks of each rule it has."""

    raw: bytes
    rules: Mapping[str, int]


def _clean_line(text: str) -> str:
    clean, counts = sanitize_line_counted(text)
    return clean if counts else text


def _clean_body(text: str) -> str:
    clean = sanitize_normalized(text)
    # Control characters alone are no reason to rewrite a sealed file.
    return clean if rules(text, clean) else text


def redact_text(text: str) -> str:
    """Replaces nothing but the secrets in a text of any form."""
    return redact(text)[0]


def redact_bytes(raw: bytes) -> bytes:
    """Replaces the secrets in bytes, which need not be UTF-8."""
    return redact_text(raw.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")


SECRETS = Cleaning(_clean_body, _clean_line, SANITIZER_RULES)


def rules(before: str, after: str) -> Counter[str]:
    """Counts, by rule, the marks of a text that are not in the text before it."""
    if before is after or not is_marked(after):
        return Counter()
    return _marks(after) - _marks(before)


def _marks(text: str) -> Counter[str]:
    return Counter(mark.removeprefix("[REDACTED:").removesuffix("]") for mark in MARK.findall(text))


def rewritten(kind: str, raw: bytes, cleaning: Cleaning) -> Rewritten | None:
    """Returns an immutable artifact with its text redacted, its hash corrected; None if nothing is to be redacted.

    Unknown fields stay, redacted. Raises `FrontmatterProblem`, `FieldProblem` for what is no artifact.
    """
    document = parse(raw)
    body = normalize(document.body)
    clean = normalize(cleaning.body(body))
    artifact = validate(kind, {**document.fields, "content_sha256": body_sha256(clean)})
    found, fields = rules(body, clean), artifact.fields()
    for name in _LINES:
        value = fields.get(name)
        if isinstance(value, str):
            fields[name] = cleaning.line(value)
            found += rules(value, fields[name])
    unknown: dict[str, Any] = {}
    for name, entry in unknown_entries(document.head, frozenset(type(artifact).FIELDS)):
        unknown[name] = Raw(cleaning.body(entry))
        found += rules(entry, unknown[name])
    if not found:
        return None
    if cleaning.rules is not None and "sanitizer_version" in fields:
        fields |= {"sanitizer_version": SANITIZER_VERSION, "sanitizer_rules": cleaning.rules}
    return Rewritten(write({**fields, **unknown}, clean), dict(found))


def is_redaction(before: str, after: str) -> bool:
    """Returns whether one text is the other with marks in place of some of its text; False for equal texts.

    Control characters, which a mark cannot replace, are ignored in both.
    """
    if before == after or not is_marked(after):
        return False
    return _fits(before, after) or _fits(*(normalize(drop_controls(text)) for text in (before, after)))


def _flat(text: str) -> str:
    """Returns a value of one line as the sanitizer leaves it."""
    return drop_controls(text).replace("\n", " ").replace("\t", " ").strip(" ")


def _fits(text: str, pattern: str) -> bool:
    """Returns whether a text is a pattern with other text in place of each mark."""
    pieces = MARK.split(pattern)
    return len(pieces) > 1 and is_filled(pieces, text, least=1)


def redacts(before: bytes, after: bytes) -> bool:
    """Returns whether a file is a redaction of another: the same artifact, word for word but for marks in its text.

    Neither the hash in its frontmatter nor unknown fields are compared.
    """
    try:
        old, new = parse(before), parse(after)
    except FrontmatterProblem:
        return False
    moved = False
    for name in Transcript.FIELDS.keys() - _COMPUTED:
        one, other = old.fields.get(name), new.fields.get(name)
        if _same(one, other):
            continue
        if name not in _LINES or not isinstance(one, str) or not isinstance(other, str):
            return False
        if not is_redaction(_flat(one), _flat(other)):
            return False
        moved = True
    one, other = normalize(old.body), normalize(new.body)
    return is_redaction(one, other) or (one == other and moved)


def _same(one: object, other: object) -> bool:
    """Returns whether two values of a frontmatter field are equal: blank is null, instants are compared as such."""
    if one == other or (_is_blank(one) and _is_blank(other)):
        return True
    if not isinstance(one, str) or not isinstance(other, str):
        return False
    instant = parse_instant(one)
    return instant is not None and instant == parse_instant(other)


def _is_blank(value: object) -> bool:
    return value is None or value == [] or (isinstance(value, str) and not value.strip())
