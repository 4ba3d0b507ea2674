"""How work was left, as a session's calls show it; and a report that its person disputes."""

from __future__ import annotations

import pytest
from said import EDIT, TASK, assistant, call, user

from signet_sync.digest.outcome import outcome


def run(command: str, output: str = "", *, failed: bool = False) -> str:
    return call("Bash", command, output, failed=failed)


STATUS = run("git status --short", " M wick.py")
COMMIT = run("git commit -qm 'lamp: trim the wick'", "[main 1a2b3c4] lamp: trim the wick")
QUIET = run("cd /lamp\\ngit add .\\ngit commit -q -F - <<'MSG'\\nlamp: trim the wick\\n\\nIt smoked.\\nMSG")
CUT = run(
    "git add src && git commit -m 'lamp: trim …", "[main 1a2b3c4] lamp: trim the wick\nTo github.com:ada/lamp.git"
)
TESTED, BROKE = run("pytest -q", "9 passed"), run("pytest -q", "1 failed, 8 passed", failed=True)
FAILS, PIPED = "the last test run failed", run("pytest -q 2>&1 | tail -2", "2 failed, 7 passed")
HELPER = call("Task", "trim the wick and commit it", "All of it is done.")


@pytest.mark.parametrize(("steps", "left"), [
    ((EDIT, STATUS), ["not committed"]), ((EDIT, COMMIT), ["committed"]), ((EDIT, QUIET), ["committed"]),
    ((EDIT, COMMIT, run("git push -q")), ["committed and pushed"]), ((EDIT, CUT), ["committed"]),
    ((EDIT, COMMIT, run("gt submit --no-edit")), ["committed and pushed"]),
    ((EDIT, run("git push -q"), user("and the door?"), EDIT, COMMIT), ["committed"]),
    ((EDIT, COMMIT, run("gh pr create --title Wick", "https://h.org/a/pull/7")), ["committed and pushed"]),
    ((EDIT, COMMIT, EDIT), ["committed", "later edits uncommitted"]),
    ((EDIT, STATUS, BROKE), ["not committed", FAILS]), ((EDIT, COMMIT, PIPED), ["committed", FAILS]),
    # passed or changed since, or nobody knows: no git is seen, a helper did it, it is no file of the project
    ((EDIT, COMMIT, BROKE, TESTED), ["committed"]), ((BROKE, EDIT, COMMIT), ["committed"]), ((EDIT,), []),
    ((EDIT, STATUS, BROKE, HELPER), []), ((STATUS, call("Edit", "/tmp/wick.py"), COMMIT), ["committed"]),
    ((EDIT, COMMIT, EDIT, run("git stash")), ["committed"]), ((STATUS,), []),
])  # fmt: skip
def test_how_work_was_left(steps: tuple[str, ...], left: list[str]) -> None:
    found = outcome(TASK + "".join(steps) + assistant("Trimmed the wick in wick.py so that it burns without smoke."))
    told = ("commit", "last test")
    assert [one for one in found.results if any(word in one for word in told)] == left


def test_what_a_later_command_removed_and_a_merge_are_no_results() -> None:
    made = "Created docs/adr-1.md, which says why the wick is short."
    said = TASK + call("Write", "docs/adr-1.md") + assistant(made) + user("call it wick.md")
    said += (
        run("rm docs/adr-1.md") + call("Write", "docs/wick.md") + assistant("The page docs/wick.md tells of the lamp.")
    )
    told = " ".join(outcome(said).results)
    assert "wick.md" in told and "adr-1" not in told
    merge = run("git commit -m x", "[main 2b3c4d5] Merge branch 'tower'")
    assert "Merge" not in " ".join(outcome(TASK + EDIT + COMMIT + merge).results)


def test_a_fix_of_which_the_person_says_that_it_fails_is_no_result() -> None:
    works = "Wrote wick.py anew so that the lamp burns through the night."
    fails = "Fixed the smoke of the lamp by a longer wick in wick.py."
    said = TASK + EDIT + assistant(works) + user("and the smoke?") + EDIT + EDIT + assistant(fails)
    assert fails[:-1] in " ".join(outcome(said + user("thank you, and the door?") + EDIT + assistant("ok")).results)
    told = " ".join(outcome(said + user("it still does not work, the lamp smokes") + EDIT).results)
    assert works[:20] in told and fails[:20] not in told


def test_what_two_reports_say_is_told_once() -> None:
    said = TASK + EDIT + assistant("Fixed the smoke of the lamp by a longer wick in wick.py.")
    again = (
        user("and the south pier?") + EDIT + assistant("Fixed the smoke of the lamp by a longer wick in wick.py too.")
    )
    assert " ".join(outcome(said + again).results).count("Fixed the smoke") == 1
