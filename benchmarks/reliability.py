"""Renders docs/reliability.md: what a person wrote there, and the tables of promises, figures and cases between marks.

The sources stand in tests/reliability: `promises.toml`, `cases/*.toml`, and `figures.json`, which `benchmarks.proof`
writes. `python -m benchmarks.reliability` brings the page up to date; a test holds it to its sources.
"""

from __future__ import annotations

import ast
import json
import os
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

PROJECT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FOLDER = os.path.join(PROJECT, "tests", "reliability")
PAGE = os.path.join(PROJECT, "docs", "reliability.md")
FIGURES = os.path.join(FOLDER, "figures.json")

# How many cases there are of each kind, and which of them block a release.
KINDS = {
    "A": (34, "Crash points"),
    "B": (32, "File systems"),
    "C": (17, "Watching"),
    "D": (15, "The database"),
    "E": (15, "Concurrency"),
    "F": (25, "Hostile input"),
    "G": (15, "Privacy and secrets"),
    "H": (18, "Obsidian and cloud sync"),
    "S": (13, "The service"),
}
_FIRST = {
    "A": (3, 5, 6, 7, 8, 9, 13, 15, 17, 18, 19, 20, 23, 26),
    "B": (1, 3, 6, 11, 14, 15, 16, 18, 21, 23, 25, 28),
    "C": (1, 2, 4, 5, 6, 8, 10, 15),
    "D": (1, 2, 3, 5, 9, 11, 12),
    "E": (1, 3, 5, 8, 9, 11, 12),
    "F": (1, 3, 4, 5, 11, 12, 14, 20),
    "G": (1, 2, 4, 11),
    "H": (1, 5, 6),
    "S": (1, 3),
}
FIRST = frozenset(f"{kind}{number}" for kind, numbers in _FIRST.items() for number in numbers)
# What is measured, and not counted: of several runs the worst is told, never a sum.
MEASURED = frozenset({"s", "ms", "MiB", "MiB/h", "MB", "MB/s", "%", "bytes", "MB/day", "descriptors"})


@dataclass(frozen=True, slots=True)
class Case:
    """One case of the fault matrix: how it is covered (`tests`), or why it is not (`reason`)."""

    id: str
    what: str
    verdict: str
    tests: tuple[str, ...]
    reason: str


def read(path: str) -> dict[str, Any]:
    """A TOML file."""
    with open(path, "rb") as file:
        return tomllib.load(file)


def ids() -> list[str]:
    """Every case's id, in order."""
    return [f"{kind}{number}" for kind, (count, _) in KINDS.items() for number in range(1, count + 1)]


def cases() -> dict[str, Case]:
    """The cases by id, in order. Raises KeyError for one that is told of in no way, or in two."""
    found: dict[str, Case] = {}
    for kind in KINDS:
        told = read(os.path.join(FOLDER, "cases", f"{kind.lower()}.toml"))
        for name, given in told.items():
            (verdict,) = given.keys() & {"covered", "by_design", "not_covered"}
            covered = verdict == "covered"
            tests = tuple(given["covered"]) if covered else ()
            reason = given.get("note", "") if covered else given[verdict]
            found[name] = Case(name, given["what"], verdict, tests, reason)
    return {name: found[name] for name in ids() if name in found}


@cache
def functions(path: str) -> frozenset[str]:
    """The names of the test functions and state machines of a file; none where there is no such file."""
    try:
        with open(os.path.join(PROJECT, path), encoding="utf-8") as file:
            tree = ast.parse(file.read())
    except FileNotFoundError:
        return frozenset()
    named = {node.name for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    assigned = {
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    return frozenset(named | assigned)


def missing(tests: Iterable[str]) -> list[str]:
    """Those of `file::function` that do not exist. A script of benchmarks/ is named without a function."""
    return [
        test
        for test in tests
        if (
            test.partition("::")[2] not in functions(test.partition("::")[0])
            if "::" in test
            else not os.path.isfile(os.path.join(PROJECT, test))
        )
    ]


def figures() -> dict[str, Any]:
    """What the last run of the proofs has told: `run` (when, where) and `told`, a list of figures."""
    try:
        with open(FIGURES, encoding="utf-8") as file:
            found: dict[str, Any] = json.load(file)
    except FileNotFoundError:
        return {"run": {}, "told": []}
    return found


def plain(value: float | str) -> str:
    """A figure as people write it."""
    if isinstance(value, str):
        return value
    if isinstance(value, int) or value == int(value):
        return f"{int(value):,}"
    return f"{value:,.1f}" if abs(value) >= 10 else f"{value:.2f}"


def summed(told: Iterable[Mapping[str, Any]]) -> list[str]:
    """The figures of one test over all its parameters: counts added up, measures at their worst."""
    together: dict[tuple[str, str], Any] = {}
    for figure in told:
        key, value = (figure["what"], figure["unit"]), figure["value"]
        if key not in together or isinstance(value, str):
            together[key] = value
        elif key[1] in MEASURED:
            together[key] = max(together[key], value)
        else:
            together[key] += value
    return [f"{what}: {plain(value)} {unit}".rstrip() for (what, unit), value in together.items()]


def of_test(told: Iterable[Mapping[str, Any]], test: str) -> list[Mapping[str, Any]]:
    """The figures that one test told, whatever its parameters."""
    return [figure for figure in told if figure["proof"].split("[")[0] == test]


def cell(text: str) -> str:
    """Text in a table."""
    return " ".join(text.replace("|", "\\|").split())


def link(test: str) -> str:
    """A test, or a script, as a link to its file."""
    path, _, name = test.partition("::")
    return f"[{name or os.path.basename(path)}](../{path})"


def of_promises() -> str:
    """The table of promises."""
    told = figures()["told"]
    lines = ["| we promise | because | tested by | figures of the last long run |", "|---|---|---|---|"]
    for promise in read(os.path.join(FOLDER, "promises.toml"))["promise"]:
        tests = promise["tests"]
        shown = [words for test in tests for words in summed(of_test(told, test))]
        row = (promise["promise"], promise["mechanism"], "<br>".join(map(link, tests)), "<br>".join(shown) or "–")
        lines.append("| " + " | ".join(cell(part) for part in row) + " |")
    return "\n".join(lines)


def of_run() -> str:
    """When and where the figures were made."""
    run = figures()["run"]
    return "No long run is on record." if not run else "; ".join(f"{key} {value}" for key, value in run.items()) + "."


def of_figures() -> str:
    """Every figure of the last run, by file."""
    told = figures()["told"]
    lines = ["| proof | figures |", "|---|---|"]
    for test in dict.fromkeys(figure["proof"].split("[")[0] for figure in told):
        shown = "<br>".join(summed(of_test(told, test)))
        lines.append(f"| {link(test)} | {cell(shown)} |")
    return "\n".join(lines)


def counted(found: Iterable[Case]) -> str:
    """How many cases stand how."""
    verdicts = [case.verdict for case in found]
    return (
        f"{len(verdicts)} cases: {verdicts.count('covered')} covered by tests, {verdicts.count('by_design')} cannot"
        f" happen by design, {verdicts.count('not_covered')} not covered. Those that block a release are in bold: all"
        f" {len(FIRST)} are covered."
    )


def of_cases() -> str:
    """The table of cases, kind by kind."""
    found = cases()
    parts = [counted(found.values())]
    for kind, (_, title) in KINDS.items():
        parts.append(f"\n### {kind}: {title}\n\n| | what happens | how it stands |\n|---|---|---|")
        for name, case in found.items():
            if name[0] == kind:
                shown = f"**{name}**" if name in FIRST else name
                parts.append(f"| {shown} | {cell(case.what)} | {cell(standing(case))} |")
    return "\n".join(parts)


def standing(case: Case) -> str:
    """How a case stands, in words."""
    if case.verdict == "covered":
        tests = ", ".join(map(link, case.tests))
        return f"{tests}. {case.reason}" if case.reason else tests
    return f"*By design:* {case.reason}" if case.verdict == "by_design" else f"*Not covered:* {case.reason}"


PARTS = {"promises": of_promises, "run": of_run, "cases": of_cases, "figures": of_figures}


def rendered(page: str) -> str:
    """The page with its tables anew. Raises ValueError where the marks of one are missing."""
    for name, part in PARTS.items():
        mark = re.compile(rf"(<!-- {name} -->\n).*?(\n<!-- /{name} -->)", re.DOTALL)
        text = part()
        page, count = mark.subn(lambda found, text=text: found[1] + text + found[2], page)  # type: ignore[misc]
        if count != 1:
            raise ValueError(f"docs/reliability.md has {count} places for the {name}")
    return page


def write() -> None:
    """Brings the page up to date."""
    with open(PAGE, encoding="utf-8") as file:
        page = rendered(file.read())
    with open(PAGE, "w", encoding="utf-8") as file:
        file.write(page)


if __name__ == "__main__":
    write()
