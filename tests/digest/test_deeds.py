"""What was really done, from calls and what they gave back, and how it left the work."""

from __future__ import annotations

from typing import Any

import pytest
from said import EDIT, TASK, assistant, call, user

from signet_sync.digest.deeds import Deeds, deeds_of
from signet_sync.digest.outcome import outcome
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
    assert found.has_changes and not deeds(run("gh pr create --title x", failed=True)).has_changes
    server = call("mcp__github__create_pull_request", "Trim the wick", '{"number":12}')
    program = call("mcp__hub__create_pull_request", 'tools.open({base:"main", title:"Oil the door"})', "Completed.")
    shown = run("gh pr view --json title,url", '{"title":"Oil the door","url":"https://h.org/a/pull/13"}')
    bare = run("gh pr merge --squash"), run("gh pr list", "Fixes #5 https://h.org/a/pull/41")
    assert [one.number for one in deeds(*bare).requests.values()] == [""]
    there = run("gh pr create --title Mirror", "a pull request already exists:\nhttps://h.org/a/pull/14", failed=True)
    numbers = {one.title: one.number for one in deeds(server, program, shown, there).requests.values()}
    assert numbers == {"Trim the wick": "", "Oil the door": "13", "Mirror": "14"}
    assert not deeds(run("gh pr merge 8 --repo pier/boat")).requests


@pytest.mark.parametrize(("step", "files"), [
    (EDIT, ["/home/u/lantern/src/wick.py"]),
    (call("apply_patch", "src/a.py, src/b.py"), ["src/a.py", "src/b.py"]),
    (call("shell", "apply_patch <<'P'\\n*** Begin Patch\\n*** Update File: src/a.py\\n@@"), ["src/a.py\\n@@"[:8]]),
    (call("Write", "/home/u/.claude/plans/lamp.md"), []), (call("Write", r"C:\a\b.py"), ["C:/a/b.py"]),
    (call("Edit", "src/a.py", "the person refused", failed=True), []),
])  # fmt: skip
def test_edits(step: str, files: list[str]) -> None:
    found = deeds(step)
    assert [path.partition("\\n")[0] for path in found.files] == files
    assert found.edits == ({1: len(files)} if files else {})


@pytest.mark.parametrize(("step", "field", "expected"), [
    (run("git push -q"), "pushed", 1), (run("git push --dry-run"), "pushed", 0),
    (run("git stash push -m x"), "pushed", 0),
    (call("ExitPlanMode", "x", "User has approved your plan."), "planned", True),
    (call("ExitPlanMode", "x", "The user doesn't want to proceed", failed=True), "planned", False),
    (call("AskUserQuestion", "x", 'User has answered: "Which oil?"="Rape oil".'), "picks",
     [("Which oil?", "Rape oil", 1)]),
])  # fmt: skip
def test_other_deeds(step: str, field: str, expected: Any) -> None:
    assert getattr(deeds(step), field) == expected


def test_a_deed_belongs_to_its_turn() -> None:
    found = deeds(EDIT, assistant("done"), user("and the other one"), EDIT, COMMIT)
    assert found.edits == {1: 1, 2: 1} and found.commits[0].turn == 2


STATUS = run("git status --short", " M wick.py")
QUIET = run("cd /lamp\\ngit add .\\ngit commit -q -F - <<'MSG'\\nlamp: trim the wick\\n\\nIt smoked.\\nMSG")
CUT = run(
    "git add src && git commit -m 'lamp: trim …", "[main 1a2b3c4] lamp: trim the wick\nTo github.com:ada/lamp.git"
)
HELPER = call("Task", "trim the wick and commit it", "All of it is done.")


@pytest.mark.parametrize(("steps", "left"), [
    ((EDIT, STATUS), ["not committed"]), ((EDIT, COMMIT), ["committed"]), ((EDIT, QUIET), ["committed"]),
    ((EDIT, COMMIT, run("git push -q")), ["committed and pushed"]), ((EDIT, CUT), ["committed"]),
    ((EDIT, COMMIT, run("gt submit --no-edit")), ["committed and pushed"]),
    ((EDIT, run("git push -q"), user("and the door?"), EDIT, COMMIT), ["committed"]),
    ((EDIT, COMMIT, run("gh pr create --title Wick", "https://h.org/a/pull/7")), ["committed and pushed"]),
    ((EDIT, COMMIT, EDIT), ["committed", "later edits uncommitted"]),
    ((EDIT, STATUS), ["not committed"]),
    # nobody knows: no git is seen, a helper did it, it is no file of the project
    ((EDIT,), []), ((EDIT, STATUS, HELPER), []), ((EDIT, COMMIT, call("Edit", "/tmp/wick.py")), ["committed"]),
    ((EDIT, COMMIT, EDIT, run("git stash")), ["committed"]), ((STATUS,), []),
])  # fmt: skip
def test_how_work_was_left(steps: tuple[str, ...], left: list[str]) -> None:
    found = outcome(TASK + "".join(steps) + assistant("Trimmed the wick in wick.py so that it burns without smoke."))
    assert [one for one in found.results if "commit" in one] == left


@pytest.mark.parametrize("subject", ["Merge branch 'tower'", "WIP g1", "fixup! lamp: trim the wick"])
def test_what_no_history_keeps_is_no_result(subject: str) -> None:
    passing = run("git commit -m x", f"[main 2b3c4d5] {subject}")
    assert subject not in " ".join(outcome(TASK + EDIT + COMMIT + passing).results)


def test_what_two_reports_say_is_told_once() -> None:
    said = TASK + EDIT + assistant("Fixed the smoke of the lamp by a longer wick in wick.py.")
    again = (
        user("and the south pier?") + EDIT + assistant("Fixed the smoke of the lamp by a longer wick in wick.py too.")
    )
    assert " ".join(outcome(said + again).results).count("Fixed the smoke") == 1


def told(*steps: str) -> str:
    return " ".join(outcome(TASK + "".join(steps)).results)


def test_what_a_later_command_removed_is_no_result() -> None:
    made = call("Write", "docs/adr-1.md") + assistant("Created docs/adr-1.md, which says why the wick is short.")
    again = call("Write", "docs/wick.md") + assistant("The page docs/wick.md tells of the lamp.")
    said = told(made, user("call it wick.md"), run("rm docs/adr-1.md"), again)
    assert "wick.md" in said and "adr-1" not in said


def test_a_fix_of_which_the_person_says_that_it_fails_is_no_result() -> None:
    works = EDIT + assistant("Wrote wick.py anew so that the lamp burns through the night.") + user("and the smoke?")
    fails = "Fixed the smoke of the lamp by a longer wick in wick.py."
    steps = works + EDIT + EDIT + assistant(fails)
    assert fails[:-1] in told(steps, user("thank you, and the door?"), EDIT, assistant("ok"))
    said = told(steps, user("it still does not work, the lamp smokes"), EDIT)
    assert "through the night" in said and fails[:20] not in said
