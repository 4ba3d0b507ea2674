"""How long the views of the page take in a vault of 5,000 sessions, and how much longer than in one of 500.

`python -m benchmarks.pages` makes both vaults (seeded: sessions over 400 days, a transcript of 1 MB, memories that were
recalled and have risen, entities, files that were changed), starts `signet-sync ui` as a process of its own, and asks
for every view over HTTP: once of a server that was never asked for it, then again and again. Beside each stands the
page that shows nothing, measured in the same round: whatever a view costs beyond it is its own. Linux counts the
server's time of a processor; elsewhere there is the clock alone.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import os
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from benchmarks import corpus, dreams, entities, flow, remembered
from benchmarks.ground import PROJECT, machine

DAYS = 400
NOTHING = "/nothing-stands-here"
# Every view: what it is called, and its address or how the address looks on a page that was asked before.
VIEWS: tuple[tuple[str, str, str], ...] = (
    ("overview", "/", ""),
    ("a generated page", "/page", ""),
    ("sessions", "/sessions", ""),
    ("sessions, searched", "/sessions?q=retry+loop", ""),
    ("a session", r"/sessions/[a-z2-7]{16}/[0-9a-f]{8}-[^\"#?]+", "/sessions"),
    ("a session of 1 MB", r"/sessions/[a-z2-7]{16}/benchmark-[^\"#?]+", "/sessions?q=benchmark"),
    ("threads", "/threads", ""),
    ("a thread", r"/threads/t-[a-z2-7]{12}(?=\")", "/threads"),
    ("problems", "/violations", ""),
    ("recall", "/recall", ""),
    ("recall, asked", "/recall?q=retry+loop", ""),
    ("a memory", r"/recall/m-[a-z2-7]{12}", "/recall"),
    ("entities", "/entities", ""),
    ("an entity", r"/entities/[upr]-[a-z2-7]+", "/entities"),
)


class Answer(NamedTuple):
    """One answer: milliseconds by the clock and of a processor, and its text."""

    clock: float
    processor: float
    text: str


class Taken(NamedTuple):
    """A view in one vault: a server's first answer, those that followed, and those of the empty page."""

    first: Answer
    answers: list[Answer]
    nothing: list[Answer]

    def middle(self, name: str) -> float:
        """The median of the answers."""
        return float(statistics.median(getattr(one, name) for one in self.answers))

    def ratio(self) -> float:
        """The median of what each answer took against the empty page of its round."""
        pairs = zip(self.answers, self.nothing, strict=True)
        return statistics.median(_cost(ours) / max(_cost(theirs), 0.001) for ours, theirs in pairs)


def _cost(answer: Answer) -> float:
    return answer.processor or answer.clock


# ── the vault ──


def make(root: str, sessions: int) -> None:
    """Writes a vault in which every view has something to show, and indexes it."""
    from signet_sync.app.workspace import opened
    from signet_sync.memories import promotion
    from signet_sync.sessions.input import session_input
    from signet_sync.sessions.operations import end
    from signet_sync.settings.model import Settings

    corpus.write_corpus(root, sessions, per_day=sessions / DAYS, agents=1)
    entities.plant(Path(root), sessions // 50, 10, random.Random(6))
    reindex(root)
    with opened(root, Settings()) as place:
        given = session_input(flow.document(root, 1 << 20, 1), now_us=dreams.NOW)
        end(place, given, now_us=dreams.NOW)
        dreams.fill(place, remembered.memories(sessions // 5), sessions)
        promotion.dream(place, dreams.AGENT, dreams.NOW)
    folder = os.path.join(root, "memory")
    for name in sorted(name for name in os.listdir(folder) if name.endswith("--summary.md"))[:: sessions // 10]:
        with open(os.path.join(folder, name), "a", encoding="utf-8") as handle:
            handle.write("\nSomebody added this line later.\n")
    reindex(root, accepted=(0, 1))


def reindex(root: str, accepted: Sequence[int] = (0,)) -> None:
    """Indexes a vault. Raises `ValueError` where that fails."""
    done = subprocess.run(_command(root, "reindex", "--json"), stdout=subprocess.DEVNULL, cwd=PROJECT, check=False)
    if done.returncode not in accepted:
        raise ValueError(f"reindex ended with {done.returncode}")


def _command(root: str, *words: str) -> list[str]:
    return [sys.executable, "-m", "signet_sync", "--workspace", root, *words]


# ── the server ──


class Server:
    """The page of one vault, and whoever looks at it."""

    def __init__(self, root: str) -> None:
        self._process = subprocess.Popen(
            _command(root, "ui", "--no-open", "--json"), stdout=subprocess.PIPE, text=True, cwd=PROJECT
        )
        lines = iter(self._process.stdout or ())
        told = json.loads("".join([*takewhile(lambda line: line != "}\n", lines), "}"]))
        address = urlsplit(told["url"])
        self._client = http.client.HTTPConnection(address.hostname or "", address.port)
        self._client.request("GET", f"{address.path}?{address.query}")
        answer = self._client.getresponse()
        answer.read()
        self._cookie = (answer.getheader("Set-Cookie") or "").partition(";")[0]

    def ask(self, path: str, *, status: int = 200) -> Answer:
        """An answer. Raises `ValueError` for one of another status."""
        processor, clock = self._processor(), time.perf_counter()
        self._client.request("GET", path, headers={"Cookie": self._cookie})
        answer = self._client.getresponse()
        text = answer.read().decode()
        clock = time.perf_counter() - clock
        if answer.status != status:
            raise ValueError(f"{path} answered {answer.status}")
        return Answer(clock * 1000, (self._processor() - processor) / 1e6, text)

    def _processor(self) -> int:
        """Nanoseconds of a processor that all threads had."""
        total = 0
        folder = f"/proc/{self._process.pid}/task"
        with contextlib.suppress(OSError):
            for thread in os.listdir(folder):
                with open(f"{folder}/{thread}/schedstat", encoding="ascii") as handle:
                    total += int(handle.read().split()[0])
        return total

    def close(self) -> None:
        """Ends it."""
        self._client.close()
        self._process.terminate()
        self._process.wait(30)


@contextlib.contextmanager
def serving(root: str) -> Iterator[Server]:
    """A fresh server."""
    server = Server(root)
    try:
        yield server
    finally:
        server.close()


# ── measuring ──


def addresses(server: Server) -> dict[str, str]:
    """The address of every view that has one in this vault."""
    found: dict[str, str] = {}
    for name, address, page in VIEWS:
        if not page:
            found[name] = address
        elif match := re.search(f'href="({address})', server.ask(page).text):
            found[name] = match[1].replace("&amp;", "&")
    return found


def measure(root: str, rounds: int) -> dict[str, Taken]:
    """Every view of a vault."""
    with serving(root) as server:
        places = addresses(server)
    with serving(root) as server:
        taken = {name: Taken(server.ask(path), [], []) for name, path in places.items()}
        server.ask(NOTHING, status=404)
        for _ in range(rounds):
            for name, path in places.items():
                taken[name].nothing.append(server.ask(NOTHING, status=404))
                taken[name].answers.append(server.ask(path))
    return taken


def table(few: dict[str, Taken], many: dict[str, Taken]) -> Iterator[str]:
    """The rows of the report: the large vault, and how much more it costs than the small one."""
    names = ("first, clock", "first, processor", "later, clock", "later, processor", "× empty page", "× small vault")
    yield f"| view | KB | {' | '.join(names)} |"
    yield "|---|---|---|---|---|---|---|---|"
    for name, *_ in VIEWS:
        if name not in many:
            raise ValueError(f"the vault has nothing for: {name}")
        taken = many[name]
        cells = [taken.first.clock, taken.first.processor, taken.middle("clock"), taken.middle("processor")]
        shown = " | ".join(f"{cell:,.0f} ms" for cell in cells)
        size = len(taken.first.text.encode()) / 1000
        yield f"| {name} | {size:,.0f} | {shown} | {taken.ratio():.1f} | {_growth(few.get(name), taken)} |"


def _growth(few: Taken | None, many: Taken) -> str:
    """How much longer a view takes in the large vault; a small one may have nothing for it."""
    if few is None:
        return "–"
    return f"{statistics.median(map(_cost, many.answers)) / statistics.median(map(_cost, few.answers)):.2f}"


def main(argv: Sequence[str] | None = None) -> int:
    """Measures and prints one table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pages", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--sessions", metavar="N", type=int, nargs=2, default=[500, 5_000])
    parser.add_argument(
        "--rounds", metavar="N", type=int, default=15, help="measured answers of each view (default 15)"
    )
    parser.add_argument("--keep", metavar="DIR", help="keeps the vaults there for the next run")
    chosen = parser.parse_args(argv)
    print(f"{machine()}; {chosen.rounds} rounds\n")
    with contextlib.ExitStack() as held:
        ground = chosen.keep or held.enter_context(tempfile.TemporaryDirectory(prefix="signet-pages-"))
        for name, place in (("HOME", "home"), ("SIGNET_STATE", "state"), ("SIGNET_CONFIG", "no-settings.toml")):
            os.environ[name] = os.path.join(ground, place)
        found: list[dict[str, Taken]] = []
        for sessions in chosen.sessions:
            root = os.path.join(ground, f"vault-{sessions}")
            ready = f"{root}.ready"
            if not os.path.exists(ready):
                shutil.rmtree(root, ignore_errors=True)
                make(root, sessions)
                with open(ready, "w", encoding="utf-8"):
                    pass
            found.append(measure(root, chosen.rounds))
        for line in table(*found):
            print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
