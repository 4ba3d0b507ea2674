"""Cuts the power of an operation, and says what one pass makes of what is left on the disk."""

from __future__ import annotations

import json
import os
import random
import shutil
from hashlib import sha256
from pathlib import Path
from typing import Any

import operations
from crash_points import Ground, Judge, spoken
from crash_runner import command
from invariants import Standing, broken
from operations import Operation, refused
from portraits import contents, is_begun, portrait, strays, unlike, without_kept
from powerloss import Answered, Image, Names, Record, Sync, cuts, play, recorded, states
from workbench import Vault

from signet_sync.formats import managed_block


class Bench(Ground):
    """The ground of an operation, or what a cut has left of it."""

    def put(self, image: Image) -> None:
        """As a cut has left it."""
        for place in (self.root, self.state.parent):
            shutil.rmtree(place, ignore_errors=True)
        self.clear()
        image.put(self.folder)

    def recorded(self, operation: Operation) -> Record:
        """What the operation does, to its end."""
        self.put_back()
        places = (self.root.name, self.state.parent.name)
        return recorded(self.folder, places, lambda: spoken(lambda: operation.work(self.root)))


class AfterCut(Judge):
    """What must hold of a state once one pass has gone over it; a result that is in `seen` is known to be well."""

    def judge(self, aim: dict[str, Any], answered: bool, seen: set[str]) -> int:
        begun = self.operation.flow and is_begun(self.root, self.operation)
        for path, digest in contents(self.root).items():
            # A ledger of events is added to: its last line may be cut off, and the next write closes it.
            whole = path.startswith("kept ") or digest in aim["whole"].get(path, ()) or path.endswith(".jsonl")
            self.check(
                f"torn: {path}", whole or managed_block.read_generated((self.root / path).read_bytes()) is not None
            )
        self.passes()
        digest = self.outcome = ""
        try:
            there = portrait(self.root)
            digest = sha256(json.dumps(there, sort_keys=True).encode()).hexdigest()
            self.outcome = self.made(there, answered, begun)
        except AssertionError as error:
            self.wrong.append(f"database: {error}")
        self.check(f"left over: {strays(self.root)}", not strays(self.root))
        if self.outcome == "all":
            self.nothing_left()
        if digest not in seen and not self.wrong:
            self.wrong += [said for said in complaints(self.root, self.operation) if said not in aim["usual"]]
            if self.operation.flow:
                self.ask_again()
        return self.save(digest=digest)

    def made(self, there: dict[str, Any], answered: bool, begun: bool) -> str:
        """All of it was done, or nothing was; what was answered, or begun for good, must be done.

        Of what is done piece by piece, only the piece that was begun: asked again, the rest follows.
        """
        different = self.unlike(there)
        if not different:
            return "all"
        if self.operation.flow and not answered:
            if not begun and not unlike(without_kept(plain(there)), without_kept(plain(self.before))):
                return "nothing"
            if self.operation.piecemeal:
                return "part"
        self.wrong += different
        return "some"

    def unlike(self, there: dict[str, Any]) -> list[str]:
        """What differs; a copy of a page that is rid of removed words is as long as it was when it was displaced."""
        found, wanted = plain(there), plain(self.after)
        return unlike(without_kept(found), without_kept(wanted)) if self.operation.gone else unlike(found, wanted)

    def ask_again(self) -> None:
        """The caller, who may not have heard the answer, asks once more: it is done, and not twice."""
        code = refused(self.operation.work, self.root)
        self.check(f"asked again it ends with {code}", code == 0)
        self.passes()
        self.wrong += [f"asked again: {difference}" for difference in self.unlike(portrait(self.root))]


def plain(portrait: dict[str, Any]) -> dict[str, Any]:
    """A portrait without the ledger of events, to which every attempt adds a line."""
    files = {path: digest for path, digest in portrait["files"].items() if not path.endswith(".jsonl")}
    return portrait | {"files": files}


def complaints(root: Path, operation: Operation) -> list[str]:
    """What the invariants, the entities and a second pass say of a workspace."""
    found = broken(Vault(root), Standing(), now=operation.now, settled=True)
    if (root / "entities").exists() and command(str(root), "entity", "check", "--log"):
        found.append("the chain of events is broken")
    return found


def wanted(bench: Bench, operation: Operation) -> dict[str, Any]:
    """Before and after of a run that nothing disturbs, with what is to be said of it even so."""
    found: dict[str, Any] = {"before": {}, "whole": {}}

    def tidied() -> dict[str, Any]:
        assert command(str(bench.root), "reindex", "--now", operation.now) == 0
        return portrait(bench.root)

    if operation.flow:
        bench.put_back()
        found["before"] = tidied() if operation.tidies else portrait(bench.root)
    bench.put_back()
    assert operation.work(bench.root) == 0
    found["after"] = tidied()
    found["usual"] = complaints(bench.root, operation)
    if operation.heals:  # until it has, what it heals is as it was
        bench.put_back()
        tidied()
        found["usual"] += complaints(bench.root, operation)
    return found


def versions(record: Record) -> dict[str, set[str]]:
    """The digests of all that a reader could find under each path of the workspace while the operation went on."""
    image, found = record.before.copy(), {}
    for step in (None, *record.steps):
        if step is None or isinstance(step, Names):
            if step is not None:
                play(image, step)
            for path, data in image.tree():
                if data is not None and path.startswith("vault/"):
                    found.setdefault(path.removeprefix("vault/"), set()).add(sha256(data).hexdigest())
        elif not isinstance(step, Answered | Sync):
            play(image, step)
    return found


def cut_off(name: str, folder: Path, most: int, every: int = 1) -> list[dict[str, Any]]:
    """Cuts the power of an operation wherever it may matter, and has each state that is left recovered by one pass.

    Of every cut (of each EVERY-th, the last one first) up to MOST states: for each that was not seen before whether the
    caller had been answered, what the pass made of it, and what is wrong. Run in a fork.
    """
    os.environ["SIGNET_STATE"] = str(folder / "machine" / "state")
    # A process leaves to the kernel what it has written: nothing here depends on the disk below.
    os.fsync = os.fdatasync = lambda descriptor: None
    operation, bench = operations.prepare(name, folder), Bench(folder)
    aim = wanted(bench, operation)
    record = bench.recorded(operation)
    aim["whole"] = versions(record)
    chance = random.Random(7)
    seen: set[tuple[str, bool]] = set()
    known: set[str] = set()
    found = []
    for cut in list(cuts(record))[::-every]:
        for image in states(cut, most, chance):
            if (key := (image.digest(), cut.answered)) in seen:
                continue
            seen.add(key)
            bench.put(image)
            judge = AfterCut(bench, operation, aim)
            told = bench.judged(lambda judge=judge, cut=cut: judge.judge(aim, cut.answered, known))
            if not told["wrong"]:
                known.add(told["digest"])
            found.append({"cut": cut.at, "answered": cut.answered, "outcome": told["outcome"], "wrong": told["wrong"]})
    return found
