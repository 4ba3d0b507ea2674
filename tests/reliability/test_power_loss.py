"""The power goes, at any moment, and what was not synced is there or is not: what was answered is there all the same.

Doors are proved in full: every state of every cut, read as it is. Operations are recovered by a pass in each state.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from operations import OPERATIONS
from powerloss import Image, cuts, recorded, states
from recovery import Trial, alone, spoken
from workbench import Vault

from signet_sync.capture import spool
from signet_sync.sessions import journal
from signet_sync.storage import writing
from signet_sync.storage.database.connection import Database
from signet_sync.storage.durable import private_folder, read_with_sum
from signet_sync.sync.store.artifacts import sanitizer_of_rows, set_sanitizer_of_rows

Tree = dict[str, bytes | None]

# ── doors: every state of every cut ──

LONG = b"".join(b"%06d lantern drains its queue.\n" % number for number in range(400))
SECOND = LONG.replace(b"drains", b"fills")


def all_states(folder: Path, work: Callable[[str, str], object], most: int = 20_000) -> list[tuple[bool, Image]]:
    """Every state that a power loss may leave of what is done to a vault and a state folder, and if it was answered."""
    (folder / "vault").mkdir(exist_ok=True)
    (folder / "machine").mkdir(exist_ok=True)

    def run() -> int:
        work(str(folder / "vault"), str(folder / "machine" / "state"))
        return 0

    found: dict[tuple[bool, str], Image] = {}
    for cut in cuts(recorded(folder, ("vault", "machine"), run)):
        for image in states(cut, most, random.Random(7)):
            found.setdefault((cut.answered, image.digest()), image)
    assert any(answered for answered, _ in found)
    return [(answered, image) for (answered, _), image in found.items()]


def all_trees(folder: Path, work: Callable[[str, str], object]) -> list[tuple[bool, Tree]]:
    """The same as paths with their bytes."""
    return [(answered, dict(image.tree())) for answered, image in all_states(folder, work)]


# What stands under a path at first, what is done, what may stand there before the answer, and what after it.
FILE = "memory/new/a.md"
DOORS = {
    "created": (None, lambda root, _: writing.create_once(root, FILE, LONG), {None, LONG}, {LONG}),
    "replaced": (LONG, lambda root, _: writing.replace(root, FILE, SECOND, LONG), {LONG, SECOND}, {SECOND}),
    "removed": (LONG, lambda root, _: writing.unlink(root, FILE), {LONG, None}, {None}),
}


@pytest.mark.parametrize("door", DOORS)
def test_a_file_is_the_old_or_the_new_one_and_once_it_is_answered_the_new_one(tmp_path, door):
    first, work, before, after = DOORS[door]
    if first is not None:
        Vault(tmp_path / "vault").put(("a.md", first), "memory/new")
    left = all_trees(tmp_path, work)
    assert {tree.get(f"vault/{FILE}") for answered, tree in left if not answered} == before
    assert {tree.get(f"vault/{FILE}") for answered, tree in left if answered} == after


def test_a_folder_that_was_renamed_has_one_of_its_names(tmp_path):
    Vault(tmp_path / "vault").put(("profile.md", LONG), "entities/parts/old")
    left = all_trees(tmp_path, lambda root, _: writing.move_away(root, "entities/parts/old", "new"))
    for answered, tree in left:
        names = [name for name in ("old", "new") if tree.get(f"vault/entities/parts/{name}/profile.md") == LONG]
        assert names == ["new"] if answered else len(names) == 1


def test_a_journalled_flow_is_whole_or_was_never_begun(tmp_path):
    document = {"words": LONG.decode()}
    left = all_trees(tmp_path, lambda _, folder: journal.begin(f"{folder}/id/journal", "0" * 32, document))
    found = [(answered, tree.get(f"machine/state/id/journal/{'0' * 32}.json")) for answered, tree in left]
    assert all(raw is not None for answered, raw in found if answered)
    assert all(read_with_sum(raw) == document for _, raw in found if raw is not None)


def test_a_job_that_a_hook_left_is_there(tmp_path):
    def work(_: str, folder: str) -> None:
        who = {"harness": "codex", "session_id": "s", "agent_id": "default"}
        spool.put(f"{folder}/id/spool", spool.Job(event="end", at="2026-03-29T12:00:00.000Z", **who))

    for answered, tree in all_trees(tmp_path, work):
        left = {path: raw for path, raw in tree.items() if path.startswith("machine/state/id/spool/")}
        jobs = [raw for path, raw in left.items() if path.endswith(".json")]
        assert len(jobs) == 1 or not answered
        assert all((read_with_sum(raw or b"") or {})["harness"] == "codex" for raw in jobs)


def test_a_durable_transaction_outlasts_the_power_even_in_a_new_folder(tmp_path):
    def work(_: str, folder: str) -> None:
        private_folder(f"{folder}/id")
        database = Database(f"{folder}/id/signet-sync.db")
        with database.transaction(durable=True):
            set_sanitizer_of_rows(database, "kept")

    (tmp_path / "left").mkdir()
    left = all_states(tmp_path, work, most=12)
    for number, (answered, image) in enumerate(left):
        place = tmp_path / "left" / str(number)
        place.mkdir()
        image.put(place)
        database = place / "machine" / "state" / "id" / "signet-sync.db"
        if answered or database.exists():
            opened = Database(str(database))
            assert opened.problems() == [] and sanitizer_of_rows(opened) in (("kept",) if answered else ("kept", None))
            opened.close()


# ── operations: a pass recovers each state ──


def cut_off(name: str, folder: Path, most: int, every: int = 1) -> list[dict[str, Any]]:
    """Cuts the power of an operation where it may matter: what becomes of up to MOST states of each cut.

    Of each EVERY-th cut, from the end, and of no state twice; run in a fork.
    """
    trial = Trial(name, folder)
    ground, chance = trial.ground, random.Random(7)
    ground.put_back()
    places = (ground.root.name, ground.state.parent.name)
    record = recorded(ground.folder, places, lambda: spoken(lambda: trial.operation.work(ground.root)))
    seen: set[tuple[str, bool]] = set()
    lines = []
    for cut in list(cuts(record))[::-every]:
        for image in states(cut, most, chance):
            if (key := (image.digest(), cut.answered)) in seen:
                continue
            seen.add(key)
            ground.clear()
            ground.state.parent.rmdir()
            image.put(ground.folder)
            found = trial.judged(answered=cut.answered, cut=True, at_once=len(seen) % 2 == 1)
            lines.append({"cut": cut.at, "answered": cut.answered, **found})
    return lines


def lost(folder: Path, name: str, most: int, every: int = 1) -> int:
    """Nothing may be wrong in the states of an operation; how many there were."""
    lines = alone(partial(cut_off, name, most=most, every=every), folder)
    wrong = [line for line in lines if line["wrong"]]
    assert wrong == [], "\n".join(map(str, wrong[:5])) + f"\n{len(wrong)} of {len(lines)} states"
    assert {line["answered"] for line in lines} == {False, True}
    return len(lines)


def test_what_was_answered_outlasts_the_power_in_a_few_states(tmp_path):
    lost(tmp_path, "session end", 1, every=16)


@pytest.mark.slow
@pytest.mark.parametrize("name", OPERATIONS)
def test_what_was_answered_outlasts_the_power_at_every_cut(tmp_path, name):
    assert lost(tmp_path, name, 10) > 10
