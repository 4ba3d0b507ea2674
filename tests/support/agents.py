"""A running agent under test, in a process or a thread of its own; waiting is looking until a deadline."""

from __future__ import annotations

import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import artifacts_fixture as made
import pytest
from signet_writer import DAEMON
from workbench import ROOT, Vault

from signet_sync.app import daemon, scheduler
from signet_sync.app import heartbeat as app_heartbeat
from signet_sync.app.daemon import Daemon, Installation
from signet_sync.app.scheduler import Scheduler
from signet_sync.formats.timestamps import instant_of, iso
from signet_sync.settings.model import SettingsRemark
from signet_sync.sync.workspace import Workspace

DEADLINE = 300.0
LINUX = sys.platform == "linux"

Found = TypeVar("Found")


def until(look: Callable[[], Found], what: str = "", deadline: float = DEADLINE) -> Found:
    """What `look` gives as soon as it is true; fails after the deadline with what it gave last."""
    end = time.monotonic() + deadline
    while True:
        found = look()
        if found:
            return found
        assert time.monotonic() < end, f"not within {deadline} s: {what or look} (last: {found!r})"
        time.sleep(0.03)


def ago(**given: float) -> str:
    """A recent moment as a timestamp."""
    return iso(instant_of(datetime.now(UTC) - timedelta(**given)))


_numbers = itertools.count(1)


class Session:
    """One made-up session with words of its own: `word` stands in its body, `sentence` on the page."""

    def __init__(self, number: int | None = None) -> None:
        self.number = next(_numbers) if number is None else number
        self.word = f"kestrel{self.number}quartz"
        self.sentence = f"In lantern step number {self.number} bounded the retry loop of src/queue.py so that it ends."
        self.who: dict[str, Any] = {
            "session_id": f"{os.getpid():08x}-0000-4000-8000-{self.number:012d}",
            # Later numbers are newer: the last written is on the page, however small its budget.
            "captured_at": ago(seconds=10 * 86_400 - self.number),
        }
        self.body = f"# Session {self.number}\n\nThe word of this session is {self.word}.\n"

    @property
    def token(self) -> str:
        return made.token_for(session_id=self.who["session_id"])

    def path(self, kind: str) -> str:
        return made.path_for(kind, **self.who)

    def summary(self, **given: Any) -> tuple[str, bytes]:
        return made.summary(**self.who, **{"body": self.body, "memory_sentence": self.sentence, **given})

    def files(self) -> dict[str, bytes]:
        return dict([self.summary(), made.transcript(**self.who, body=self.body), made.manifest(**self.who)])

    def write(self, vault: Vault) -> Session:
        """Writes the session as a person's tool would: each file under a temporary name, then renamed."""
        for name, raw in self.files().items():
            save(vault.memory / name, raw)
        return self


def save(path: Path, raw: bytes) -> None:
    """A save by rename: the old file goes when the new one is whole."""
    temporary = path.with_name(f".{path.name}.swp")
    temporary.write_bytes(raw)
    temporary.replace(path)


def status(vault: Vault) -> dict[str, Any]:
    """The document of `status --json`."""
    answer = vault.call("status", "--json")
    gone = answer.code == 3 and "the workspace does not exist" in str(answer.json["trouble"])
    assert answer.code == 0 or gone, answer
    return dict(answer.json)


def some(vault: Vault, count: int = 9) -> list[Session]:
    """Writes so many sessions."""
    return [Session().write(vault) for _ in range(count)]


def known(vault: Vault, session: Session) -> Session:
    """Waits until a session is searchable and on the page."""
    until(lambda: len(vault.hits(session.word)) == 2, "searchable")
    until(lambda: session.sentence in page(vault), "on the page")
    return session


def verdicts(vault: Vault) -> dict[str, tuple[str, str]]:
    """Verdict and code of every file that the index knows."""
    return {path: (verdict, code) for path, verdict, code in vault.rows("select path, verdict, code from files")}


def page(vault: Vault, path: str = "MEMORY.md") -> str:
    """A page's text, empty while there is none."""
    try:
        return (vault / path).read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""


class Agent:
    """`signet-sync run` in a process of its own, on a vault."""

    def __init__(self, vault: Vault, *options: str, environ: dict[str, str] | None = None, wait: str = "") -> None:
        self.vault = vault
        self.stderr = vault.root.parent / f"stderr-{next(_numbers)}"
        with self.stderr.open("wb") as stream:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "signet_sync", "--workspace", str(vault.root), "run", *options],
                env={**os.environ, "PYTHONPATH": str(ROOT), **(environ or {})},
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=stream,
            )
        if wait:
            self.wait(wait)

    def wait(self, *states: str) -> dict[str, Any]:
        """The status once this process is in one of the states (or in a state that begins like one)."""

        def look() -> dict[str, Any] | None:
            assert self.process.poll() is None, self.output()
            found = status(self.vault)
            return found if found["pid"] == self.process.pid and found["state"].startswith(states) else None

        return until(look, f"{states}: {status(self.vault)} {self.output()}")

    def passed(self) -> dict[str, Any]:
        """The status once the first full pass is over and all is well."""
        return until(lambda: (found := self.wait("watching", "polling"))["last_full_pass"] and found, "a full pass")

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        """The exit code once it has been told to end."""
        self.process.send_signal(number)
        return self.process.wait(DEADLINE)

    def close(self) -> None:
        """Whatever happened, no process is left."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
            self.process.wait()

    def output(self) -> str:
        return self.stderr.read_text(encoding="utf-8", errors="replace")

    def log(self) -> str:
        return (self.vault.state / "logs" / "signet-sync.log").read_text(encoding="utf-8")


class Counted(Scheduler):
    """A scheduler that keeps the requests of its passes and what they came to; while it is not free none begins."""

    passes: list[Any]
    done: list[tuple[Any, Any]]
    free: threading.Event

    def _run(self, request: Any) -> Any:
        self.free.wait()
        self.passes.append(request)
        outcome = None
        try:
            outcome = super()._run(request)
        finally:
            self.done.append((request, outcome))
        return outcome


class Inside(Daemon):
    """The agent in a thread of this process; `passes` are the requests of its passes, `done` has what came of them.

    `own` are its settings, which may be shorter than any file may have them.
    """

    kind = Counted

    def __init__(self, vault: Vault, *, ours: Installation | None = None, **own: float) -> None:
        super().__init__(str(vault.root), ours=ours)
        self.vault = vault
        self.own: dict[str, Any] = {"debounce": 0.05, "settle_seconds": 0.5, **own}
        self.passes: list[Any] = []
        self.done: list[tuple[Any, Any]] = []
        self.free = threading.Event()
        self.free.set()
        self.failure: BaseException | None = None
        self.code: int | None = None
        self._thread = threading.Thread(target=self._live, name="agent")

    def _live(self) -> None:
        try:
            self.code = self.run()
        except BaseException as error:  # noqa: BLE001 - shown by the test's thread
            self.failure = error

    def _configure(self) -> list[SettingsRemark]:
        warnings = super()._configure()
        self.settings = self.settings.replace(**self.own)
        return warnings

    def _new_scheduler(self, workspace: Workspace) -> Scheduler:
        counted = self.kind(workspace, self.heartbeat, self._report_alive, lambda: self._stopping)
        counted.passes, counted.done, counted.free = self.passes, self.done, self.free
        return counted

    @property
    def work(self) -> Scheduler:
        assert self.scheduler is not None
        return self.scheduler

    def since(self, count: int) -> tuple[int, int]:
        """How many files were read, and how many paths moved in the index, in the passes after the first `count`."""
        outcomes = [outcome for _, outcome in self.done[count:] if outcome is not None]
        return sum(outcome.read for outcome in outcomes), sum(len(outcome.change.paths) for outcome in outcomes)

    @property
    def state(self) -> str:
        assert self.failure is None, self.failure
        return self.heartbeat.state

    def wait(self, *states: str) -> None:
        until(lambda: self.state.startswith(states), f"{states}: {self.state}")

    def settled(self, moment: float = 0.4) -> int:
        """Waits until nothing has happened for a moment; gives the number of passes until then."""
        count, since = len(self.passes), time.monotonic()
        end = since + DEADLINE
        while time.monotonic() - since < moment or self.work._again or len(self.done) < len(self.passes):
            if len(self.passes) != count:
                count, since = len(self.passes), time.monotonic()
            assert time.monotonic() < end, "it never comes to rest"
            time.sleep(0.02)
        return count

    def __enter__(self) -> Inside:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._thread.join(DEADLINE)
        assert not self._thread.is_alive()
        if self.failure is not None:
            raise self.failure


@contextmanager
def manager(folder: Path) -> Iterator[tuple[str, Callable[[], list[tuple[float, str]]]]]:
    """A service manager's socket: its address, and what came until now, with the time of each message."""
    address = str(folder / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(address)
        listening.settimeout(0.05)
        heard: list[tuple[float, str]] = []
        ended = threading.Event()

        def listen() -> None:
            while not ended.is_set():
                try:
                    text = listening.recv(4096).decode()
                except TimeoutError:
                    continue
                heard.append((time.monotonic(), text))

        thread = threading.Thread(target=listen)
        thread.start()
        try:
            yield address, lambda: list(heard)
        finally:
            ended.set()
            thread.join()


# ── fixtures, for modules that name this one in `pytest_plugins` ──


@pytest.fixture
def start(vault: Vault) -> Iterator[Callable[..., Agent]]:
    """Starts agents as processes on the vault; none is left at the end."""
    started: list[Agent] = []

    def run(*options: str, **given: Any) -> Agent:
        started.append(Agent(vault, *options, **given))
        return started[-1]

    yield run
    for agent in started:
        agent.close()


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the agent looks for four times a minute, it looks for all the time; what it waits for, it waits less."""
    monkeypatch.setattr(scheduler, "BEAT", 0.2)
    monkeypatch.setattr(scheduler, "LONGEST_BACKOFF", 0.5)
    monkeypatch.setattr(scheduler, "CHECKPOINT_AFTER", 0.2)
    monkeypatch.setattr(daemon, "ROOT_POLL", 0.1)
    monkeypatch.setattr("signet_sync.sync.database.BUSY_MS", 100)
    monkeypatch.setattr(app_heartbeat, "TOUCH", 0.05)


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    """A process that only lives, under the name of Signet's daemon."""
    process = subprocess.Popen(DAEMON)
    yield process
    process.kill()
    process.wait()


def heartbeat(vault: Vault) -> dict[str, Any] | None:
    """The heartbeat file's content, None where there is none."""
    try:
        return dict(json.loads((vault.state / "heartbeat.json").read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None
