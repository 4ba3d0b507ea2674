"""A long run under a mixed load, with a kill every minute and storms: what it costs, and whether all holds that must.

`python -m benchmarks.soak --minutes 30` makes up a workspace, runs `signet-sync run` on it, does some five things a
second to it (see `benchmarks.load`), kills the agent every minute and starts it again, and every few minutes looks at
all that must be true: no file lost, no word left of what was removed, rows as a rebuild makes them, nothing more to
write. In the last part of the time nobody kills and the vault does not grow: what memory grows then is a leak.
Everything happens in a temporary folder. Exit code 1 when anything of it did not hold. Linux only.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from hashlib import sha256

from benchmarks import corpus
from benchmarks.ground import Ground, machine
from benchmarks.index_rows import canonical_dump
from benchmarks.load import AGENTS, WORD, Vault, call
from signet_sync.storage import locations
from signet_sync.storage.database.connection import Database
from signet_sync.sync.store import texts

SAMPLE_EVERY = 1.0
FOLDERS_EVERY = 10.0
# A process is warm when it has seen what it will see: a storm, a full pass of the timer, its caches filled.
WARM = 300.0
# A slope over less than this is noise.
LONG = 180.0
# A life of fewer samples is mostly its beginning.
SHORT = 30
# What says when and where, and nothing else: it changes with every pass.
SIGNS_OF_LIFE = ("last-pass.json", "heartbeat.json", "logs")

HOUR = 3600.0
MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Sample:
    """What the agent's process held at a moment; memory in MiB."""

    at: float
    life: int
    resident: float
    descriptors: int
    threads: int
    log_of_database: int


@dataclass(slots=True)
class Found:
    """All that was measured, and what did not hold."""

    samples: list[Sample] = field(default_factory=list)
    ready: list[float] = field(default_factory=list)
    ends: list[float] = field(default_factory=list)
    folders: list[tuple[float, int, int, int]] = field(default_factory=list)
    kills: int = 0
    looks: int = 0
    processor: float = 0.0
    minutes: float = 0.0
    log_bytes: int = 0
    wrong: list[str] = field(default_factory=list)


# ── the agent ──


class Agent:
    """`signet-sync run` on the workspace: started, killed, started again."""

    def __init__(self, vault: Vault, env: dict[str, str], found: Found) -> None:
        self.vault = vault
        self.env = env
        self.found = found
        self.life = 0
        self.out = os.path.join(vault.ground, "agent.log")
        self.process: subprocess.Popen[bytes]
        self.begun = 0.0
        self.is_ready = False

    def start(self) -> None:
        """Starts it; when it is ready is looked at by `sample`."""
        with open(self.out, "ab") as out:
            command = [sys.executable, "-m", "signet_sync", "--workspace", self.vault.root, "run"]
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=self.env)
        self.life += 1
        self.begun = time.monotonic()
        self.is_ready = False

    def kill(self) -> None:
        """Ends it as a power cut would, and starts another one."""
        self._note_processor()
        self.process.kill()
        self.process.wait()
        self.found.kills += 1
        self.start()

    def end(self) -> None:
        """Ends it as a service manager would."""
        begun = time.monotonic()
        self._note_processor()
        self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = self.process.wait()
        self.found.ends.append(time.monotonic() - begun)
        if code != 0:
            self.found.wrong.append(f"told to end, the agent ended with {code}: {self._tail()}")

    def heartbeat(self) -> dict[str, object]:
        """What the agent last said of itself."""
        return locations.read_heartbeat(locations.locate(self.vault.root)) or {}

    def look(self) -> None:
        """Whether it lives, and since when it is ready."""
        if self.process.poll() is not None:
            self.found.wrong.append(f"the agent ended by itself with {self.process.returncode}: {self._tail()}")
            self.start()
        if not self.is_ready:
            told = self.heartbeat()
            if told.get("pid") == self.process.pid and told.get("last_full_pass"):
                self.is_ready = True
                self.found.ready.append(time.monotonic() - self.begun)

    def sample(self, at: float) -> None:
        """Takes down what the process holds."""
        try:
            with open(f"/proc/{self.process.pid}/status", encoding="ascii") as file:
                told = dict(line.split(":", 1) for line in file)
            descriptors = len(os.listdir(f"/proc/{self.process.pid}/fd"))
        except (OSError, ValueError):
            return
        if "VmRSS" in told:
            resident = int(told["VmRSS"].split()[0]) / 1024
            log = _size(locations.locate(self.vault.root).database + "-wal")
            self.found.samples.append(Sample(at, self.life, resident, descriptors, int(told["Threads"]), log))

    def _note_processor(self) -> None:
        with suppress(OSError):
            with open(f"/proc/{self.process.pid}/stat", encoding="ascii") as file:
                fields = file.read().rsplit(")", 1)[1].split()
            self.found.processor += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def _tail(self) -> str:
        with open(self.out, encoding="utf-8", errors="replace") as file:
            return file.read()[-600:]


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def _below(folder: str) -> Iterator[str]:
    for where, _, names in os.walk(folder):
        yield from (os.path.join(where, name) for name in names)


# ── what must hold ──


class Look:
    """A look at all that must be true of the vault while nobody does anything to it."""

    def __init__(self, vault: Vault, wrong: list[str]) -> None:
        self.vault = vault
        self.books = vault.books
        self.state = locations.locate(vault.root)
        self.wrong = wrong

    def all(self, *, at_rest: bool) -> None:
        """Everything; what only holds with no agent about (`at_rest`) as well."""
        document = self.vault.heal()
        self.problems(document)
        self.nothing_is_lost()
        self.nothing_is_left()
        self.words_of_people()
        self.memories_and_entities()
        self.database(at_rest=at_rest)
        self.second_pass(at_rest=at_rest)
        self.wrong += self.books.wrong
        self.books.wrong.clear()

    def problems(self, document: dict[str, object]) -> None:
        """A healed vault has conflict copies and notes, and nothing worse."""
        problems = document.get("problems")
        if not isinstance(problems, list) or document.get("halted"):
            self.wrong.append(f"the pass is halted or failed: {str(document)[:300]}")
            return
        worse = [f"{told['path']} {told['code']}" for told in problems if told["verdict"] != "ignored"]
        self.wrong += [f"not healed: {told}" for told in worse[:5]]

    def nothing_is_lost(self) -> None:
        """Every immutable file is there with its bytes."""
        for path, raw in self.books.bytes.items():
            try:
                with open(self.vault.path(path), "rb") as file:
                    if file.read() != raw:
                        self.wrong.append(f"altered: {path}")
            except FileNotFoundError:
                self.wrong.append(f"lost: {path}")

    def nothing_is_left(self) -> None:
        """No word of what was removed or forgotten is in any file of workspace and state, or in a seal."""
        for place in (self.vault.root, self.state.path):
            for path in _below(place):
                with suppress(OSError), open(path, "rb") as file:
                    left = {word.decode() for word in WORD.findall(file.read())} & self.books.gone.keys()
                    self.wrong += [self._left(word, os.path.relpath(path, place)) for word in sorted(left)]

    def _left(self, word: str, path: str) -> str:
        """Where a word is that should be nowhere; in the database, in which tables."""
        tables = []
        with closing(_Opened(self.state.database)) as ours:
            for (table,) in list(ours.database.execute("select name from sqlite_master where type = 'table'")):
                columns = [row[1] for row in ours.database.execute(f"pragma table_info('{table}')")]
                where = " or ".join(f'instr(cast("{column}" as blob), cast(? as blob))' for column in columns)
                if ours.database.value(f"select count(*) from '{table}' where {where}", (word,) * len(columns)):
                    tables.append(table)
        return f"{word} of {self.books.gone[word]}, which was removed, is in {path}, in rows of {tables}"

    def words_of_people(self) -> None:
        """Every line that a person wrote on a page is on it, or in a copy kept beside it."""
        for page, lines in self.books.lines.items():
            folder = os.path.dirname(self.vault.path(page))
            names = [name for name in os.listdir(folder) if name.startswith("MEMORY")]
            text = "".join(_text(os.path.join(folder, name)) for name in names)
            self.wrong += [f"a person's line is gone from {page}: {line}" for line in lines if line not in text]

    def memories_and_entities(self) -> None:
        """What is to be remembered is, and every profile holds its lines; the ledger of entities stands."""
        with closing(Database(self.state.database, readonly=True).connection) as connection:
            known = {str(row[0]) for row in connection.execute("select id from memories")}
        self.wrong += [f"a memory is lost: {one}" for one in self.books.memories if one not in known]
        for path, words in self.books.entities.values():
            text = _text(self.vault.path(path))
            self.wrong += [f"{path} lost its line about {word}" for word in words[1:] if word not in text]
        for agent in AGENTS:
            if (answer := call(self.vault.root, "entity", "check", "--log", "--agent", agent, "--json")).code != 0:
                self.wrong.append(f"the ledger of entities does not stand: {answer.out[-300:]}")

    def database(self, *, at_rest: bool) -> None:
        """SQLite's own checks, full text in step, and rows as a new database over the same files has them."""
        scratch = os.path.join(self.vault.ground, "scratch.db")
        call(self.vault.root, "--db", scratch, "reindex", "--index-only", "--json")
        with closing(_Opened(self.state.database, readonly=not at_rest)) as ours, closing(_Opened(scratch)) as fresh:
            self.wrong += [f"the database: {problem}" for problem in ours.database.problems()]
            if not texts.is_in_step(ours.database):
                self.wrong.append("full text is out of step")
            mine, others = (set(_told(canonical_dump(one.database))) for one in (ours, fresh))
            for row in itertools.islice(mine ^ others, 4):
                which = "only ours" if row in mine else "only a rebuild's"
                self.wrong.append(f"rows are not what the files give ({which}): {str(row)[:300]}")
        for suffix in ("", "-wal", "-shm"):
            with suppress(FileNotFoundError):
                os.unlink(scratch + suffix)

    def second_pass(self, *, at_rest: bool) -> None:
        """Another pass writes nothing: not in the workspace, and with no agent about not in the state either."""
        places = (self.vault.root, self.state.path) if at_rest else (self.vault.root,)
        call(self.vault.root, "reindex", "--json")
        before = _entries(places)
        call(self.vault.root, "reindex", "--json")
        after = _entries(places)
        moved = sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))
        self.wrong += [f"a second pass writes {path}" for path in moved[:5]]


class _Opened:
    """A database for a look."""

    def __init__(self, path: str, *, readonly: bool = True) -> None:
        self.database = Database(path, readonly=readonly)

    def close(self) -> None:
        self.database.connection.close()


def _told(dump: Sequence[tuple[object, ...]]) -> Iterator[tuple[object, ...]]:
    """Rows without the notes of files: that one was saved anew in another formatting only its seal can tell."""
    return (row[:4] if row[0] == "files" else row for row in dump)


def _text(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def _entries(places: Sequence[str]) -> dict[str, tuple[int, int, str]]:
    """Time, inode and content of every file, but for signs of life and SQLite's own."""
    found = {}
    for place in places:
        for path in _below(place):
            parts = os.path.relpath(path, place).split(os.sep)
            if parts[0] in SIGNS_OF_LIFE or path.endswith(("-wal", "-shm", ".lock")):
                continue
            with suppress(FileNotFoundError):
                status = os.stat(path)
                with open(path, "rb") as file:
                    found[path] = status.st_mtime_ns, status.st_ino, sha256(file.read()).hexdigest()
    return found


# ── the run ──


@dataclass
class Soak:
    """The whole run: who does what when."""

    vault: Vault
    agent: Agent
    found: Found
    rate: float
    kill_every: float
    storm_every: float
    look_every: float
    calm: float

    def run(self, seconds: float) -> None:
        """Things are done, the agent is killed, storms come, all is looked at; then the end."""
        self.agent.start()
        while not self.agent.is_ready:
            time.sleep(0.1)
            self.agent.look()
        begun = time.monotonic()
        due = {act: begun + every for act, every in self._timers() if every}
        at = begun
        while (now := time.monotonic()) < begun + seconds:
            if now >= begun + (1 - self.calm) * seconds and not self.vault.is_calm:
                self.kill_every = 0.0
                self.vault.calm()
                self.agent.kill()
            self.agent.look()
            for act, every in self._timers():
                if every and due[act] <= now:
                    act()
                    due[act] = max(due[act] + every, time.monotonic())
            self._do()
            at = max(at + 1 / self.rate, time.monotonic() - 1.0)
            time.sleep(max(0.0, at - time.monotonic()))
        self.look(at_rest=False)
        self.agent.end()
        self.look(at_rest=True)
        self.found.minutes = (time.monotonic() - begun) / 60
        logs = os.path.join(locations.locate(self.vault.root).path, "logs")
        self.found.log_bytes = sum(map(_size, _below(logs)))

    def _timers(self) -> list[tuple[Callable[[], None], float]]:
        return [
            (self._sample, SAMPLE_EVERY),
            (self._weigh, FOLDERS_EVERY),
            (self._kill, self.kill_every),
            (self._storm, self.storm_every),
            (self._pause, self.look_every),
        ]

    def _do(self) -> None:
        try:
            self.vault.step()
        except OSError as error:
            self.found.wrong.append(f"{type(error).__name__}: {error}")

    def _sample(self) -> None:
        self.agent.sample(time.monotonic())

    def _weigh(self) -> None:
        state = locations.locate(self.vault.root).path
        inside = sum(map(_size, _below(state)))
        artifacts = len(os.listdir(self.vault.path("memory")))
        database = _size(locations.locate(self.vault.root).database)
        self.found.folders.append((time.monotonic(), inside, artifacts, database))

    def _kill(self) -> None:
        self.agent.kill()

    def _storm(self) -> None:
        """The agent stands still while a storm goes over the vault, or the vault is away."""
        self.agent.process.send_signal(signal.SIGSTOP)
        try:
            with self.vault.storm(sessions=0 if self.vault.is_calm else 10, notes=2000):
                self.agent.process.send_signal(signal.SIGCONT)
                time.sleep(1.0)
        finally:
            self.agent.process.send_signal(signal.SIGCONT)
        self.vault.goes_away_and_comes_back(1.0)

    def _pause(self) -> None:
        self.look(at_rest=False)

    def look(self, *, at_rest: bool) -> None:
        """Looks at everything that must hold."""
        self.found.looks += 1
        before = len(self.found.wrong)
        Look(self.vault, self.found.wrong).all(at_rest=at_rest)
        for wrong in self.found.wrong[before:]:
            print(f"  WRONG: {wrong}", file=sys.stderr, flush=True)


# ── figures ──


def slope(points: Sequence[tuple[float, float]]) -> float:
    """MiB an hour: the median of the slopes between all pairs of points, which single peaks do not move (Theil-Sen)."""
    step = max(1, len(points) // 300)
    some = points[::step]
    found = [(b[1] - a[1]) / (b[0] - a[0]) * HOUR for a, b in itertools.combinations(some, 2) if b[0] - a[0] > 1.0]
    return statistics.median(found) if found else 0.0


def lives(samples: Sequence[Sample]) -> list[list[Sample]]:
    """The samples of each process, in order."""
    return [list(group) for _, group in itertools.groupby(samples, key=lambda sample: sample.life)]


def slope_of_last(samples: Sequence[Sample]) -> float | None:
    """The slope within the last life, in which nobody killed and nothing grew, once warm; None where it was short."""
    *_, last = lives(samples)
    warm = [(sample.at, sample.resident) for sample in last if sample.at - last[0].at > WARM]
    return slope(warm) if warm and warm[-1][0] - warm[0][0] >= LONG else None


def levels(samples: Sequence[Sample]) -> list[tuple[float, float]]:
    """What each process held in the second half of its life: when, and the median in MiB."""
    return [(half[0].at, statistics.median(sample.resident for sample in half)) for half in settled(samples)]


def settled(samples: Sequence[Sample]) -> list[list[Sample]]:
    """The second halves of lives that were long enough to come to rest."""
    return [life[len(life) // 2 :] for life in lives(samples) if len(life) >= SHORT]


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the table; `met` is None where there is no goal."""

    what: str
    value: float
    unit: str = ""
    met: bool | None = None
    how: str = ""


def figures(found: Found, vault: Vault) -> Iterator[Figure]:
    """All that is told."""
    done = vault.books.done
    yield Figure("run", round(found.minutes, 1), "min")
    yield Figure("things done to the vault", sum(done.values()), "", None, f"of {len(done)} kinds")
    yield Figure("agents killed", found.kills, "kills")
    yield Figure("looks at all that must hold", found.looks, "looks")
    yield Figure("what did not hold", len(found.wrong), "", not found.wrong)
    if found.ready:
        yield Figure("start to first full pass, the slowest", round(max(found.ready), 2), "s")
    yield Figure("told to end until ended", round(max(found.ends), 2), "s", max(found.ends) <= 5.0)
    if found.samples:
        yield from _figures_of_process(found.samples)
    if found.folders:
        first, last = found.folders[0], found.folders[-1]
        yield Figure("files in memory/", last[2], "", None, f"{first[2]} at the beginning")
        yield Figure("state folder", round(last[1] / MIB, 1), "MiB", None, f"{first[1] / MIB:.1f} at the beginning")
    yield Figure("logs", found.log_bytes, "bytes", found.log_bytes * 24 * 60 / max(found.minutes, 0.1) < 50 * MIB)
    share = 100 * found.processor / max(found.minutes * 60, 1.0)
    yield Figure("processor time of the agent", round(share, 1), "%", None, "of one core")


def _figures_of_process(samples: Sequence[Sample]) -> Iterator[Figure]:
    resident = [sample.resident for sample in samples]
    within = slope_of_last(samples)
    if within is not None:
        how = f"median of slopes between samples of the last life, in which the vault does not grow, after {WARM:.0f} s"
        yield Figure("memory, slope within a life", round(within, 2), "MiB/h", within < 1.0, how)
    at_rest = levels(samples)
    if len(at_rest) >= 5:
        how = f"between the medians of {len(at_rest)} lives, while the vault grows"
        yield Figure("memory, slope from life to life", round(slope(at_rest), 2), "MiB/h", None, how)
    yield Figure("memory, median", round(statistics.median(resident), 1), "MiB")
    yield Figure("memory, the most", round(max(resident), 1), "MiB", max(resident) < 256.0)
    held = [statistics.median(sample.descriptors for sample in half) for half in settled(samples)]
    if held:
        flat = max(held) - min(held) <= 4
        how = f"medians of lives between {min(held):.0f} and {max(held):.0f}"
        yield Figure("descriptors, the most", max(sample.descriptors for sample in samples), "descriptors", flat, how)
    yield Figure("threads, the most", max(sample.threads for sample in samples), "threads")
    log = max(sample.log_of_database for sample in samples) / MIB
    yield Figure("database's log, the most", round(log, 1), "MiB", log < 64)


def table(told: Sequence[Figure]) -> str:
    """A markdown table; the mark says whether the goal was met."""
    lines = ["| measured | | | |", "|---|---|---|---|"]
    for figure in told:
        mark = "" if figure.met is None else "met" if figure.met else "**missed**"
        lines.append(f"| {figure.what} | {figure.value:,} {figure.unit} | {figure.how} | {mark} |".replace("  ", " "))
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> int:
    """See the module."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=30.0, help="how long (30)")
    parser.add_argument("--seed", type=int, default=1, help="another seed, another run")
    parser.add_argument("--sessions", type=int, default=200, help="sessions in the vault at the beginning (200)")
    parser.add_argument("--rate", type=float, default=5.0, help="things done a second (5)")
    parser.add_argument("--kill-every", type=float, default=60.0, help="seconds between two kills; 0: never (60)")
    parser.add_argument("--storm-every", type=float, default=170.0, help="seconds between two storms; 0: never (170)")
    parser.add_argument("--look-every", type=float, default=130.0, help="seconds between two looks; 0: at the end only")
    parser.add_argument("--calm", type=float, default=0.5, help="last share of the time without kills and growth (0.5)")
    parser.add_argument("--json", metavar="FILE", help="append the figures, one JSON document a line")
    chosen = parser.parse_args(argv)
    if sys.platform != "linux":
        parser.error("what a process holds is read from /proc, which only Linux has")
    if chosen.minutes <= 0 or chosen.rate <= 0 or chosen.sessions < 1:
        parser.error("--minutes, --rate and --sessions must be greater than zero")
    with tempfile.TemporaryDirectory(prefix="signet-soak-") as folder:
        found, vault = soak(chosen, folder)
    told = list(figures(found, vault))
    print(f"{machine()}; seed {chosen.seed}.\n\n{table(told)}")
    print("\n" + ", ".join(f"{re.sub('_', ' ', name)} {count}" for name, count in sorted(vault.books.done.items())))
    for wrong in found.wrong:
        print(f"WRONG: {wrong}")
    if chosen.json:
        with open(chosen.json, "a", encoding="utf-8") as file:
            for figure in told:
                value = {"proof": "benchmarks/soak.py", "what": figure.what, "value": figure.value, "unit": figure.unit}
                file.write(json.dumps(value) + "\n")
    return 1 if found.wrong else 0


def soak(chosen: argparse.Namespace, folder: str) -> tuple[Found, Vault]:
    """Makes the workspace and runs all of it."""
    ground = Ground(folder, per_day=50, agents=len(AGENTS))
    os.environ.clear()
    os.environ.update(ground.env)
    root = os.path.join(folder, "vault")
    end = corpus.iso(int(time.time() * 1000) - 3_600_000)
    vault = Vault(root, folder, chosen.seed)
    vault.found(corpus.write_corpus(root, chosen.sessions, end=end, agents=1))
    found = Found()
    agent = Agent(vault, ground.env, found)
    every = chosen.kill_every, chosen.storm_every, chosen.look_every
    run = Soak(vault, agent, found, chosen.rate, *every, chosen.calm)
    try:
        run.run(chosen.minutes * 60)
    finally:
        with suppress(AttributeError):
            agent.process.kill()
            agent.process.wait()
    return found, vault


if __name__ == "__main__":
    sys.exit(main())
