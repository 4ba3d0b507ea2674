"""The eight invariants that hold after every fault, whatever it was: `torn` before anybody recovers, `broken` after.

I1 no artifact that was whole on disk is lost or altered by us. I2 no reader, ours or Signet's, sees a torn page,
manifest or artifact of ours. I3 the database passes its own checks, its text index is in step. I4 the derived rows are
what a rebuild from the files alone gives. I5 no byte of what was removed is anywhere, nor in what is answered. I6
nothing beside the workspace and its state is written. I7 a second pass writes nothing. I8 what was left out is
reported, with its reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

import workbench
from signet_rules import refused
from workbench import NOW, Vault, tree

from signet_sync.formats import managed_block
from signet_sync.sync.store import texts

# What says when and where, and nothing else; it changes with every pass.
SIGNS_OF_LIFE = ("last-pass.json", "heartbeat.json", "logs")
TEMPORARY = ".signet/tmp"


@dataclass(frozen=True)
class Standing:
    """What stood before the fault, and must be there after it.

    `artifacts`: digests that each immutable file may have, by path. `removed`: words that no file may hold any more.
    `invalid`: paths that were invalid already. `beside`: what lies beside workspace and state. `pages`: pages as they
    stood, a person's slips in them included.
    """

    artifacts: Mapping[str, frozenset[str]] = field(default_factory=dict)
    removed: tuple[bytes, ...] = ()
    invalid: frozenset[str] = frozenset()
    beside: Mapping[str, tuple[object, ...]] = field(default_factory=dict)
    pages: Mapping[str, str] = field(default_factory=dict)


def digest(path: Path) -> str:
    """The SHA-256 of a file's bytes."""
    return sha256(path.read_bytes()).hexdigest()


def artifacts(root: Path) -> dict[str, frozenset[str]]:
    """Every immutable file of a workspace, with its digest."""
    return {
        f"memory/{path.name}": frozenset({digest(path)})
        for path in (root / "memory").glob("*--*--*.md")
        if path.is_file() and not path.name.endswith("--manifest.md")
    }


def beside(vault: Vault) -> dict[str, tuple[object, ...]]:
    """What lies beside the workspace and the state, in the folder that a test has to itself."""
    machine = vault.state.parent
    found = tree(vault.root.parent, but=(vault.root.name,))
    inside = f"{machine.relative_to(vault.root.parent)}" if machine.is_relative_to(vault.root.parent) else None
    return {
        path: signs[:1] + signs[3:]
        for path, signs in found.items()
        if inside is None or not (path == inside or path.startswith(f"{inside}/") or inside.startswith(path))
    }


def standing(vault: Vault, *, removed: Iterable[bytes] = ()) -> Standing:
    """What a vault holds now, as it must be found after a fault."""
    invalid = {problem["path"] for problem in vault.call("check", "--json").json["problems"]}
    invalid |= refused(vault.root).keys()
    found = {str(page.relative_to(vault.root)): digest(page) for page in pages(vault.root)}
    return Standing(artifacts(vault.root), tuple(removed), frozenset(invalid), beside(vault), found)


def pages(root: Path) -> list[Path]:
    """Every page of an agent and every ledger that stands."""
    found = [root / "MEMORY.md", root / "DREAMS.md", *root.glob("agents/*/MEMORY.md"), *root.glob("agents/*/DREAMS.md")]
    return [path for path in (*found, *root.glob("**/ledger/**/*.md")) if path.is_file()]


def torn(vault: Vault, before: Standing) -> list[str]:
    """What a reader sees that he must not, right after the fault (I1, I2); a list of words, empty when all is well."""
    wrong = []
    now = artifacts(vault.root)
    for path, digests in before.artifacts.items():
        if path not in now and not before.removed:
            wrong.append(f"I1 lost {path}")
        elif path in now and not now[path] <= digests:
            wrong.append(f"I1 altered {path}")
    for page in pages(vault.root):
        data, name = page.read_bytes(), str(page.relative_to(vault.root))
        ours = data.count(managed_block.BEGIN) and digest(page) != before.pages.get(name)
        if ours and managed_block.read_generated(data) is None:
            wrong.append(f"I2 torn {name}")
    wrong += [
        f"I2 {path}: Signet asks for {why}" for path, why in refused(vault.root).items() if path not in before.invalid
    ]
    problems = vault.call("check", "--json").json["problems"]
    wrong += [
        f"I2 {entry['path']}: {entry['code']}"
        for entry in problems
        if entry["path"] not in before.invalid and entry["verdict"] == "invalid"
    ]
    return wrong


def holding(vault: Vault, words: Iterable[bytes]) -> list[str]:
    """Files of workspace and state that hold one of these words, in whatever case."""
    held = workbench.holding(words, vault.root, vault.state.parent)
    return [f"{word.decode()} in {path.name}" for word, path in held]


def everything(vault: Vault) -> dict[str, tuple[object, ...]]:
    """Kind, mode, time, inode and content of all that a second pass must not touch."""
    found: dict[str, tuple[object, ...]] = {}
    for place in (vault.root, vault.state):
        for path, signs in tree(place, but=SIGNS_OF_LIFE).items():
            # A folder's own time moves with the temporary names that come and go in it.
            found[f"{place.name}/{path}"] = signs[:1] if signs[0].startswith("0o4") else signs
    return found


def broken(vault: Vault, before: Standing, *, now: str = NOW, settled: bool = False) -> list[str]:
    """Recovers by one ordinary pass (unless `settled`), then says what does not hold of I1 to I8; empty is well."""
    wrong: list[str] = []
    if not settled:
        answer = vault.call("reindex", "--json", "--now", now)
        if answer.code not in (0, 1):
            return [f"the pass ends with {answer.code}: {answer.out[-400:]}{answer.err[-400:]}"]
    wrong += torn(vault, before)
    with vault.database() as database:
        wrong += [f"I3 {problem}" for problem in database.problems()]
        if not texts.is_in_step(database):
            wrong.append("I3 the text index is out of step")
    # A row that a seal holds is what the file was: files alone do not show it.
    others = "select 1 from violations union all select 1 from statements where artifact < 0"
    alone = not vault.rows(f"{others} limit 1")
    if alone and vault.dump() != vault.dump_from_scratch():
        wrong.append("I4 the rows are not what the files give")
    told, document = restless(vault, before, now=now)
    wrong += told + unreported(vault, document)
    if not alone:
        # Seals and live turns are native: a rebuild that has them gives the same rows again.
        rows = vault.dump()
        vault.call("reindex", "--full", "--json", "--now", now)
        wrong += ["I4 the rows are not what a rebuild gives"] if vault.dump() != rows else []
    return wrong


def restless(vault: Vault, before: Standing, *, now: str = NOW) -> tuple[list[str], dict[str, object]]:
    """What equal files and rows do not show: I5, I6, I7; and the document of the second pass."""
    wrong = [f"I5 {place}" for place in holding(vault, before.removed)]
    if before.beside and beside(vault) != before.beside:
        wrong.append("I6 something beside the workspace was written")
    strays = [str(path) for path in vault.root.glob(f"{TEMPORARY}/*")]
    if strays:
        wrong.append(f"left over: {strays}")
    left = everything(vault)
    again = vault.call("reindex", "--json", "--now", now)
    moved = [path for path, signs in everything(vault).items() if left.get(path) != signs]
    moved += [path for path in left if not (vault.root.parent / path).exists() and path.startswith(vault.root.name)]
    if moved:
        wrong.append(f"I7 a second pass writes {sorted(moved)}")
    return wrong, again.json


def unreported(vault: Vault, document: dict[str, object]) -> list[str]:
    """Whether the counts of `status` are those of the last pass, and every problem has its reason (I8)."""
    problems = document["problems"]
    assert isinstance(problems, list)
    wrong = [f"I8 no reason for {entry['path']}" for entry in problems if not (entry["code"] and entry["message"])]
    counts = vault.call("status", "--json").json["counts"]
    invalid = sum(1 for entry in problems if entry["verdict"] == "invalid")
    if counts["invalid"] != invalid:
        wrong.append(f"I8 status reports {counts['invalid']} invalid, the pass {invalid}")
    return wrong
