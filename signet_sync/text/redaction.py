"""Redacts artifacts, and recognizes redactions: some text is replaced by marks `[REDACTED:<rule>]`.

The former text is enough to recognize one. So a redaction made on one machine is recognized on every other, and an
older version that comes back is recognized as such.

Texts are compared while what the sanitizer redacted in them is ignored: one written under older rules and one sanitized
today come from the same words, and differ where the rules do: in the names of marks, in how far a mark reaches, and in
what only one of them recognizes as a secret.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from signet_sync.formats.artifact import REPOSITORY_FIELDS, Transcript, validate
from signet_sync.formats.body import normalize, text_sha256
from signet_sync.formats.frontmatter import FrontmatterProblem, Raw, parse, unknown_entries, write
from signet_sync.formats.lazy_pattern import late
from signet_sync.formats.timestamps import parse_instant
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
    """How text is redacted: bodies, and fields of one line, a sentence (None: as these); `rules` is the sanitizer's."""

    body: Clean
    line: Clean
    rules: str | None = None
    sentence: Clean | None = None


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


def redact_bytes(raw: bytes) -> bytes:
    """Replaces the secrets in bytes, which need not be UTF-8."""
    return redact(raw.decode("utf-8", "surrogateescape"))[0].encode("utf-8", "surrogateescape")


SECRETS = Cleaning(_clean_body, _clean_line, SANITIZER_RULES)


def rules(before: str, after: str) -> Counter[str]:
    """Counts, by rule, the marks of a text that are not in the text before it."""
    if before is after or not is_marked(after):
        return Counter()
    return _marks(after) - _marks(before)


def _marks(text: str) -> Counter[str]:
    return Counter(mark.removeprefix("[REDACTED:").removesuffix("]") for mark in MARK.findall(text))


def rewrite_artifact(kind: str, raw: bytes, cleaning: Cleaning) -> Rewritten | None:
    """Returns an immutable artifact with its text redacted, its hash corrected; None if nothing is to be redacted.

    Unknown fields stay, redacted. Raises `FrontmatterProblem`, `FieldProblem` for what is no artifact.
    """
    document = parse(raw)
    body = normalize(document.body)
    clean = normalize(cleaning.body(body))
    artifact = validate(kind, {**document.fields, "content_sha256": text_sha256(clean)})
    found, fields = rules(body, clean), artifact.fields()
    cleanings = dict.fromkeys(_LINES, cleaning.line) | {"memory_sentence": cleaning.sentence or cleaning.line}
    for name, clean_line in cleanings.items():
        value = fields.get(name)
        if isinstance(value, str):
            fields[name] = clean_line(value)
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


_OPENING = "[REDACTED:"
MARK = late(r"\[REDACTED:[a-z0-9-]+\]")
_ANY = "\0"  # replaces a mark: no sanitized text contains it
# A secret of several lines (a private key) that became one mark had no more lines than this.
_MOST_LINES = 200


def is_marked(text: str) -> bool:
    """Returns whether something was redacted in a text."""
    return _OPENING in text


def alike(one: str, other: str) -> bool:
    """Returns whether two sanitized texts are the same but for what was redacted in either."""
    return one == other or begins(one, 0, other) == len(one) or begins(other, 0, one) == len(other)


def begins(whole: str, at: int, part: str) -> int:
    """Returns where `part` ends in `whole`, found at `at` but for what was redacted in either; else -1.

    `at` is the beginning of a line. Unless the text is identical, `part` ends at the end of a line.
    """
    if whole.startswith(part, at):
        return at + len(part)
    start, matched, end = at, 0, -1
    hiding = False  # whether the whole's last line ends with a mark, which may replace further lines of the part
    while matched <= len(part):
        line = _line(whole, start)
        wanted = _line(part, matched) or ""
        if line is not None and _is_same_line(line, wanted):
            hiding = line != wanted and _plain(line).endswith(_ANY)
            end = start + len(line)
            start, matched = end + 1, matched + len(wanted) + 1
            continue
        if not hiding:
            return -1
        further = part[matched:].split("\n", _MOST_LINES)
        again = next((n for n, each in enumerate(further) if line is not None and _is_same_line(line, each)), None)
        if again is None:
            return end if len(further) <= _MOST_LINES else -1
        matched += sum(len(each) + 1 for each in further[:again])
    return end


def _line(text: str, start: int) -> str | None:
    """Returns the line that begins there; None after the last one."""
    if start > len(text):
        return None
    stop = text.find("\n", start)
    return text[start : stop if stop >= 0 else len(text)]


def _plain(line: str) -> str:
    return MARK.sub(_ANY, line) if is_marked(line) else line


def _is_same_line(one: str, other: str) -> bool:
    if one == other:
        return True
    if not (is_marked(one) or is_marked(other)):
        return False
    one, other = _plain(one), _plain(other)
    return _covers(one, other) or _covers(other, one)


def _covers(marked: str, line: str) -> bool:
    """Returns whether a line is the marked one with other text in place of each mark."""
    pieces = marked.split(_ANY)
    return is_filled(pieces, line) if len(pieces) > 1 else marked == line


def is_filled(pieces: Sequence[str], text: str, *, least: int = 0) -> bool:
    """Returns whether a text consists of these pieces, two or more, with at least so many characters between them."""
    first, *middle, last = pieces
    at, end = len(first), len(text) - len(last)
    if not text.startswith(first) or not text.endswith(last):
        return False
    for piece in middle:
        # The earliest position: a later one leaves less space for the others.
        at = text.find(piece, at + least, max(end, 0))
        if at < 0:
            return False
        at += len(piece)
    return at + least <= end
