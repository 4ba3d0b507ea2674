"""Brings an operation to its ground, and judges what a fault has left of it: one judge for kills, failures and cuts.

A fault is followed by an ordinary pass and by the caller who asks again, or by him alone. Then files, rows, answers and
buffers are those of a run that nothing disturbed, or nothing was done; and the invariants hold.
"""

from __future__ import annotations

import gc
import json
import os
import shutil
import traceback
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import invariants
import operations
from crash_runner import command, forked
from invariants import Standing
from operation_vaults import SECRET
from operations import refused
from portraits import contents, is_begun, portrait, strays, unlike, without_kept
from workbench import Vault, holding
from workbench import contents as all_contents

from signet_sync.app.workspace import open_to_write
from signet_sync.entities.queries import verify_log
from signet_sync.entities.repository import EntityRepository
from signet_sync.formats.paths import DEFAULT_AGENT
from signet_sync.settings.model import Settings
from signet_sync.storage.locations import now_us


def alone(job: Callable[[Path], Any], folder: Path) -> Any:
    """Runs a job on a folder in a fork, where it may change what it likes; gives its result."""

    def work() -> None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        (folder / "result.json").write_text(json.dumps(job(folder)))

    process = get_context("fork").Process(target=work)
    process.start()
    process.join()
    return json.loads((folder / "result.json").read_text())


def spoken(work: Callable[[], int]) -> int:
    """Runs something in a fork that must not raise; prints where it does."""
    try:
        return work()
    except BaseException:
        traceback.print_exc()
        raise


class Ground:
    """Workspace and state where every trial begins, put back by copying; they stay where their state knows them.

    What is kept of them lies beside their folder, so that nothing else moves in it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.root = folder / "vault"
        self.state = Path(os.environ["SIGNET_STATE"])
        self.kept = folder.parent / f"{folder.name}-kept"
        self.here = folder.parent / f"{folder.name}-run"
        self.kept.mkdir(exist_ok=True)
        for name in ("before", "state-before"):
            shutil.move(folder / name, self.kept / name)

    def put_back(self) -> None:
        """The ground as it was kept, and an empty working folder."""
        self.clear()
        shutil.copytree(self.kept / "before", self.root)
        shutil.copytree(self.kept / "state-before", self.state)

    def clear(self) -> None:
        """No workspace, no state, and an empty working folder."""
        for place in (self.root, self.state, self.here):
            shutil.rmtree(place, ignore_errors=True)
        self.here.mkdir()
        os.chdir(self.here)


class Remembering(Vault):
    """A vault that indexes the same files from nothing only once: what comes of them hangs on their bytes alone."""

    def __init__(self, root: Path, notes: Path) -> None:
        super().__init__(root)
        self.notes = notes

    def dump_from_scratch(self, name: str = "scratch.db") -> list[tuple[Any, ...]]:
        files = json.dumps(all_contents(self.root, but=(".signet",)), sort_keys=True)
        note = self.notes / f"rows-{sha256(files.encode()).hexdigest()}.json"
        if not note.exists():
            note.write_text(json.dumps(super().dump_from_scratch(name)))
        return [tuple(row) for row in json.loads(note.read_text())]


class Trial:
    """An operation on a ground of its own in FOLDER, and what stands before and after a run that nothing disturbs.

    The process works there from now on, and syncs nothing: whoever is killed leaves to the kernel what it has written.
    """

    def __init__(self, name: str, folder: Path) -> None:
        place = folder / name.replace(" ", "-")
        places = {"HOME": "home", "XDG_STATE_HOME": "home/state", "XDG_CONFIG_HOME": "home/config"}
        places |= {"SIGNET_STATE": "machine/state", "SIGNET_CONFIG": "home/config.toml"}
        os.environ.update({name: str(place / where) for name, where in places.items()})
        os.fsync = os.fdatasync = lambda descriptor: None
        # Every judge is a fork that lives for a tenth of a second: none has anything to collect.
        gc.disable()
        self.operation = operations.prepare(name, place)
        self.ground = ground = Ground(place)
        ground.put_back()
        gone = [word.encode() for word in self.operation.gone]
        self.standing = invariants.standing(Vault(ground.root), removed=gone)
        ground.put_back()
        if self.operation.tidies:
            assert command(str(ground.root), "reindex", "--now", self.operation.now) == 0
        self.before = portrait(ground.root) if self.operation.flow else {}
        ground.put_back()
        assert self.operation.work(ground.root) == 0
        self.after = portrait(ground.root)
        if self.operation.rewrites:
            now = invariants.artifacts(ground.root)
            both = {path: found | now.get(path, frozenset()) for path, found in self.standing.artifacts.items()}
            self.standing = replace(self.standing, artifacts=both)
        # A pass finds nothing to do, but for a backup of what is new.
        found = self.judged(answered=True)
        assert found["wrong"] == [], found
        assert command(str(ground.root), "check", "--now", self.operation.now) == 0

    def judged(self, *, answered: bool, cut: bool = False, at_once: bool = False) -> dict[str, Any]:
        """What the judge says of the ground as it is now, in a fork; `at_once`: nothing runs before who asks again."""
        place = self.ground.here / "judged.json"

        def judge() -> int:
            found = Judge(self, answered, cut)
            found.judge(at_once)
            place.write_text(json.dumps({"outcome": found.outcome, "wrong": found.wrong}))
            return 0

        forked(spoken, judge)
        return dict(json.loads(place.read_text())) if place.exists() else {"outcome": "", "wrong": ["the judge died"]}


class Judge:
    """What must hold once an operation was ended early: `wrong` says what does not, `outcome` how much was done.

    `answered`: the caller was told that it is done. `cut`: by a loss of power, so that a copy that was kept of a page
    with removed words may be of either length, and files that nobody was told of may be missing.
    """

    def __init__(self, trial: Trial, answered: bool, cut: bool) -> None:
        self.trial, self.operation, self.root = trial, trial.operation, trial.ground.root
        self.vault = Remembering(self.root, trial.ground.kept)
        self.answered, self.cut = answered, cut
        self.wrong: list[str] = []
        self.outcome = ""

    def check(self, name: str, held: object) -> None:
        if not held:
            self.wrong.append(name)

    def judge(self, at_once: bool) -> None:
        """A pass and whoever asks again; nothing is left over, the invariants hold, a second pass writes nothing."""
        self.wrong += [f"right after the fault: {fault}" for fault in invariants.torn(self.vault, self.stands())]
        secrets = self.left(SECRET)
        self.check(f"a secret: {secrets}", not secrets)
        if not (at_once and self.operation.flow):
            self.recovers()
        if self.operation.flow and not self.wrong:
            self.asked_again()

    def stands(self) -> Standing:
        """What must stand now: the words of a removal are gone as soon as it has begun, and not before."""
        gone = any(self.root.glob("memory/tombstones/*.md"))
        return self.trial.standing if gone else replace(self.trial.standing, removed=())

    def left(self, *words: str) -> list[tuple[bytes, Path]]:
        return holding([word.encode() for word in words], self.root, self.trial.ground.state)

    def recovers(self) -> None:
        """One ordinary pass."""
        may_be_nothing = self.operation.flow and not self.answered and self.is_not_begun()
        self.passes()
        self.settled(may_be_nothing)

    def is_not_begun(self) -> bool:
        """Whether nothing of it stands that a pass must go on with: then nothing else of it may stand either."""
        files = contents(self.root)
        before, after = self.trial.before["files"], self.trial.after["files"]
        if is_begun(self.root, self.operation) or words_of(files) != words_of(before):
            return False
        loose = self.operation.piecemeal or self.operation.tidies or self.cut
        self.check("written before it was journalled", loose or files in (before, after))
        return True

    def asked_again(self) -> None:
        """The caller asks again: the same result, and nothing twice."""
        code, told = refused(self.operation.work, self.root), self.trial.ground.here / "refused"
        self.check(f"asked again it gives {code}: {told.read_text() if told.exists() else ''}", code == 0)
        self.passes()
        self.settled(False)

    def passes(self) -> None:
        self.check("the pass failed", command(str(self.root), "reindex", "--now", self.operation.now) == 0)

    def settled(self, may_be_nothing: bool) -> None:
        """What was made of it, and all that must hold then."""
        try:
            self.outcome = self.made(portrait(self.root), may_be_nothing)
        except AssertionError as error:
            self.wrong.append(f"database: {error}")
        self.check(f"left over: {strays(self.root)}", not strays(self.root))
        self.wrong += invariants.broken(self.vault, self.stands(), now=self.operation.now, settled=True)
        if (self.root / "entities").exists():
            with open_to_write(str(self.root), Settings()) as workspace:
                found = verify_log(EntityRepository(workspace, DEFAULT_AGENT, now_us()))
            self.check(f"the chain of events is broken: {found}", not found)
        if self.outcome == "all":
            left = self.left(*self.operation.gone)
            self.check(f"left: {left}", not left)

    def made(self, there: dict[str, Any], may_be_nothing: bool) -> str:
        """All of it was done, or nothing, or of what is done piece by piece a part: asked again, the rest follows."""
        different = self.unlike(there, self.trial.after, loosely=self.cut and bool(self.operation.gone))
        if not different:
            return "all"
        if may_be_nothing and not self.unlike(there, self.trial.before, loosely=self.cut or self.operation.tidies):
            return "nothing"
        if self.operation.piecemeal and not self.answered:
            return "part"
        self.wrong += different
        return "some"

    def unlike(self, there: dict[str, Any], wanted: dict[str, Any], *, loosely: bool) -> list[str]:
        """What differs; loosely without what was kept of pages, which may be clean already."""
        return unlike(without_kept(there), without_kept(wanted)) if loosely else unlike(there, wanted)


def words_of(files: dict[str, str]) -> dict[str, str]:
    """The files of what people say of statements."""
    return {name: digest for name, digest in files.items() if name.startswith("memory/words/")}
