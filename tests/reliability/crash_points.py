"""Ends an operation early at one step after the other, each in a fork, and has what is left judged.

A fault is a kill at a step of `crash_runner`, or the call there fails with EIO or ENOSPC.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import apsw
from crash_runner import FAULTS, KILLED, Steps, arm, command, forked
from operations import REFUSED, refused
from recovery import Trial, spoken


class Moment(NamedTuple):
    """One step of an operation: what is about to be done, and our functions in which it is, the innermost first."""

    label: str
    within: tuple[str, ...]


def moment(label: str) -> Moment:
    """The step at which the process is now."""
    within = []
    frame = sys._getframe(2)
    while frame is not None:
        name = str(frame.f_globals.get("__name__"))
        if name.startswith("signet_sync."):
            within.append(f"{name.removeprefix('signet_sync.')}.{frame.f_code.co_name}")
        frame = frame.f_back  # type: ignore[assignment]
    return Moment(label, tuple(within))


def unlike(moments: Iterable[Moment]) -> list[int]:
    """The steps of which none is like another: of the same call in the same two functions the last one stands."""
    return sorted({(one.label, one.within[:2]): number for number, one in enumerate(moments, 1)}.values())


def the(label: str, function: str) -> Callable[[list[Moment]], list[int]]:
    """Finds the first step of a kind within a function of ours."""
    return lambda moments: [
        next(number for number, one in enumerate(moments, 1) if one.label == label and function in one.within)
    ]


def middle(moments: list[Moment]) -> list[int]:
    """The step in the middle."""
    return [1 + len(moments) // 2]


class Crashes(Trial):
    """One operation, ended at its steps by any of the faults."""

    def struck(self, fault: str, point: int) -> int:
        """The run that meets the fault."""
        FAULTS[fault](point)
        try:
            return refused(self.operation.work, self.ground.root)
        except apsw.Error:
            # What is raised inside a VFS comes out of `close`, too, which keeps quiet about errors of the system.
            if not fault.startswith("sqlite"):
                raise
            return REFUSED

    def moments(self, fault: str) -> list[Moment]:
        """Every step of a run that nothing disturbs."""
        place = self.ground.here / "moments.json"

        def watched() -> int:
            met: list[Moment] = []

            def step(_: Steps, label: str, *, takes_space: bool = False) -> bool:
                met.append(moment(label))
                return False

            Steps.__call__ = step  # type: ignore[method-assign]
            code = self.struck(fault, 0)
            place.write_text(json.dumps(met))
            return code

        self.ground.put_back()
        code = forked(spoken, watched)
        assert code == 0, code
        return [Moment(label, tuple(within)) for label, within in json.loads(place.read_text())]

    def at(self, fault: str, points: Iterable[int]) -> list[dict[str, Any]]:
        """What became of these points; after every second one nobody runs before the caller asks again."""
        lines = []
        for number, point in enumerate(points):
            self.ground.put_back()
            code = forked(spoken, lambda point=point: self.struck(fault, point))
            found = self.judged(answered=(self.ground.here / "answer.json").exists(), at_once=number % 2 == 1)
            if code not in (0, KILLED, REFUSED):
                found["wrong"].append(f"it ended badly: {code}")
            met = (self.ground.here / "killed-at").exists()
            lines.append({"fault": fault, "point": point, "met": met, "killed": code == KILLED, **found})
        return lines

    def killed_over_and_over(self, first: int, times: int, chance: random.Random | None) -> dict[str, Any]:
        """A kill, then so many kills of the pass that recovers it, then a pass that is left alone.

        Each is killed a step later than the one before, or with `chance` at any of its first steps. Where one comes
        through all the same, the next is killed earlier.
        """

        def pass_killed(step: int) -> int:
            arm(step)
            return command(str(self.ground.root), "reindex", "--now", self.operation.now)

        self.ground.put_back()
        forked(spoken, lambda: self.struck("kill", first))
        answered = (self.ground.here / "answer.json").exists()
        kills, step, most = 0, 0, 40
        for _ in range(2 * times):
            step = chance.randint(1, most) if chance else step + 1
            if forked(spoken, lambda step=step: pass_killed(step)) == KILLED:
                kills += 1
            else:
                step, most = 0, max(1, step - 1)
            if kills == times:
                break
        return {"first": first, "kills": kills, **self.judged(answered=answered)}


def visited(
    name: str, folder: Path, faults: dict[str, Callable[[list[Moment]], list[int]]], times: int = 0
) -> dict[str, Any]:
    """What became of an operation at some steps under each of these faults, and of a recovery that is killed."""
    crashes = Crashes(name, folder)
    lines = [line for fault, steps in faults.items() for line in crashes.at(fault, steps(crashes.moments(fault)))]
    steps = len(crashes.moments("kill"))
    starts = [(1, None), (1 + steps // 2, random.Random(7))] if times else []
    over = [crashes.killed_over_and_over(first, times, chance) for first, chance in starts]
    return {"lines": lines, "over": over}
