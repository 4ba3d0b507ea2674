"""Dead ends: what could not work as it was tried, and what worked in its place."""

from __future__ import annotations

import pytest
from said import EDIT, TASK, assistant, call, user

from signet_sync.digest.record import Record
from signet_sync.digest.statements import statements
from signet_sync.digest.tried import core_of

REFUSED = "The user doesn't want to proceed with this tool use. The tool use was rejected."


def ran(command: str, output: str = "", *, failed: bool = False) -> str:
    return call("Bash", command, output, failed=failed)


UNKNOWN = ran("cd lamp && oil run wick 2>&1 | tail -3", "error: unrecognized subcommand 'wick'", failed=True)


@pytest.mark.parametrize(("steps", "expected"), [
    ((UNKNOWN, ran("run wick")), ['"oil run wick" is not a command here; "run wick" worked']),
    ((UNKNOWN, ran("ls"), EDIT, ran("run wick")), ['"oil run wick" is not a command here']),
    ((ran("lamp --blue door.txt", "lamp: unknown option --blue", failed=True), ran("lamp door.txt")),
     ['"lamp --blue door.txt" has no such option; "lamp door.txt" worked']),
    ((ran("git rm -q door/lock.txt", "error: it has changes", failed=True), ran("git rm -qf door/lock.txt")),
     ['"git rm -q door/lock.txt" failed; "git rm -qf door/lock.txt" worked']),
    ((ran("git push --force origin pier", REFUSED, failed=True), user("never push by force here")),
     ['The person refused "git push --force origin pier": “never push by force here”']),
    ((UNKNOWN, ran("oil run wick | tail -3", "error: unrecognized subcommand 'wick'")),
     ['"oil run wick" is not a command here']),
    # it worked later, it is work that failed, it was looked for, or two commands are one line
    ((UNKNOWN, ran("oil run wick")), []),
    ((UNKNOWN, ran("cd /lamp && trim it && oil run wick | tail -3", "burns")), []),
    ((ran("pytest -q tests/wick", "1 failed", failed=True), ran("pytest -q tests/wick -k trim")), []),
    ((ran("grep -n oil src/wick.py", failed=True), ran("grep -n wick src/wick.py")), []),
    ((ran("oil-run -d wick", "zsh: command not found: oil-run", failed=True), ran("oil run -d wick")),
     ['"oil-run -d wick" is not a command here; "oil run -d wick" worked']),
    ((ran("oil-run -d wick", "zsh: command not found: oil-run", failed=True), ran("ls")), []),
    ((ran("npm run typecheck", "error TS1: a wick", failed=True), ran("npm run trim")), []),
    ((ran("ssh pier oil ping door", "no reply", failed=True), ran("ssh pier oil look")), []),
    ((ran("oil run wick", "Cancelled: parallel tool call Bash(x) errored", failed=True), ran("oil run -f wick")), []),
    ((ran("find /pier -name wick", "find: Operation not permitted", failed=True),), []),
    ((ran("make lamp && oil it", "oil: command not found", failed=True),), []),
    ((ran("git push --force origin pier", REFUSED, failed=True),), []),
    ((ran("oil run wick", REFUSED, failed=True), user("Commit")), []),
    ((ran("git log --all", REFUSED, failed=True), user("retry the commit of the wick")), []),
])  # fmt: skip
def test_dead_ends(steps: tuple[str, ...], expected: list[str]) -> None:
    found = [one for one in statements(Record(TASK + "".join(steps) + assistant("Done."))) if one.kind == "tried"]
    assert [one.text for one in found] == expected


@pytest.mark.parametrize(("command", "core"), [
    ("cd /lamp && A=1 B=2 oil  run wick 2>&1 | tail -40", "oil run wick"), ("oil run | cat -A", "oil run | cat -A"),
    ("oil run 2>/dev/null || true", "oil run"), ("cd /lamp", "cd /lamp"),
])  # fmt: skip
def test_what_a_command_runs(command: str, core: str) -> None:
    assert core_of(command) == core
