"""An operation's vault, put back as often as needed, and what must hold once a pass has gone over what is left."""

from __future__ import annotations

import json
import os
import shutil
from hashlib import sha256
from pathlib import Path
from typing import Any

from crash_runner import forked
from flow_runner import (
    Scenario,
    command,
    contents,
    holding,
    is_begun,
    portrait,
    refused,
    spoken,
    strays,
    unlike,
    without_kept,
)
from invariants import Standing, broken
from powerloss import Answered, Image, Names, Record, Sync, play, recorded
from workbench import Vault

from signet_sync.formats import managed_block


class Bench:
    """A folder with a vault and its state, which are put back as often as needed."""

    def __init__(self, folder: Path, scenario: Scenario) -> None:
        self.folder = folder
        self.scenario = scenario
        self.root = folder / "vault"
        self.state = Path(os.environ["SIGNET_STATE"])
        self.here = folder / "run"
        self.places = ("vault", str(self.state.relative_to(folder).parts[0]))

    def clear(self) -> None:
        for place in (self.root, self.folder / self.places[1], self.here):
            shutil.rmtree(place, ignore_errors=True)
        self.here.mkdir()
        os.chdir(self.here)

    def put_back(self) -> None:
        """As it stands before the operation."""
        self.clear()
        shutil.copytree(self.folder / "before", self.root)
        self.state.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(self.folder / "state-before", self.state)

    def put(self, image: Image) -> None:
        """As a cut has left it."""
        self.clear()
        image.put(self.folder)

    def recorded(self) -> Record:
        """What the operation does, to its end."""
        self.put_back()
        return recorded(self.folder, self.places, lambda: spoken(lambda: self.scenario.work(self.root)))

    def judged(self, answered: bool, aim: dict[str, Any], known: set[str]) -> dict[str, Any]:
        """What one pass makes of what is left, and what is wrong; what is well is remembered in `known`."""
        place = self.folder / "judged.json"
        place.unlink(missing_ok=True)
        forked(spoken, lambda: Judge(self, aim).judge(answered, known))
        if not place.exists():
            return {"outcome": "", "wrong": ["the recovery died"]}
        known_result: dict[str, Any] = json.loads(place.read_text())
        if not known_result["wrong"]:
            known.add(known_result["digest"])
        return {name: known_result[name] for name in ("outcome", "wrong")}


class Judge:
    """What must hold of a state once one pass has gone over it; `wrong` says what does not."""

    def __init__(self, bench: Bench, wanted: dict[str, Any]) -> None:
        self.bench = bench
        self.root = bench.root
        self.scenario = bench.scenario
        self.wanted = wanted
        self.wrong: list[str] = []

    def check(self, name: str, held: object) -> None:
        if not held:
            self.wrong.append(name)

    def judge(self, answered: bool, seen: set[str]) -> int:
        """One ordinary pass, and what it made of the state; a result that was seen before is known to be well."""
        begun = self.scenario.flow and is_begun(self.root, self.scenario)
        for path, digest in files_of(self.root).items():
            # A ledger of events is added to: its last line may be cut off, and the next write closes it.
            whole = digest in self.wanted["whole"].get(path, ()) or path.endswith(".jsonl")
            self.check(f"torn: {path}", whole or managed_block.generated((self.root / path).read_bytes()) is not None)
        code = command(str(self.root), "reindex", "--now", self.scenario.now)
        self.check(f"the pass ends with {code}", code == 0)
        outcome, digest = "", ""
        try:
            there = portrait(self.root)
            digest = sha256(json.dumps(there, sort_keys=True).encode()).hexdigest()
            outcome = self.outcome(there, answered, begun)
        except AssertionError as error:
            self.wrong.append(f"database: {error}")
        self.check(f"left over: {strays(self.root)}", not strays(self.root))
        if outcome == "all":
            left = holding(self.root, self.scenario.gone)
            self.check(f"left: {left}", not left)
        if digest not in seen and not self.wrong:
            self.wrong += [
                complaint for complaint in complaints(self.root, self.scenario) if complaint not in self.wanted["usual"]
            ]
            if self.scenario.flow:
                self.ask_again()
        result = {"outcome": outcome, "wrong": self.wrong, "digest": digest}
        (self.bench.folder / "judged.json").write_text(json.dumps(result))
        return 0

    def outcome(self, there: dict[str, Any], answered: bool, begun: bool) -> str:
        """All of it was done, or nothing was; what was answered, or begun for good, must be done.

        Of what is done piece by piece, only the piece that was begun: asked again, the rest follows.
        """
        different = self.unlike(there, "after")
        if not different:
            return "all"
        if self.scenario.flow and not answered:
            if not begun and not unlike(without_kept(plain(there)), without_kept(plain(self.wanted["before"]))):
                return "nothing"
            if self.scenario.piecemeal:
                return "part"
        self.wrong += different
        return "some"

    def unlike(self, there: dict[str, Any], aim: str) -> list[str]:
        """What differs; a copy of a page that is rid of removed words is as long as it was when it was displaced."""
        found, wanted = plain(there), plain(self.wanted[aim])
        return unlike(without_kept(found), without_kept(wanted)) if self.scenario.gone else unlike(found, wanted)

    def ask_again(self) -> None:
        """The caller, who may not have heard the answer, asks once more: it is done, and not twice."""
        code = refused(self.scenario.work, self.root)
        self.check(f"asked again it ends with {code}", code == 0)
        self.check("the pass failed", command(str(self.root), "reindex", "--now", self.scenario.now) == 0)
        self.wrong += [f"asked again: {difference}" for difference in self.unlike(portrait(self.root), "after")]


def files_of(root: Path) -> dict[str, str]:
    """The digest of every file of a workspace but for temporary ones and kept copies."""
    return {path: digest for path, digest in contents(root).items() if not path.startswith("kept ")}


def plain(portrait: dict[str, Any]) -> dict[str, Any]:
    """A portrait without the ledger of events, to which every attempt adds a line."""
    files = {path: digest for path, digest in portrait["files"].items() if not path.endswith(".jsonl")}
    return portrait | {"files": files}


def complaints(root: Path, scenario: Scenario) -> list[str]:
    """What the invariants, the entities and a second pass say of a workspace."""
    found = broken(Vault(root), Standing(), now=scenario.now, settled=True)
    if (root / "entities").exists() and command(str(root), "entity", "check", "--log"):
        found.append("the chain of events is broken")
    return found


def wanted(bench: Bench) -> dict[str, Any]:
    """Before and after of a run that nothing disturbs, with what is to be said of it even so."""
    found: dict[str, Any] = {"before": {}, "whole": {}}

    def tidied() -> dict[str, Any]:
        assert command(str(bench.root), "reindex", "--now", bench.scenario.now) == 0
        return portrait(bench.root)

    if bench.scenario.flow:
        bench.put_back()
        found["before"] = tidied() if bench.scenario.tidies else portrait(bench.root)
    bench.put_back()
    assert bench.scenario.work(bench.root) == 0
    found["after"] = tidied()
    found["usual"] = complaints(bench.root, bench.scenario)
    if bench.scenario.heals:  # until it has, what it heals is as it was
        bench.put_back()
        tidied()
        found["usual"] += complaints(bench.root, bench.scenario)
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
