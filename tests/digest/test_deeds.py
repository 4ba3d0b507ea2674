"""What was really done, from calls and what they gave back."""

from __future__ import annotations

from typing import Any

import pytest
from said import EDIT, TASK, assistant, call, user

from signet_sync.digest.deeds import Deeds, deeds_of
from signet_sync.digest.turns import turns_of


def deeds(*steps: str) -> Deeds:
    return deeds_of(turns_of(TASK + "".join(steps)))


def run(command: str, output: str = "", *, failed: bool = False) -> str:
    return call("Bash", command, output, failed=failed)


COMMIT = run(
    'git commit -qm "lamp: other words"', "[main 1a2b3c4] lamp: trim the wick\n 2 files changed, 9 insertions(+)"
)


def subjects(*steps: str) -> list[str]:
    return [one.subject for one in deeds(*steps).commits]


@pytest.mark.parametrize(("steps", "expected"), [
    ((COMMIT,), ["lamp: trim the wick"]),
    ((COMMIT, COMMIT), ["lamp: trim the wick"]),
    ((run("git commit -qm 'lamp: trim the wick'"),), ["lamp: trim the wick"]),
    ((run("git commit -m \"$(cat <<'EOF'\\nlamp: trim the wick\\n\\nIt smoked.\\nEOF\\n)\""),),
     ["lamp: trim the wick"]),
    ((COMMIT, run("git commit --amend -qm 'lamp: trim both wicks'")), ["lamp: trim both wicks"]),
    ((run("git commit -qm 'lamp: trim the wick'", "nothing to commit", failed=True),), []),
    ((run("cd /tmp/x && git init -q && git commit -qm 'a scratch lamp'"),), []),
    ((run("gh issue create --title 'Smoke' --body-file - <<'EOF'\\nrun git commit -m 'a lamp'\\nEOF"),), []),
    ((run("git commit --help"),), []),
])  # fmt: skip
def test_commits(steps: tuple[str, ...], expected: list[str]) -> None:
    assert subjects(*steps) == expected


PR = run('gh pr create --title "Trim the wick" --body x', "https://git.example.org/pier/lamp/pull/12")


def test_pull_requests() -> None:
    found = deeds(PR, run("gh pr merge 12 --squash"), run("gh pr merge 9"))
    assert [(one.title, one.number, one.merged) for one in found.requests.values()] == [
        ("Trim the wick", "12", True), ("", "9", True),
    ]  # fmt: skip
    assert found.changed and not deeds(run("gh pr create --title x", failed=True)).changed
    assert not deeds(run("gh pr merge 8 --repo pier/boat")).requests


@pytest.mark.parametrize(("step", "files"), [
    (EDIT, ["/home/u/lantern/src/wick.py"]),
    (call("apply_patch", "src/a.py, src/b.py"), ["src/a.py", "src/b.py"]),
    (call("shell", "apply_patch <<'P'\\n*** Begin Patch\\n*** Update File: src/a.py\\n@@"), ["src/a.py\\n@@"[:8]]),
    (call("Write", "/home/u/.claude/plans/lamp.md"), []),
    (call("Edit", "src/a.py", "the person refused", failed=True), []),
])  # fmt: skip
def test_edits(step: str, files: list[str]) -> None:
    found = deeds(step)
    assert [path.partition("\\n")[0] for path in found.files] == files
    assert found.edits == ({1: len(files)} if files else {})


@pytest.mark.parametrize(("step", "field", "expected"), [
    (run("pytest -q", "3 failed", failed=True), "failing", True), (run("pytest -q"), "failing", False),
    (run("ls"), "failing", None), (run("git push -q"), "pushed", 1), (run("git push --dry-run"), "pushed", 0),
    (run("git reset --soft HEAD~1"), "acts", {1: 1}),
    (run("sed -i s/a/b/ x.py"), "acts", {1: 1}), (run("cat x.py 2>/dev/null"), "acts", {}),
    (run("rm x.py", failed=True), "acts", {}),
    (call("ExitPlanMode", "x", "User has approved your plan."), "planned", 1),
    (call("ExitPlanMode", "x", "The user doesn't want to proceed", failed=True), "planned", 0),
    (call("AskUserQuestion", "x", 'User has answered: "Which oil?"="Rape oil".'), "picks",
     [("Which oil?", "Rape oil", 1)]),
])  # fmt: skip
def test_other_deeds(step: str, field: str, expected: Any) -> None:
    assert getattr(deeds(step), field) == expected


def test_a_deed_belongs_to_its_turn() -> None:
    found = deeds(EDIT, assistant("done"), user("and the other one"), EDIT, COMMIT)
    assert found.edits == {1: 1, 2: 1} and found.commits[0].turn == 2
