"""What reports claim, held against what the session's calls show."""

from __future__ import annotations

import pytest
from said import EDIT, TASK, assistant, call, user

from signet_sync.digest.outcome import outcome
from signet_sync.digest.record import Record


def run(command: str, output: str = "", *, failed: bool = False) -> str:
    return call("Bash", command, output, failed=failed)


COMMIT = run("git commit -qm 'lamp: trim the wick'", "[main 1a2b3c4] lamp: trim the wick")
TESTED, BROKE = run("pytest -q", "9 passed"), run("pytest -q", "1 failed, 8 passed", failed=True)
HIDDEN = call("Task", "trim the wick and push it", "All of it is done.")


@pytest.mark.parametrize(("steps", "said", "reason"), [
    ((EDIT,), "Fixed and pushed.", "no push"), ((EDIT, COMMIT), "I've committed and pushed it.", "no push"),
    ((EDIT, COMMIT, run("git push -q")), "Fixed and pushed.", ""),
    ((EDIT, run("git push -q"), COMMIT), "Committed and pushed.", "no push since the last commit"),
    ((EDIT, run("git push", "rejected", failed=True)), "Pushed.", "no push"),
    ((EDIT,), "Committed as `9d8e7f6`.", "no commit"),
    ((EDIT, run("git log --oneline", "9d8e7f6 lamp")), "Committed as 9d8e7f6.", ""),
    ((EDIT, COMMIT), "PR #7 has been squash merged to main.", "no merge"),
    ((EDIT,), "Merged wick_test.py into lamp/tests and door.py into lamp/src.", ""),
    ((EDIT, run("gh pr view", '"state":"MERGED"')), "PR #7 has been merged.", ""),
    ((EDIT,), "Deployed to staging.", "no deployment"), ((EDIT, run("fly deploy")), "Deployed to staging.", ""),
    ((EDIT,), "All tests pass.", "no test run"), ((EDIT, TESTED), "All tests pass.", ""),
    ((EDIT, BROKE), "All 9 tests pass now.", "the last test run failed"), ((EDIT, BROKE, TESTED), "Tests pass.", ""),
    ((TESTED, EDIT), "Tests pass.", ""),
    ((TESTED, call("Edit", "README.md")), "Tests pass.", ""),
    ((EDIT, run("pytest -q 2>&1 | tail -2", "2 failed, 7 passed")), "All tests pass.", "the last test run failed"),
    ((EDIT,), "Build is green.", "no such run"), ((run("ls"),), "Build is green.", ""),
    ((call("Read", "wick.py"),), "Fixed the wick.", ""), ((EDIT,), "Fixed the wick.", ""),
    ((call("Edit", "wick.py", "The user doesn't want to proceed with this tool use.", failed=True),), "Fixed.",
     "nothing was changed"),
    ((EDIT, run("vale docs/lamp.md", "0 errors and 0 warnings in 0 files.")), "Vale is clean.",
     "its last run looked at no files"),
    ((EDIT, run("vale docs/lamp.md", "0 errors and 0 warnings in 3 files.")), "Vale is clean.", ""),
    # work that nobody sees, and words that claim nothing
    ((HIDDEN,), "Pushed.", ""), ((EDIT,), "Not pushed yet.", ""), ((EDIT,), "Once merged, tests pass.", ""),
    ((EDIT,), "The merged commits are listed above.", ""), ((EDIT,), "Shall I say that it is pushed?", ""),
    ((EDIT,), "Sessions are committed to the branch.", ""),
])  # fmt: skip
def test_a_claim_without_a_deed(steps: tuple[str, ...], said: str, reason: str) -> None:
    record = Record(TASK + "".join(steps) + assistant(said))
    assert record.claims.unseen(said.replace("`", ""), 1) == reason


def test_what_the_person_did_is_done_and_what_comes_later_was_not_there() -> None:
    record = Record(TASK + EDIT + assistant("Pushed.") + user("I merged it just now") + COMMIT + run("git push"))
    later = Record(TASK + TESTED + assistant("Tests pass.") + user("and the door?") + EDIT + assistant("Tests pass."))
    assert [later.claims.unseen("Tests pass.", turn) for turn in (1, 2)] == ["", "no test run since the last edit"]
    assert record.claims.unseen("Pushed.", 1) == "no push" and record.claims.unseen("Pushed.", 2) == ""
    assert (
        record.claims.unseen("It is merged.", 2) == "" and record.claims.unseen("It has been merged.", 1) == "no merge"
    )


def test_a_result_tells_what_was_not_seen_and_how_the_tests_ended() -> None:
    said = "Trimmed the wick in wick.py so that it burns without smoke, and pushed."
    assert outcome(TASK + EDIT + BROKE + assistant(said)).results == (
        f"(claimed, not seen: no push) {said[:-1]}", "the last test run failed",
    )  # fmt: skip


def test_a_fix_of_which_the_person_says_that_it_fails_is_no_result() -> None:
    works = "Wrote wick.py anew so that the lamp burns through the night."
    fails = "Fixed the smoke of the lamp by a longer wick in wick.py."
    said = TASK + EDIT + assistant(works) + user("and the smoke?") + EDIT + EDIT + assistant(fails)
    assert fails[:-1] in " ".join(outcome(said + user("thank you, and the door?") + EDIT + assistant("ok")).results)
    told = " ".join(outcome(said + user("it still does not work, the lamp smokes") + EDIT).results)
    assert works[:20] in told and fails[:20] not in told
