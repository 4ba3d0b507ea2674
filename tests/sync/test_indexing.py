"""The steps of a pass's one transaction, in their order, and why no two of them may change places."""

from __future__ import annotations

import pytest
from workbench import NOW, Vault, numbered

from signet_sync.privacy.erasers import RemovedSessions
from signet_sync.sync import deriving, indexing
from signet_sync.sync.store import artifacts, passes, violations
from signet_sync.sync.store import tombstones as tombstones_store

STEPS = {
    "gather": (RemovedSessions, "gather"), "erase": (RemovedSessions, "erase"), "remove": (indexing, "remove_covered"),
    "judge": (indexing, "read_and_write"), "drop": (indexing, "_drop"), "return": (tombstones_store, "forget_returned"),
    "derive": (deriving, "rebuild"), "queue": (deriving, "queue"), "drain": (deriving, "drain"),
    "link": (artifacts, "mark_broken"), "violate": (violations, "follow_verdicts"), "halt": (passes, "end_halt"),
    "rules": (indexing, "_record_rules"),
}  # fmt: skip

ORDER = [
    ("gather", "erase", "what goes is found before the transaction: it writes files, which no rollback brings back"),
    ("erase", "remove", "rows still hold the words by which queries, marks and copies of the session are recognised"),
    ("remove", "judge", "a file under the path of a removed one is judged without the old seal"),
    ("judge", "drop", "a file that was read and is gone by then is dropped in the same pass"),
    ("drop", "return", "only the verdict tells of a file under the session's other name"),
    ("judge", "queue", "judging tells which sessions moved"),
    ("drop", "queue", "a session without its files is derived anew, too"),
    ("derive", "queue", "a deriver whose rows are emptied has all of its sources queued, not only those that moved"),
    ("queue", "drain", "after a removal nothing of it may stay in derived rows, not even until the next pass"),
    ("judge", "link", "a target that came is no broken link"),
    ("drop", "violate", "a sealed file that is gone is a violation by its verdict"),
    ("violate", "rules", "pages are marked with the agents of all that moved, so this is last"),
]


@pytest.mark.parametrize("scene", ["a removal", "a rebuild", "a change"])
def test_each_step_comes_after_those_that_it_needs(tmp_path, monkeypatch, scene):
    vault = Vault(tmp_path / "vault")
    vault.session(1)
    vault.session(2)
    vault.reindex()
    taken: list[str] = []
    for name, (owner, attribute) in STEPS.items():
        real = getattr(owner, attribute)

        def step(*given, name=name, real=real, **named):
            taken.append(name)
            return real(*given, **named)

        monkeypatch.setattr(owner, attribute, step)
    if scene == "a removal":
        assert vault.call("remove", numbered(1)["session_id"], "--reason", "x", "--yes", "--now", NOW).code == 0
        taken = taken[taken.index("gather") :]
    else:
        vault.session(3)
        vault.reindex(*(["--full"] if scene == "a rebuild" else []))
    taken = taken[: taken.index("rules") + 1]  # what derives, publishes and records then is of the pass, not of this
    needed = {"a removal": {"gather", "erase", "drain"}, "a rebuild": {"derive"}, "a change": {"queue"}}[scene]
    assert needed <= {*taken} and {"remove", "judge", "drop", "return", "violate", "rules"} <= {*taken}
    for first, then, why in ORDER:
        if first in taken and then in taken:
            assert taken.index(first) < taken.index(then), why
