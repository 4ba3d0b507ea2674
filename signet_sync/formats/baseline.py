"""Reads and writes a baseline: the problems of an old vault at its first check, so that only new ones fail a check.

JSON: `{"version": 1, "problems": [{"path": "memory/…", "code": "hash-mismatch"}]}`, sorted, one problem a line, so that
two branches merge. A problem is identified by path and code: another code for the same file is new.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

VERSION = 1

Known = frozenset[tuple[str, str]]


class BaselineProblem(ValueError):
    """A text that is no baseline; the message is for a person."""


def written(problems: Iterable[tuple[str, str]]) -> str:
    """Returns the text of a baseline with these (path, code) pairs."""
    lines = [json.dumps({"path": path, "code": code}, ensure_ascii=False) for path, code in sorted(set(problems))]
    inner = "\n" + ",\n".join(f"  {line}" for line in lines) + "\n " if lines else ""
    return f'{{"version": {VERSION},\n "problems": [{inner}]}}\n'


def read(raw: bytes) -> Known:
    """Reads the (path, code) pairs of a baseline. Raises `BaselineProblem`."""
    try:
        document = json.loads(raw.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise BaselineProblem(f"it is no JSON: {error}") from None
    if not isinstance(document, dict) or document.get("version") != VERSION:
        raise BaselineProblem(f'it is no baseline of version {VERSION}: `"version": {VERSION}` is missing')
    problems = document.get("problems")
    if not isinstance(problems, list) or not all(_is_problem(problem) for problem in problems):
        raise BaselineProblem('`problems` is no list of {"path": …, "code": …}')
    return frozenset((problem["path"], problem["code"]) for problem in problems)


def _is_problem(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(value.get(key), str) for key in ("path", "code"))
