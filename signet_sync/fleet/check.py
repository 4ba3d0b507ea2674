"""Checks many workspaces, or writes their shares: one plain function of one workspace, run by an engine for each."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from signet_sync.fleet import engines
from signet_sync.fleet.places import answer, matches, opened, state_of
from signet_sync.fleet.share import share_target
from signet_sync.fleet.tables import Tables
from signet_sync.integrity import check as integrity_check
from signet_sync.integrity.check import CheckResult
from signet_sync.sync.index_records import PROBLEMS

_Progress = Callable[[int, int], None] | None  # how many are done, of how many


def inspect(asked: tuple[str, int]) -> dict[str, Any]:
    """Returns the document of `check --json` of one workspace, at a time in microseconds; writes nothing."""
    workspace, now_us = asked
    with opened(workspace) as place:
        place.fetch()
        checked = integrity_check.check(place.root, now_us=now_us)
        return integrity_check.document(place.name, checked, now_us, strict=False)


def check(named: Sequence[str], now_us: int, progress: _Progress = None, **engine: Any) -> dict[str, Any]:
    """Returns the document of `fleet check --json`: the state of every match, and what is wrong in them.

    Raises as `matches` and `engines.run` do.
    """
    counts, problems = Counter(integrity_check.counts(CheckResult())), list[dict[str, Any]]()

    def take(name: str, document: dict[str, Any]) -> tuple[str, str]:
        counts.update(document["counts"])
        found = [{"workspace": name, **one} for one in document["problems"]]
        problems.extend(found)
        wrong = sum(one["verdict"] in PROBLEMS for one in found)
        if wrong:
            return "damaged", f"{wrong} of its files"
        return ("ok" if document["counts"]["scanned"] else "empty"), ""

    states = _run(named, inspect, (now_us,), take, progress, engine)
    problems.sort(key=lambda one: (one["workspace"], one["path"], one.get("line", 0)))
    return answer(states) | {"counts": dict(counts), "problems": problems}


def share_targets(
    named: Sequence[str], url: str, holds: str, now_us: int, progress: _Progress = None, **engine: Any
) -> dict[str, Any]:
    """Returns the document of `fleet share TARGET… --json`; a workspace that cannot be read keeps its rows.

    Raises as `check` does, and `SignetSyncError` if nothing can be written at the URL.
    """
    url, done = Tables(url).url, dict[str, str]()

    def take(name: str, found: tuple[str, str]) -> tuple[str, str]:
        done[name] = found[1]
        return found[0], ""

    states = _run(named, share_target, (url, holds, now_us), take, progress, engine)
    rows = [(name, state, why, {"shared": done.get(name, "")}) for name, state, why, _ in states]
    return answer(rows) | {"url": url}


def _run(
    named: Sequence[str],
    function: Callable[[Any], Any],
    more: tuple[Any, ...],
    take: Callable[[str, Any], tuple[str, str]],
    progress: _Progress,
    engine: dict[str, Any],
) -> list[tuple[str, str, str, dict[str, Any]]]:
    """Runs a function for every match that may have an answer; returns the state of each, which `take` finds in it."""
    found = matches(named)
    states = [(name, state, why, dict[str, Any]()) for name, (state, why) in found.items() if state]
    asked = [(name, *more) for name, (state, _) in found.items() if not state]
    for number, (item, result, failure) in enumerate(engines.run(function, asked, **engine), 1):
        if isinstance(failure, Exception):
            state, why = state_of(failure)
        else:
            state, why = ("unreachable", failure) if failure is not None else take(item[0], result)
        states.append((item[0], state, why, {}))
        if progress is not None:
            progress(number, len(asked))
    return states
