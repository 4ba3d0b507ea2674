"""Measures a fleet: shares written and left alone, questions over all of them, faults, removal, Ray.

`python -m benchmarks.fleet --workspaces 200 --shares 1000`: so many workspaces are shared; for the questions their
shares are copied, under other names and tokens, until there are as many as asked. Every figure of processor seconds is
of whole processes, with those that they start. A part that finds anything else than it should fails.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.corpus import write_corpus
from benchmarks.ground import BenchError, Ground, machine, percentile, python
from signet_sync.fleet import query
from signet_sync.fleet.share import share_of
from signet_sync.fleet.tables import TABLES, pack_rows

PARTS = ("share", "search", "killed", "states", "removal", "ray")


def workspaces(folder: str, count: int, files: int) -> list[str]:
    """Makes workspaces, each unlike the others, unless they are there; returns their paths."""
    roots = [os.path.join(folder, f"{number:05d}") for number in range(count)]
    for number, root in enumerate(roots):
        if not os.path.isdir(root):
            write_corpus(f"{root}.new", files // 3, agents=2, seed=number + 1)
            os.rename(f"{root}.new", root)
    return roots


def signet(ground: Ground, *words: str, code: int | None = 0, **environ: Any) -> dict[str, Any]:
    """Runs a command; returns its document. Raises `BenchError` if it ends with another code."""
    done = subprocess.run(
        [sys.executable, "-m", "signet_sync", *words, "--json"],
        env=ground.env | {"SIGNET_STATE": ground.path("state"), **environ}, capture_output=True, check=False,
    )  # fmt: skip
    if code is not None and done.returncode != code:
        raise BenchError(f"{words[:3]} ended with {done.returncode}: {done.stdout[-300:]!r} {done.stderr[-300:]!r}")
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def share(ground: Ground, roots: Sequence[str]) -> Iterator[str]:
    """Shares workspaces by their files, twice; then some by their own index, as their agents do."""
    listed, place = Path(ground.path("list")), ground.path("tables")
    listed.write_text("\n".join(roots))
    for what, expected in (("first", "written"), ("unchanged", "unchanged")):
        many = ("fleet", "share", f"@{listed}", "--at", place, "--holds", "text", "--workers", "2", "--json")
        ran = ground.run(*python("signet_sync", *many))
        document = json.loads(ran.stdout)
        if document["states"]["ok"] != len(roots) or {one["shared"] for one in document["workspaces"]} != {expected}:
            raise BenchError(str(document["states"]))
        each = f"{ran.processor / len(roots):.2f} s of processors each"
        yield f"| {len(roots)} workspaces shared by their files, {what} | {each}, {ran.seconds:.0f} s, 2 workers |"
    size = sum(path.stat().st_size for path in Path(place).rglob("*.parquet")) / len(roots) / 1000
    yield f"| a share with text | {size:.0f} KB |"
    taken: dict[str, list[float]] = {"first": [], "unchanged": []}
    for root in roots[:5]:
        ground.run(*ground.signet(root, "reindex", apart=False))
        for what in taken:
            words = ("fleet", "share", "--at", ground.path("own"), "--holds", "text")
            taken[what].append(ground.run(*ground.signet(root, *words, apart=False)).processor)
    for what, values in taken.items():
        yield f"| one by its own index, a whole process, {what} | {statistics.median(values):.2f} s of a processor |"


def multiply(place: Path, count: int) -> None:
    """Copies shares under other names, with tokens of their own, until there are so many."""
    from pyarrow import parquet

    commits = [json.loads(path.read_text()) for path in sorted(place.glob("shares/*.json"))]
    for number in range(len(commits), count):
        commit = dict(commits[number % len(commits)])
        old, commit["share"] = commit["share"], share_of(str(number))
        for table in TABLES:
            rows = parquet.ParquetFile(place / table / f"share={old}" / f"{commit[table]}.parquet").read().to_pylist()
            changed = [{**row, "token": f"{number:x}{row['token']}"[:16]} if "token" in row else row for row in rows]
            values = [tuple(row.values())[1:] for row in changed]
            target = place / table / f"share={commit['share']}" / f"{commit[table]}.parquet"
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(pack_rows(table, commit[table], values))
        commit["workspace"] = f"copy {number}"
        (place / "shares" / f"{commit['share']}.json").write_text(json.dumps(commit))


def search(ground: Ground, shares: int) -> Iterator[str]:
    """Asks for two words of a session's sentence, each time others."""
    place = ground.path("tables")
    multiply(Path(place), shares)
    _, (_, rows) = query.ask_shares([place], "select sentence from sessions where length(sentence) > 40", {})
    chance, taken, spent = random.Random(1), [], []
    for (sentence,) in chance.sample(rows, 40):
        words = " ".join(chance.sample([word.strip(".,") for word in sentence.split() if len(word) > 6], 2))
        began, used = time.perf_counter(), time.process_time()
        document = query.search(words, [place])
        taken.append(time.perf_counter() - began)
        spent.append(time.process_time() - used)
        if not document["hits"] or document["states"]["ok"] != shares:
            raise BenchError(f"{words}: {document['states']}")
    middle, slow = (percentile(taken, part) for part in (0.5, 0.95))
    used = percentile(spent, 0.5)
    figure = f"p50 {middle:.2f} s, p95 {slow:.2f} s; {used:.2f} s of processors"
    yield f"| search in {shares:,} shares, {len(rows):,} sessions | {figure} |"
    began = time.perf_counter()
    query.report([place])
    yield f"| report on them | {time.perf_counter() - began:.2f} s |"


def killed(ground: Ground, root: str) -> Iterator[str]:
    """Kills a machine that shares, again and again; the answer is always one whole commit."""
    copy, place = ground.path("machine"), ground.path("killed")
    shutil.copytree(root, copy)
    died = 0
    for number in range(12):
        shutil.copy(next(Path(root).glob("memory/*--summary.md")), f"{copy}/memory/note {number}.md")
        signet(ground, "--workspace", copy, "reindex")
        words = ["--workspace", copy, "fleet", "share", "--at", place, "--holds", "text"]
        process = subprocess.Popen(
            [sys.executable, "-m", "signet_sync", *words], env=ground.env | {"SIGNET_STATE": ground.path("state")},
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        seen = set(Path(place).glob("*/*"))
        for _ in range(20_000):  # as soon as it has begun to write, and a little later each time
            if process.poll() is not None or set(Path(place).rglob("*")) - seen:
                break
            time.sleep(0.001)
        time.sleep(number * 0.002)
        process.send_signal(signal.SIGKILL)
        died += process.wait() == -signal.SIGKILL
        if number:
            found = signet(ground, "fleet", "report", "--at", place, code=None)
            if [one["state"] for one in found["workspaces"]] != ["ok"] or found["rows"][0][3] != 100:
                raise BenchError(str(found))
        else:
            signet(ground, *words)
    signet(ground, *words)
    yield f"| a machine killed {died} times while it shared | each answer one whole commit; the next share completes |"


def states(ground: Ground, roots: Sequence[str]) -> Iterator[str]:
    """Spoils workspaces and shares in each way; every one is named, and the others are answered."""
    bad, empty = ground.path("bad"), ground.path("empty")
    shutil.copytree(roots[0], bad)
    path = next(Path(bad).glob("memory/*--summary.md"))
    path.write_bytes(path.read_bytes() + b"more\n")
    os.makedirs(f"{empty}/memory")
    named = (*roots[:3], bad, empty, ground.path("gone"), "ftp://127.0.0.1:1/x")
    found = signet(ground, "fleet", "check", *named, "--workers", "2", code=1)
    if found["states"] != {"ok": 3, "empty": 1, "damaged": 1, "vanished": 1, "unreachable": 1}:
        raise BenchError(str(found["states"]))
    place, tables = ground.path("spoilt"), Path(ground.path("tables"))
    for path in sorted(tables.glob("shares/*.json"))[:6]:
        for each in (path, *(tables / table / f"share={path.stem}" for table in TABLES)):
            target = Path(place) / each.relative_to(tables)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copytree(each, target) if each.is_dir() else shutil.copy(each, target)
    first, second, third, *_ = sorted(Path(place).glob("shares/*.json"))
    first.write_text("{")
    shutil.rmtree(f"{place}/sessions/share={second.stem}")
    part = next(Path(place).glob(f"files/share={third.stem}/*"))
    part.write_bytes(part.read_bytes()[:-8])
    answer = signet(ground, "fleet", "search", "e", "--at", place, "--at", "ftp://127.0.0.1:1/x", code=1)
    if answer["states"] != {"ok": 3, "empty": 0, "damaged": 2, "vanished": 1, "unreachable": 1}:
        raise BenchError(str(answer["states"]))
    yield f"| `check` of 7 workspaces | {json.dumps(found['states'])[1:-1]} |"
    yield f"| `search` of 6 shares and a place | {json.dumps(answer['states'])[1:-1]} |"


def removal(ground: Ground, roots: Sequence[str]) -> Iterator[str]:
    """Removes a session of 20 agents, of which three are offline."""
    place = ground.path("removal")
    person: dict[str, Any] = {"SIGNET_FLEET_URL": place, "SIGNET_FLEET_REMOVALS": "true"}
    agents = [ground.path(f"agent{number:02d}") for number in range(20)]
    tokens = set[str]()
    for agent, root in zip(agents, roots, strict=False):
        os.makedirs(f"{agent}/memory")
        for path in sorted(Path(root).glob("memory/*.md"))[:9]:
            shutil.copy(path, f"{agent}/memory")
        shared = sorted(Path(roots[0]).glob("memory/*.md"))[-3:]
        tokens |= {path.name.split("--")[1] for path in shared}
        for path in shared:  # what all of them have
            shutil.copy(path, f"{agent}/memory")
        signet(ground, "--workspace", agent, "reindex")
        signet(ground, "--workspace", agent, "fleet", "share", **person)
    (token,) = tokens
    owner = "default" if b'agent_id: "default"' in shared[0].read_bytes() else "builder"
    words = ("fleet", "remove", token, "--agent", owner, "--at", place, "--reason", "private", "--yes")
    signet(ground, *words, code=1)
    for agent in agents[3:]:
        signet(ground, "--workspace", agent, "fleet", "share", **person)
    (one,) = signet(ground, "fleet", "remove", "--at", place, code=1)["approved"]
    waiting = [each["workspace"].rpartition("/")[2] for each in one["waiting"]]
    left = [agent for agent in agents if list(Path(agent).glob(f"memory/*{token}*"))]
    if one["removed"] != 17 or waiting != ["agent00", "agent01", "agent02"] or left != agents[:3]:
        raise BenchError(f"{one} {left}")
    yield f"| removal on 20 agents, three offline | 17 receipts, 17 removed; waiting: {', '.join(waiting)} |"


def ray(ground: Ground, roots: Sequence[str]) -> Iterator[str]:
    """Shares by processes and by Ray, two workers each; compares every byte of the tables."""
    found = {}
    for engine in ("local", "ray"):
        place = ground.path(f"by-{engine}")
        words = ("fleet", "share", *roots[:10], "--at", place, "--workers", "2", "--engine", engine)
        began = time.perf_counter()
        signet(ground, *words, "--now", "2026-03-30T00:00:00Z")
        parts = {str(path.relative_to(place)): path.read_bytes() for path in Path(place).rglob("*") if path.is_file()}
        found[engine] = time.perf_counter() - began, parts
    if found["local"][1] != found["ray"][1]:
        raise BenchError("Ray gives other tables")
    yield f"| 10 workspaces: processes, Ray | {found['local'][0]:.0f} s, {found['ray'][0]:.0f} s; tables equal |"


def main(argv: Sequence[str] | None = None) -> int:
    """Makes the workspaces, measures, and prints a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fleet", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--workspaces", type=int, default=200)
    parser.add_argument("--files", type=int, default=300, help="of each workspace")
    parser.add_argument("--shares", type=int, default=1000, help="for the questions")
    parser.add_argument("--only", type=lambda text: text.split(","), default=PARTS)
    parser.add_argument("--keep", metavar="DIR", help="keep the workspaces there for the next run")
    given = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="signet-fleet-") as temporary:
        ground = Ground(temporary, per_day=50, agents=2)
        os.makedirs(ground.path("home"), exist_ok=True)
        roots = workspaces(given.keep or ground.path("fleet"), given.workspaces, given.files)
        print(
            f"{machine()}; {given.workspaces:,} workspaces × {given.files:,} files\n\n| measured | figure |\n|---|---|"
        )
        parts = {
            "share": lambda: share(ground, roots),
            "search": lambda: search(ground, given.shares),
            "killed": lambda: killed(ground, roots[0]),
            "states": lambda: states(ground, roots),
            "removal": lambda: removal(ground, roots),
            "ray": lambda: ray(ground, roots),
        }
        for name in given.only:
            for line in parts[name]():
                print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
