"""Formats values as text of a page: escaped, nothing invisible, times and sizes for a person."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from difflib import unified_diff
from functools import cache, partial
from itertools import takewhile
from operator import eq
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from signet_sync.formats.body import CONTROLS, UNSEEN
from signet_sync.formats.paths import escape_character
from signet_sync.formats.timestamps import iso, local, parse_instant
from signet_sync.text.phrases import count_noun, human
from signet_sync.text.sentences import basename

_UNSEEN = re.compile(f"[{CONTROLS}{UNSEEN}\ud800-\udfff]")
_CONTEXT = 3  # lines around a change
COMPARED = 1_000  # lines from the first to the last change that are compared
ROWS, WIDE = 600, 1_200  # lines of a difference that are shown, and characters of one


@cache
def environment(templates: str) -> Environment:
    """Returns the templates' environment: every value is escaped and shown whole, and a missing one is an error."""
    made = Environment(
        loader=FileSystemLoader(templates),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_show_value,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "when": when,
        "day": partial(when, form="%Y-%m-%d"),
        "clock": partial(when, form="%H:%M"),
        "size": human,
        "counted": count_noun,
        "sentence": sentence,
        "basename": basename,
    }
    return made


def _show_value(value: Any) -> Any:
    if value is None:
        return ""
    return spell_out_unseen(value) if isinstance(value, str) else value


def plain(value: Any) -> Any:
    """Returns the values of a page as those of JSON: named tuples as objects, texts of Markdown as written."""
    if hasattr(value, "_asdict"):
        value = value._asdict()
    elif is_dataclass(value):
        value = {one.name: getattr(value, one.name) for one in fields(value)}
    if isinstance(value, Mapping):
        return {str(name): plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple | set | range):
        return [plain(one) for one in value]
    if value is None or isinstance(value, str | int | float):
        return value
    return getattr(value, "text", str(value))


def spell_out_unseen(text: str) -> str:
    """Spells out invisible characters; escaped text stays escaped."""
    if not _UNSEEN.search(text):
        return text
    shown = _UNSEEN.sub(lambda match: escape_character(match[0]), text)
    return Markup(shown) if isinstance(text, Markup) else shown  # noqa: S704 - it was markup before


def escape(text: str) -> str:
    """Escapes a text for HTML, attributes included."""
    return html.escape(spell_out_unseen(text))


def when(value: int | str | None, form: str = "%Y-%m-%d %H:%M") -> str:
    """Formats an instant (microseconds or ISO 8601) in local time; anything else is returned as it is."""
    instant = _instant(value)
    if instant is None:
        return "–" if value is None else str(value)
    stamp = iso(instant)
    return Markup('<time datetime="{}" title="{}">{}</time>').format(stamp, stamp, local(instant).strftime(form))


def sentence(text: str) -> str:
    """Formats a line as a sentence: with a capital letter, unless it begins with our command, and a full stop."""
    shown = text if text.startswith("signet-sync") else text[:1].upper() + text[1:]
    return shown if shown.endswith((".", "!", "?")) or not shown else f"{shown}."


def _instant(value: int | str | None) -> int | None:
    return parse_instant(value) if isinstance(value, str) else value


def plain_page(lines: Iterable[str], *, head: str = "") -> str:
    """Returns a page without templates and styles, for clients without access to them; `head` is HTML."""
    shown = "".join(f"<p>{escape(line)}</p>" for line in lines if line)
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8">{head}'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><title>signet-sync</title></head>'
        f"<body><h1>signet-sync</h1>{shown}</body></html>"
    )


def difference(before: str, after: str) -> list[str]:
    """Returns what changed from one text to another, as lines of a unified diff; none for equal texts.

    Of more than `ROWS` lines, or what is too long to be compared, it says how many lines there are.
    """
    old, new = before.split("\n"), after.split("\n")
    head = _count_alike(old, new)
    tail = _count_alike(old[head:][::-1], new[head:][::-1])
    if max(len(old), len(new)) - head - tail > COMPARED:
        gone, came = (count_noun(len(some) - head - tail, "line") for some in (old, new))
        return [f"@@ from line {head + 1} on {gone} became {came}, too many to compare"]
    found = list(unified_diff(old, new, n=_CONTEXT, lineterm=""))[2:]
    more = [f"@@ {count_noun(len(found) - ROWS, 'line')} more"] if len(found) > ROWS else []
    return [line if len(line) <= WIDE else f"{line[:WIDE]}…" for line in found[:ROWS]] + more


def _count_alike(one: Sequence[str], other: Sequence[str]) -> int:
    return sum(takewhile(bool, map(eq, one, other)))
