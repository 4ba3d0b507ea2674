"""The long proofs, run with one command: every slow test of the reliability folder, the fuzz and the soak.

`python -m benchmarks.proof` takes some hours on two cores and prints the figures as they come; `--write` keeps
them in tests/reliability/figures.json and writes docs/reliability.md and benchmarks/reliability.md from it.
`--only PART` (several times) runs some parts, and with `--write` keeps the figures of the others. Exit code 1 when a
proof failed; its name is printed, and its figures are not written.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import apsw

from benchmarks import reliability

SLOW = ("-m", "slow", "-p", "no:cacheprovider", "-s", "-o", "addopts=--strict-markers --strict-config -q")


@dataclass(frozen=True, slots=True)
class Proof:
    """One part of the run: a command; a script of ours gets `--json FILE` for its figures, a test the environment."""

    name: str
    command: tuple[str, ...]


def of_tests(name: str, *paths: str) -> Proof:
    """The slow tests of some files."""
    return Proof(name, ("-m", "pytest", *SLOW, *paths))


def proofs(minutes: float, files: int) -> list[Proof]:
    """Every part, in order: one for each file of the folder with slow tests, then what is a script of its own."""
    folder = os.path.relpath(reliability.FOLDER, reliability.PROJECT)
    found = []
    for name in sorted(os.listdir(reliability.FOLDER)):
        if name.startswith("test_") and name.endswith(".py") and is_slow(os.path.join(reliability.FOLDER, name)):
            found.append(of_tests(name.removeprefix("test_").removesuffix(".py"), f"{folder}/{name}"))
    found.append(of_tests("features", "-n", "auto", "tests", f"--ignore={folder}"))
    found.append(Proof("fuzz", ("-m", "benchmarks.fuzz", "--files", str(files))))
    found.append(Proof("soak", ("-m", "benchmarks.soak", "--minutes", str(minutes))))
    return found


def is_slow(path: str) -> bool:
    """Whether a file has slow tests."""
    with open(path, encoding="utf-8") as file:
        return "mark.slow" in file.read()


def run(proof: Proof) -> tuple[bool, list[dict[str, Any]]]:
    """Runs one proof; whether it held, and its figures."""
    with tempfile.TemporaryDirectory(prefix="proof-") as folder:
        place = os.path.join(folder, "figures")
        is_script = "pytest" not in proof.command
        begun = time.monotonic()
        command = [sys.executable, *proof.command, *(("--json", place) if is_script else ())]
        done = subprocess.run(command, cwd=reliability.PROJECT, env={**os.environ, "PROOF_FIGURES": place}, check=False)
        took = time.monotonic() - begun
        print(f"── {proof.name}: {'holds' if done.returncode == 0 else 'FAILED'} after {took:.0f} s", flush=True)
        return done.returncode == 0, read(place)


def read(place: str) -> list[dict[str, Any]]:
    """The figures that a proof has left, one JSON document a line."""
    try:
        with open(place, encoding="utf-8") as file:
            return [json.loads(line) for line in file if line.strip()]
    except FileNotFoundError:
        return []


def machine() -> dict[str, str]:
    """When and where."""
    return {
        "run on": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "with Python": platform.python_version(),
        "SQLite": apsw.sqlite_lib_version(),
        "on": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
    }


def keep(found: dict[str, list[dict[str, Any]]], given: Iterable[str]) -> None:
    """Puts the figures of the parts that were run into the record; those of the others stay."""
    names = list(given)
    before = reliability.figures()["told"]
    told = [figure for figure in before if figure.get("part") in names and figure["part"] not in found]
    told += [{"part": name, **figure} for name, figures in found.items() for figure in figures]
    told.sort(key=lambda figure: names.index(figure["part"]))
    lines = ",\n".join(json.dumps(figure, ensure_ascii=False) for figure in told)
    with open(reliability.FIGURES, "w", encoding="utf-8") as file:
        file.write(f'{{"run": {json.dumps(machine())}, "told": [\n{lines}\n]}}\n')
    reliability.write()


def main() -> int:
    """See the module."""
    asked = argparse.ArgumentParser(prog="python -m benchmarks.proof", description="Runs the long proofs.")
    asked.add_argument("--only", action="append", metavar="PART", help="this part; several times for several")
    asked.add_argument("--list", action="store_true", help="names the parts and runs nothing")
    asked.add_argument("--soak-minutes", type=float, default=45, help="how long the soak is (45)")
    asked.add_argument("--fuzz-files", type=int, default=1_000_000, help="how many files are made up (1,000,000)")
    asked.add_argument("--write", action="store_true", help="keep the figures and write the pages of them")
    given = asked.parse_args()
    parts = proofs(given.soak_minutes, given.fuzz_files)
    names = [proof.name for proof in parts]
    if unknown := sorted(set(given.only or ()) - set(names)):
        asked.error(f"no such part: {', '.join(unknown)}; there are {', '.join(names)}")
    if given.list:
        print("\n".join(names))
        return 0
    found, failed = {}, []
    for proof in parts:
        if given.only and proof.name not in given.only:
            continue
        held, figures = run(proof)
        if held:
            found[proof.name] = figures
        else:
            failed.append(proof.name)
        if held and given.write:
            keep(found, names)
    print(f"{len(found)} held" + (f", failed: {', '.join(failed)}" if failed else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
