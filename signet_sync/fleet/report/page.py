"""Renders the report as one HTML file that stands by itself: no script, nothing to load, printable.

What a file chose reaches the page only as text: `_element` escapes every string that it did not make itself.
"""

from __future__ import annotations

import html
from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from typing import Any

from signet_sync.formats.calendar import WEEK, week_of, week_span
from signet_sync.text.phrases import counted, human

# Begins every report, so that a new one may replace it.
BEGINNING = "<!doctype html>\n<!-- signet-sync fleet report -->\n"
# Rows of one table; the document of `--json` has more.
MOST = 500
WEEKS = 26

# Kind of finding: heading, what it means, whether it is a fault or a suspicion.
_SECTIONS = (
    ("secret", "Secrets suspected", "Named by rule and file. The value is not in this report.", "warn"),
    ("changed", "Changed", "Files that are never changed once written, and were.", "bad"),
    ("came-back", "Came back", "Files of sessions that were removed.", "bad"),
    ("unreadable", "Unreadable", "Files that could not be read.", "bad"),
    ("invalid", "Invalid", "Files that are not as their format says.", "bad"),
)
_FIELDS = {"memory_sentence_version": "sentence", "sanitizer_version": "sanitizer"}


class _Html(str):
    """Markup that is safe: made by `_element`."""

    __slots__ = ()


def _element(name: str, *inside: str, **attributes: str) -> _Html:
    """Returns an element; what is inside is escaped unless it is markup. `class_` and `data_label` are attributes."""
    given = "".join(f' {key.strip("_").replace("_", "-")}="{html.escape(value)}"' for key, value in attributes.items())
    body = "".join(one if isinstance(one, _Html) else html.escape(one) for one in inside)
    return _Html(f"<{name}{given}>{body}</{name}>")


def page(document: dict[str, Any], look: str) -> str:
    """Renders the document of `fleet report --json`; `look` is the style sheet."""
    day, title = document["now"][:10], f"Fleet report of {document['now'][:10]}"
    digest = b64encode(sha256(look.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    main = _element(
        "main",
        *_summary(document, day),
        *_unreachable(document),
        *(_findings(document, *section) for section in _SECTIONS if document["counts"][section[0]]),
        *_growth(document),
        _versions(document),
        _workspaces(document),
        id="main",
        tabindex="-1",
    )
    body = _element(
        "body",
        _element("a", "Skip to the content", class_="skip", href="#main"),
        _element("header", _element("span", "Fleet report", class_="name"), class_="head"),
        main,
        _element("footer", _element("span", f"signet-sync {document['version']}"), class_="foot"),
    )
    return (
        f'{BEGINNING}<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta name="color-scheme" content="light dark">\n'
        f"<title>{html.escape(title)}</title>\n<style>{look}</style>\n</head>\n{body}\n</html>\n"
    )


# ── what is seen first ──


def _summary(document: dict[str, Any], day: str) -> list[_Html]:
    counts, lost = document["counts"], len(document["unreachable"])
    wrong = sum(any(one[kind] for kind, *_ in _SECTIONS) for one in document["by_workspace"])
    found = f"{counted(wrong, 'workspace')} with findings" if wrong else "no findings"
    unread = f", {lost:,} not reached" if lost else ""
    held = (
        f"{counted(counts['sessions'], 'session')} in {counted(counts['artifacts'], 'file')}, {human(counts['bytes'])};"
        f" {counted(counts['tombstones'], 'session')} removed for good."
    )
    sealed = sum(one["seals_compared"] for one in document["by_workspace"])
    seals = (
        f"{counted(sealed, 'workspace')} compared with the seals of an index."
        if sealed
        else "No index was compared with: a change shows where a text does not fit its own hash."
    )
    tiles = [_tile(heading, counts[kind], kind, tone) for kind, heading, _, tone in _SECTIONS]
    return [
        _element(
            "header",
            _element("h1", f"{counted(document['workspaces'], 'workspace')}: {found}{unread}"),
            _element("p", f"State of {day}, {document['now'][11:16]} UTC. {held} {seals}", class_="quiet"),
            class_="title",
        ),
        _element(
            "ul",
            _tile("Not reached", lost, "unreachable", "bad"),
            *tiles,
            class_="plain tiles",
        ),
    ]


def _tile(label: str, number: int, section: str, tone: str) -> _Html:
    """Returns a number with its label, which leads to the section that has the rows."""
    name = _element("a", label, href=f"#{section}") if number else _element("span", label, class_="quiet")
    return _element("li", _element("strong", f"{number:,}"), name, class_=f"card {tone if number else 'ok'}")


def _unreachable(document: dict[str, Any]) -> list[_Html]:
    if not document["unreachable"]:
        return []
    rows = [[_path(one["workspace"]), one["message"]] for one in document["unreachable"]]
    return [_section("unreachable", "Not reached", "Nothing is known of these.", _table(["workspace", "why"], rows))]


# ── findings ──


def _findings(document: dict[str, Any], kind: str, heading: str, meaning: str, _: str) -> _Html:
    found = [one for one in document["findings"] if one["kind"] == kind]
    inside = []
    if kind == "secret":
        rules = [[one["rule"], f"{one['files']:,}", f"{one['workspaces']:,}"] for one in document["by_rule"]]
        inside.append(_table(["rule", "files", "workspaces"], rows=rules, numbers=(1, 2)))
        rows = [[_path(one["workspace"]), _path(one["path"]), ", ".join(one["rules"])] for one in found]
        columns = ["workspace", "file", "rules"]
    else:
        rows = [[_path(one["workspace"]), _path(one["path"]), one["message"], one["hint"]] for one in found]
        columns = ["workspace", "file", "what is wrong", "what to do"]
    inside.append(_table(columns, rows, of=document["counts"][kind]))
    if kind == "secret":
        inside.append(_element("p", f"{found[0]['hint'].capitalize()}.", class_="quiet"))
    return _section(kind, heading, meaning, *inside)


# ── contents ──


def _growth(document: dict[str, Any]) -> list[_Html]:
    if not document["by_week"]:
        return []
    weeks = list(_row_of_weeks(document["by_week"]))
    most = max(one["sessions"] for one in weeks) or 1
    largest = max(one["bytes"] for one in weeks) or 1
    rows = [
        [
            one["week"],
            _bar(f"{one['sessions']:,}", one["sessions"] / most),
            _bar(human(one["bytes"]), one["bytes"] / largest),
        ]
        for one in reversed(weeks)
    ]
    growing = sorted(
        (one for one in document["by_workspace"] if one["sessions_recent"]),
        key=lambda one: (one["sessions_before"] - one["sessions_recent"], -one["bytes_recent"], one["workspace"]),
    )
    fastest = [
        [
            _path(one["workspace"]),
            f"{one['sessions_recent']:,}",
            f"{one['sessions_before']:,}",
            human(one["bytes_recent"]),
        ]
        for one in growing[:10]
    ]
    columns = ["workspace", "sessions in 4 weeks", "in the 4 weeks before", "bytes in 4 weeks"]
    older = sum(one["sessions"] for one in document["by_week"] if one["week"] < weeks[0]["week"])
    earlier = f" {counted(older, 'session')} ended earlier." if older else ""
    about = f"By the week in which a session ended.{earlier}"
    return [
        _section("growth", "Growth", about, _table(["week", "sessions", "bytes"], rows, numbers=(1, 2))),
        *([_section("fastest", "Growing fastest", "", _table(columns, fastest, numbers=(1, 2, 3)))] if fastest else []),
    ]


def _row_of_weeks(known: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yields every week from the first of the last `WEEKS` to the newest; most have sessions, some may have none."""
    of = {one["week"]: one for one in known}
    newest = week_span(known[-1]["week"])[0]
    for back in range(WEEKS - 1, -1, -1):
        week = week_of(newest - back * WEEK)
        if week >= known[0]["week"]:
            yield of.get(week) or {"week": week, "sessions": 0, "bytes": 0}


def _bar(text: str, share: float) -> _Html:
    """Returns a number with a bar below it."""
    mark = _element("rect", width=f"{100 * share:.1f}", height="4")
    picture = _element("svg", mark, class_="share", viewBox="0 0 100 4", preserveAspectRatio="none", aria_hidden="true")
    return _Html(_element("span", text) + picture)


def _versions(document: dict[str, Any]) -> _Html:
    rows = [
        [
            _FIELDS[one["field"]],
            one["value"],
            "this version" if one["current"] else "another",
            f"{one['files']:,}",
            f"{one['workspaces']:,}",
        ]
        for one in document["by_version"]
    ]
    about = f"The rules that made the files, as the files say; compared with signet-sync {document['version']}."
    columns = ["rules of the", "version", "compared", "files", "workspaces"]
    return _section("versions", "Versions", about, _table(columns, rows, numbers=(3, 4)))


def _workspaces(document: dict[str, Any]) -> _Html:
    kinds = [kind for kind, *_ in _SECTIONS]
    ordered = sorted(
        document["by_workspace"], key=lambda one: (-sum(map(one.__getitem__, kinds)), -one["bytes"], one["workspace"])
    )
    rows = [
        [
            _path(one["workspace"]),
            (one["last_session"] or "never")[:10],
            f"{one['agents']:,}",
            f"{one['sessions']:,}",
            human(one["bytes"]),
            f"{sum(map(one.__getitem__, kinds)):,}",
        ]
        for one in ordered
    ]
    columns = ["workspace", "last session", "agents", "sessions", "bytes", "findings"]
    return _section("workspaces", "Workspaces", "", _table(columns, rows, numbers=(2, 3, 4, 5)))


# ── parts ──


def _path(text: str) -> _Html:
    return _element("span", text, class_="path")


def _section(name: str, heading: str, about: str, *inside: _Html) -> _Html:
    said = [_element("p", about, class_="quiet")] if about else []
    return _element("section", _element("h2", heading), *said, *inside, id=name)


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]], numbers: Iterable[int] = (), of: int = 0) -> _Html:
    """Returns a table of the first rows; `numbers` are columns of numbers, `of` how many rows there are in truth."""
    kinds = ["num" if place in set(numbers) else "" for place in range(len(columns))]
    head = [
        _element("th", name, scope="col", **({"class_": kind} if kind else {}))
        for name, kind in zip(columns, kinds, strict=True)
    ]
    body = [
        _element(
            "tr",
            *(
                _element("td", cell, data_label=name, **({"class_": kind} if kind else {}))
                for cell, name, kind in zip(row, columns, kinds, strict=True)
            ),
        )
        for row in rows[:MOST]
    ]
    table = _element("table", _element("thead", _element("tr", *head)), _element("tbody", *body), class_="table cards")
    left = max(of, len(rows)) - len(body)
    return _Html(table + _element("p", f"… and {left:,} more.", class_="quiet")) if left else table
