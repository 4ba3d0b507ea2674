"""Finds the topics that an artifact mentions: project, paths, issues and people, each with its first line."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from signet_sync.facts import tokens
from signet_sync.facts.tokens import Named
from signet_sync.formats.body import js_trim
from signet_sync.formats.fact import EntityKind, Item, Mention
from signet_sync.formats.lazy_pattern import late
from signet_sync.text.sentences import basename, flatten_cell

# Limited by kind, so that no kind displaces the others.
MENTIONS_PER_KIND: dict[EntityKind, int] = {"path": 20, "issue": 13, "person": 13}

_FENCE = late(r"\n[ \t]*+(?:```|~~~).*")
_CODE_SPAN = late(r"`[^`\n]++`")
# The literal part comes first, so that the search need not stop at every word.
_NUMBERED = tuple(
    (sign, late(rf"{sign}(?<=\b{word})[ #-]{{1,2}}(\d{{1,6}})\b", re.ASCII))
    for sign, word in (("PR", "PR"), ("MR", "MR"), ("ssue", "[Ii]ssue"))
)
_CO_AUTHOR = late(r"^[ \t]*+co-authored-by:([^<\n]{1,80})", re.IGNORECASE | re.MULTILINE)

_Sighting = tuple[int, EntityKind, Named]  # offset of the first character, kind, name and norm


class _BodyPart(NamedTuple):
    """A part of a body outside or inside code fences, with its first line."""

    text: str
    line: int
    is_code: bool


def mentions(body: str, project: str | None, items: Sequence[Item]) -> tuple[Mention, ...]:
    """Returns the topics in a (sanitized) body with these items, of a session in `project`, each once.

    The project comes first, then the others by line. People need evidence: an item under a heading of people, an
    `@handle` outside code, a co-author's line. Linear, and bounded.
    """
    own = project_of(project)
    found: dict[tuple[EntityKind, str], Mention] = {}
    room = dict(MENTIONS_PER_KIND)
    for line, kind, (name, norm) in (*_people(items), *_sightings(body, own.norm if own is not None else None)):
        held = found.get((kind, norm))
        if held is None:
            if not room[kind]:
                continue
            room[kind] -= 1
        elif held.line <= line:
            continue
        found[kind, norm] = Mention(kind, name, norm, line)
    others = sorted(found.values(), key=lambda mention: (mention.line, mention.kind, mention.norm))
    return (*([own] if own is not None else []), *others)


def project_of(project: str | None) -> Mention | None:
    """Returns the mention of a session's own project, named by the last part of its path."""
    whole = js_trim(project or "")
    if not whole:
        return None
    return Mention("project", flatten_cell(basename(whole), 60) or "/", whole.rstrip("/") or "/", 1)


def _people(items: Sequence[Item]) -> Iterator[tuple[int, EntityKind, Named]]:
    for item in items:
        person = tokens.person_at_start(item.text) if item.aspect == "person" else None
        if person is not None:
            yield item.line, "person", person


def _sightings(body: str, project: str | None) -> Iterator[tuple[int, EntityKind, Named]]:
    """Yields line, kind, name and norm of each occurrence."""
    for text, line, is_code in _stretches(body):
        seen = _of_code(text, project) if is_code else _of_prose(text, project)
        counted = 0
        for place, kind, named in sorted(seen):
            line += text.count("\n", counted, place)
            counted = place
            yield line, kind, named


def _stretches(body: str) -> Iterator[_BodyPart]:
    begin, line = 0, 1
    is_code = False
    # The added newline lets the pattern match in the first line.
    for mark in _FENCE.finditer("\n" + body) if "```" in body or "~~~" in body else ():
        start, end = mark.start(), mark.end() - 1
        if start > begin + 1:
            yield _BodyPart(body[begin:start], line, is_code)
        line += body.count("\n", begin, end)
        begin = end
        is_code = not is_code
    yield _BodyPart(body[begin:], line, is_code)


def _of_prose(text: str, project: str | None) -> Iterator[_Sighting]:
    spans = list(_CODE_SPAN.finditer(text)) if "`" in text else []
    begins = [span.start() for span in spans]
    for token in tokens.tokens(text):
        before = bisect_right(begins, token.start()) - 1
        code = before >= 0 and spans[before].end() > token.start()
        sighting = _of_token(text, token, project, code=code)
        if sighting is not None:
            yield sighting
    yield from ((key.start(), "issue", (key[0], key[0])) for key in tokens.issue_keys(text))
    for sign, numbered in _NUMBERED:
        for found in numbered.finditer(text) if sign in text else ():
            yield found.start(), "issue", tokens.numbered(found[1], project)
    yield from _of_lines(text)


def _of_code(text: str, project: str | None) -> Iterator[_Sighting]:
    for token in tokens.tokens(text):
        sighting = _of_token(text, token, project, code=True)
        if sighting is not None and sighting[1] != "issue":
            yield sighting
    yield from _of_lines(text)


def _of_token(text: str, token: re.Match[str], project: str | None, *, code: bool) -> _Sighting | None:
    start, end = token.span()
    if end - start > 2 * tokens.NAME_LENGTH:
        return None
    words, before, after = tokens.trimmed(token[0]), text[start - 1 : start], text[end : end + 1]
    issue = tokens.issue_of(words, project) if "#" in words or "://" in words else None
    if issue is not None:
        return (start, "issue", issue) if before != "&" else None
    if words.startswith("@"):
        person = None if code else tokens.handle_of(words)
        return (start, "person", person) if person is not None else None
    if tokens.is_piece(words, before, after):
        return None
    path = tokens.path_of(words, project)
    return (start, "path", path) if path is not None else None


def _of_lines(text: str) -> Iterator[_Sighting]:
    """Yields co-authors."""
    for found in _CO_AUTHOR.finditer(text) if "uthored-" in text else ():
        person = tokens.person_of(flatten_cell(found[1], 60))
        if person is not None:
            yield found.start(), "person", person
