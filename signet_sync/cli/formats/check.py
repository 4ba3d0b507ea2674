"""Formats a check's findings for CI: GitHub annotations, SARIF, a table for the job's page.

Every form takes the document of `check --json` and the prefix of its paths (`below`), which makes them relative to the
top of a checkout. No text of a file can end a line or a cell.
"""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple
from urllib.parse import quote

from signet_sync import __version__
from signet_sync.errors import SignetSyncError
from signet_sync.sync.planner import HINTS

_LEVELS = {"invalid": "error", "violation": "error", "tombstoned": "error", "ignored": "warning"}
# Files of other programs are never reported: a checkout is full of them.
_SILENT = ("foreign-name", "temporary")


class ReportEntry(NamedTuple):
    """One line of any form; `level` is `error`, `warning` or `note`."""

    level: str
    code: str
    path: str
    line: int
    text: str


def entries(document: dict[str, Any], below: str) -> Iterator[ReportEntry]:
    """Yields problems, then notes; a note that fails is a problem."""
    for found in document["problems"]:
        if found["code"] not in _SILENT:
            text = found["message"] + (f" → {found['hint']}" if found["hint"] else "")
            level = _LEVELS[found["verdict"]]
            yield ReportEntry(level, found["code"], below + found["path"], found.get("line", 1), text)
    for found in document["notes"]:
        yield ReportEntry(
            "error" if "fails" in found else "note", found["code"], below + found["path"], 1, found["message"]
        )


def _escape(text: str, *, in_property: bool = False) -> str:
    text = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return text.replace(":", "%3A").replace(",", "%2C") if in_property else text


def github(document: dict[str, Any], below: str) -> str:
    """Returns workflow annotations, one line each."""
    return "\n".join(
        f"::{'notice' if entry.level == 'note' else entry.level} file={_escape(entry.path, in_property=True)},"
        f"line={entry.line},title={_escape(entry.code, in_property=True)}::{_escape(entry.text)}"
        for entry in entries(document, below)
    )


def failure(error: SignetSyncError) -> str:
    """Returns why there was no check, as an annotation."""
    where = f" [{error.path}]" if error.path else ""
    remedy = f" → {error.hint}" if error.hint else ""
    return f"::error title={_escape(error.code, in_property=True)}::{_escape(f'{error.message}{where}{remedy}')}"


def sarif(document: dict[str, Any], below: str) -> str:
    """Returns a SARIF 2.1.0 log."""
    found = list(entries(document, below))
    rules = {code: place for place, code in enumerate(sorted({entry.code for entry in found}))}
    driver = {
        "name": "signet-sync",
        "version": __version__,
        "informationUri": "https://pypi.org/project/signet-sync/",
        "rules": [
            {
                "id": code,
                "shortDescription": {"text": code.replace("-", " ")},
                **({"help": {"text": HINTS[code]}} if code in HINTS else {}),
            }
            for code in rules
        ],
    }
    results = [
        {
            "ruleId": entry.code,
            "ruleIndex": rules[entry.code],
            "level": entry.level,
            "message": {"text": entry.text},
            "locations": [
                {
                    "physicalLocation": {
                        "artifactLocation": {"uri": quote(entry.path), "uriBaseId": "SRCROOT"},
                        "region": {"startLine": entry.line},
                    }
                }
            ],
        }
        for entry in found
    ]
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {"SRCROOT": {"description": {"text": "where the check was run"}}},
        "results": results,
    }
    log = {"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0", "runs": [run]}
    return json.dumps(log, ensure_ascii=False, indent=2)


def _cell(text: str) -> str:
    """Returns text for a table in GitHub's Markdown, without markup."""
    plain = re.sub(r"[\x00-\x1f\x7f]", " ", text)
    plain = re.sub(r"([\\`*_{}\[\]<>()#|~!&$-])", r"\\\1", plain)
    # GitHub links addresses even without markup, so they are broken up here.
    plain = re.sub(r"(?i)(www)\.", r"\1\\.", plain.replace("://", ":\\//"))
    return plain.replace("@", "<span>@</span>")


def summary(document: dict[str, Any], below: str, limit: int = 50) -> str:
    """Returns a heading, the counts, and the first problems as a table."""
    counts = document["counts"]
    bad = [entry for entry in entries(document, below) if entry.level == "error"]
    lines = [
        f"### Agent memory: {'valid' if document['ok'] else 'not valid'}",
        "",
        "| valid | invalid | violations | should be gone | ignored | notes |",
        "|---|---|---|---|---|---|",
        f"| {counts['indexed']} | {counts['invalid']} | {counts['violation']} | {counts['tombstoned']}"
        f" | {counts['ignored']} | {len(document['notes'])} |",
        "",
    ]
    if bad:
        lines += ["| file | line | problem | in words |", "|---|---|---|---|"]
        lines += [f"| {_cell(e.path)} | {e.line} | {_cell(e.code)} | {_cell(e.text)} |" for e in bad[:limit]]
        if len(bad) > limit:
            lines.append(f"\n… and {len(bad) - limit} more.")
        lines.append("")
    return "\n".join(lines) + "\n"


FORMATS: dict[str, Callable[[dict[str, Any], str], str]] = {"github": github, "sarif": sarif}
