"""Another version is installed while the agent runs: it makes way, or goes on and says why; no row is harmed."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import agents
import apsw
import pytest
from agents import Agent, Inside, Session, known, manager, some, status, until
from workbench import ROOT, Vault, spawn

import signet_sync
from signet_sync import __version__
from signet_sync.app import upgrade
from signet_sync.app.daemon import Daemon, Options
from signet_sync.app.upgrade import Upgrade
from signet_sync.errors import DatabaseNewer
from signet_sync.storage import state_dir
from signet_sync.storage.database.connection import Database
from signet_sync.storage.database.tables import VERSION
from signet_sync.sync.store.rules import set_version, version_of

vault, quick = agents.vault, agents.quick

# ── what is installed, and when it may take over ──


class Installed:
    """An installation of which only the file with the version is there, and a Python that answers for the rest."""

    def __init__(self, folder: Path) -> None:
        self.version_file = folder / "__init__.py"
        self.python = folder / "python"
        self.tried = folder / "tried"
        self.now = 1000.0
        self.put("0.1.0")
        self.loads("0.1.0", VERSION)

    def put(self, version: str) -> None:
        """What whoever installs does to the file."""
        new = self.version_file.with_suffix(".new")
        new.write_text(f'__version__ = "{version}"\n')
        new.replace(self.version_file)

    def answers(self, script: str) -> None:
        self.python.write_text(f"#!/bin/sh\necho >> '{self.tried}'\n{script}\n")
        self.python.chmod(0o755)

    def loads(self, version: str, schema: int) -> None:
        self.answers(f"echo '{json.dumps([version, schema])}'")

    @property
    def trials(self) -> int:
        return len(self.tried.read_text()) if self.tried.exists() else 0

    def passes(self, seconds: float, of: Upgrade, step: float = 15.0, *, ends: bool = True) -> bool:
        """Lets time go by in beats of the agent; whether it may make way by then."""
        end = self.now + seconds
        while self.now < end:
            self.now += step
            if of.is_ready(self.now):
                return True
            if ends and of._trial is not None and of._trial._process is not None:
                of._trial._process.wait(30)
        return False


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Installed:
    made = Installed(tmp_path)
    monkeypatch.setattr(signet_sync, "__file__", str(made.version_file))
    monkeypatch.setattr(sys, "executable", str(made.python))
    monkeypatch.setattr(sys, "orig_argv", [str(made.python), "-m", "signet_sync", "run"])
    return made


def test_while_nothing_is_installed_nothing_is_tried(there: Installed) -> None:
    assert not there.passes(3600, Upgrade(there.now))
    os.utime(there.version_file, ns=(0, there.version_file.stat().st_mtime_ns))  # read
    os.link(there.version_file, there.version_file.with_name("kept by a cache"))
    assert not there.passes(3600, Upgrade(there.now))
    assert there.trials == 0


def test_what_is_installed_is_tried_once_it_stands_still_and_then_takes_over_within_two_minutes(
    there: Installed,
) -> None:
    ours = Upgrade(there.now)
    there.passes(120, ours)
    for part in range(30):
        there.put(f"0.2.{part}")
        assert not there.passes(6, ours, step=3)
    assert there.trials == 0
    assert there.passes(60, ours) and there.trials == 1
    assert ours.trouble == ""


def test_what_does_not_load_is_told_and_tried_again_later_or_when_it_is_mended(there: Installed) -> None:
    ours = Upgrade(there.now)
    there.answers("echo \"ModuleNotFoundError: No module named 'apsw'\" >&2; exit 1")
    there.put("0.2.0")
    assert not there.passes(300, ours) and there.trials == 1
    assert ours.trouble == (
        "what is installed as signet-sync does not start (ModuleNotFoundError: No module named 'apsw');"
        f" the agent goes on as {__version__}"
    )
    assert not there.passes(upgrade.AGAIN, ours) and there.trials == 2
    there.put("0.2.1")
    there.loads("0.2.1", VERSION + 1)
    assert there.passes(120, ours) and there.trials == 3


def test_what_never_ends_is_ended(there: Installed) -> None:
    ours = Upgrade(there.now)
    there.answers("exec sleep 600")
    there.put("0.2.0")
    assert not there.passes(40, ours, step=20, ends=False)
    trial = ours._trial
    assert trial is not None and trial._process is not None
    process = trial._process
    there.now += 1000
    assert not ours.is_ready(there.now)
    assert process.returncode == -signal.SIGKILL and "does not come to an end" in ours.trouble


def test_an_older_one_takes_over_only_if_it_knows_the_database(there: Installed) -> None:
    ours = Upgrade(there.now)
    there.put("0.0.9")
    there.loads("0.0.9", VERSION - 1)
    assert not there.passes(300, ours)
    assert ours.trouble.startswith("signet-sync 0.0.9 is installed, which cannot read the database")
    there.put("0.0.10")
    there.loads("0.0.10", VERSION)
    assert there.passes(300, ours)


def test_one_that_was_taken_away_is_no_reason_to_end(there: Installed) -> None:
    ours = Upgrade(there.now)
    there.version_file.unlink()
    there.python.unlink()
    assert not there.passes(300, ours)
    assert "does not start (No such file or directory)" in ours.trouble
    there.put("0.2.0")
    there.loads("0.2.0", VERSION)
    assert there.passes(300, ours)


def test_where_an_upgrade_has_moved_python_the_script_says_where_it_is(
    there: Installed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = Upgrade(there.now)
    script = tmp_path / "signet-sync"
    script.write_text(f"#!{tmp_path}/moved\n")
    monkeypatch.setattr(sys, "orig_argv", [str(there.python), str(script), "run"])
    there.put("0.2.0")
    there.python.rename(tmp_path / "moved")
    assert there.passes(300, ours) and there.trials == 1


# ── an older program beside a newer database ──


def by_a_newer_one(path: Path) -> None:
    """What a newer signet-sync does to the database beside us."""
    connection = apsw.Connection(str(path))
    connection.set_busy_timeout(5000)
    with connection:
        connection.execute("alter table pins rename column pinned_at to since; create table later(x)")
        connection.execute(f"pragma user_version = {VERSION + 1}")
    connection.close()


def test_whoever_has_the_database_open_writes_nothing_into_that_of_a_newer_one(tmp_path: Path) -> None:
    path = tmp_path / "index.db"
    database = Database(str(path))
    by_a_newer_one(path)
    with pytest.raises(DatabaseNewer, match=f"schema {VERSION + 1}") as caught, database.transaction():
        set_version(database, "x", "y")
    assert "upgrade signet-sync" in caught.value.hint
    assert not database.connection.in_transaction and version_of(database, "x") is None
    with pytest.raises(DatabaseNewer):
        database.problems()  # a column is missing, which is no damage
    database.close()


@pytest.mark.usefixtures("quick")
def test_an_agent_whose_database_a_newer_one_has_changed_leaves_it_alone(vault: Vault) -> None:
    session = Session().write(vault)
    with Inside(vault) as agent:
        agent.wait("watching")
        known(vault, session)
        by_a_newer_one(vault.db)
        agent.wait(f"degraded: the database has schema {VERSION + 1}")
        before = dumped(vault.db)
        Session().write(vault)
        answer = vault.call("remember", "Nothing of this may be written.")
        assert answer.code == 3 and "upgrade signet-sync" in answer.err and "Traceback" not in answer.err
        time.sleep(0.3)
        assert dumped(vault.db) == before
    assert not list(vault.state.glob("*.corrupt-*"))


def dumped(path: Path) -> bytes:
    """The database as it is now."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return connection.serialize("main")
    finally:
        connection.close()


# ── the agent makes way ──


@pytest.fixture
def signals() -> Iterator[None]:
    """What this process does with signals, put back."""
    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    before = [signal.getsignal(number) for number in numbers]
    yield
    for number, handler in zip(numbers, before, strict=True):
        signal.signal(number, handler)


@pytest.mark.usefixtures("quick", "signals")
def test_an_agent_ends_its_stay_before_it_makes_way_and_goes_on_where_that_fails(
    vault: Vault, there: Installed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upgrade, "EVERY", 0.05)
    monkeypatch.setattr(upgrade, "STILL", 0.1)
    gone: list[tuple[str, list[str], bool, Any]] = []

    def fails(program: str, words: list[str]) -> None:
        held = state_dir.run_lock_holder(state_dir.locate(str(vault.root)))
        gone.append((program, words, held, signal.getsignal(signal.SIGTERM)))
        raise OSError(errno.ENOENT, "No such file or directory")

    monkeypatch.setattr(os, "execv", fails)
    agent = Daemon(Options(str(vault.root), None, {}), upgrade=Upgrade(time.monotonic()))
    told: list[str] = []

    def act() -> None:
        try:
            until(lambda: agent.presence.state == "watching", "watching", 20)
            there.put("0.2.0")
            until(lambda: gone, "it makes way", 20)
            until(lambda: agent.presence.state == "watching", "it goes on", 20)
            told.append(status(vault)["trouble"])
        finally:
            agent.stop()

    person = threading.Thread(target=act)
    person.start()
    assert agent.run() == 0
    person.join()
    words = [str(there.python), "-m", "signet_sync", "run"]
    assert gone == [(str(there.python), words, False, signal.SIG_DFL)]
    assert told == [
        "what is installed as signet-sync cannot be started (No such file or directory);"
        f" the agent goes on as {__version__}"
    ]


AGAIN = """\
import os, signal, sys
from signet_sync.host import installed_version as installed
print(os.getpid(), *sys.argv[1:], signal.getsignal(signal.SIGHUP) == signal.SIG_IGN, flush=False)
if len(os.environ["AGAIN"]) < 2:
    os.environ["AGAIN"] += "!"
    signal.signal(signal.SIGTERM, lambda *_: None)
    installed.prepare_to_go()
    installed.start_again()
"""


def test_what_starts_again_is_the_same_process_with_the_same_words(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(AGAIN)
    words = ["--workspace", "a b\udcff", "run"]
    done = subprocess.run(
        [sys.executable, "-X", "utf8", str(tmp_path / "script.py"), *words],
        env={**os.environ, "PYTHONPATH": str(ROOT), "AGAIN": "", "PYTHONIOENCODING": "utf-8:surrogateescape"},
        capture_output=True,
        timeout=60,
        check=True,
    )
    first, *others = (os.fsdecode(line).rpartition(" ") for line in done.stdout.splitlines())
    assert (first[2], [other[0] for other in others], others[-1][2]) == ("False", [first[0]] * 2, "True")


# ── processes ──

QUICK = """\
from signet_sync.app import scheduler as rounds, upgrade
rounds.BEAT, upgrade.EVERY, upgrade.STILL, upgrade.AGAIN = 0.2, 0.2, 0.3, 1.0
from signet_sync.__main__ import main
main()
"""


class Place:
    """A package of ours in a folder of its own, which can be exchanged as an installer does it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.changes = 0
        self.package = folder / "signet_sync"
        shutil.copytree(ROOT / "signet_sync", self.package)
        self.quick = folder / "quick.py"
        self.quick.write_text(QUICK)
        self.environ = {"PYTHONPATH": str(folder)}

    def put(self, path: str, *changes: tuple[str, str]) -> None:
        """Replaces a file of the package by one that reads otherwise."""
        file = self.package / path
        text = file.read_text()
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        self.changes += 1
        new = file.with_name("new")
        new.write_text(text)
        # Python takes compiled code for that of a source of the same size and second.
        os.utime(new, (time.time(), time.time() + 5 * self.changes))
        new.replace(file)

    def put_version(self, version: str) -> None:
        now = next(line for line in (self.package / "__init__.py").read_text().splitlines() if "__version__" in line)
        self.put("__init__.py", (now, f'__version__ = "{version}"'))

    def newer_schema(self) -> None:
        """A version that has one more native table."""
        self.put("storage/database/tables.py", (f"\nVERSION = {VERSION}\n", f"\nVERSION = {VERSION + 1}\n"))
        later = f'    native("", "create table later(x)", since={VERSION + 1}),\n'
        tables = "NATIVE: tuple[Table, ...] = (\n"
        self.put("storage/database/native.py", (tables, tables + later))


@contextmanager
def running(vault: Vault, place: Place, **environ: str) -> Iterator[Agent]:
    """An agent of the package in `place` that looks for another one all the time."""
    agent = Agent.__new__(Agent)
    agent.vault, agent.stderr = vault, vault.root.parent / "stderr"
    with agent.stderr.open("wb") as stream:
        command = [sys.executable, str(place.quick), "--workspace", str(vault.root), "run"]
        agent.process = started(command, stream, {**place.environ, **environ})
    try:
        yield agent
    finally:
        agent.close()


def started(command: list[str], stream: Any, environ: dict[str, str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command, env={**os.environ, **environ}, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream
    )


def of_version(agent: Agent, version: str) -> dict[str, Any]:
    """The status once the agent is of a version and at rest."""

    def look() -> dict[str, Any] | None:
        assert agent.process.poll() is None, agent.output()
        found = status(agent.vault)
        ready = found["version"] == version and found["last_full_pass"] and found["state"] == "watching"
        return found if ready else None

    return until(look, f"version {version}: {agent.output()}")


@pytest.mark.slow
def test_an_agent_makes_way_for_what_is_installed_under_it_and_the_service_manager_sees_one_process(
    vault: Vault, tmp_path: Path
) -> None:
    place, session = Place(tmp_path / "site"), Session().write(vault)
    with manager(tmp_path) as (address, heard), running(vault, place, NOTIFY_SOCKET=address) as agent:
        assert of_version(agent, __version__)["pid"] == agent.process.pid
        place.put_version("9.9.9")
        assert of_version(agent, "9.9.9")["pid"] == agent.process.pid
        assert len(vault.hits(session.word)) == 2
        assert agent.end()[0] == 0
        words = [line for _, text in heard() for line in text.splitlines() if line.isupper() or "=1" in line]
    said = [word for word in words if word.startswith(("READY", "RELOADING", "STOPPING"))]
    assert said == ["READY=1", "RELOADING=1", "READY=1", "STOPPING=1"]


@pytest.mark.slow
def test_what_is_half_installed_never_ends_the_agent_and_it_goes_on_when_it_is_whole(
    vault: Vault, tmp_path: Path
) -> None:
    place = Place(tmp_path / "site")
    with running(vault, place) as agent:
        of_version(agent, __version__)
        (place.package / "app/scheduler.py").rename(tmp_path / "rounds.py")
        place.put_version("2.0.0")
        told = until(lambda: status(vault)["trouble"], "told")
        assert told.startswith("what is installed as signet-sync does not start (") and "scheduler" in told
        assert "Traceback" not in told and status(vault)["pid"] == agent.process.pid
        known(vault, Session().write(vault))
        (tmp_path / "rounds.py").rename(place.package / "app/scheduler.py")
        assert of_version(agent, "2.0.0")["pid"] == agent.process.pid
        place.put_version("1.0.0")
        of_version(agent, "1.0.0")
        assert agent.end()[0] == 0
    assert agent.output().count("does not start") == 1


@pytest.mark.slow
def test_a_newer_command_beside_an_older_agent_loses_nothing_and_the_agent_follows(
    vault: Vault, tmp_path: Path
) -> None:
    place, sessions = Place(tmp_path / "site"), some(vault, 3)
    said = ["The lamp of the lantern is lit at dusk.", "The lamp is put out at dawn."]
    vault.call("remember", said[0])
    newer = ["--workspace", str(vault.root)]
    with running(vault, place) as agent:
        of_version(agent, __version__)
        place.newer_schema()
        place.put_version("2.0.0")
        answer = spawn(*newer, "remember", said[1], environ=place.environ, cwd=place.folder)
        assert answer.code == 0, answer
        of_version(agent, "2.0.0")
        fresh = Session().write(vault)
        until(lambda: fresh.sentence in vault.page(), "the newer one writes the page")
        page = vault.page()
        assert "at dusk" in page and "at dawn" in page and all(session.sentence in page for session in sessions)
        older = vault.call("reindex")
        assert older.code == 3 and "upgrade signet-sync" in older.err
        # Back again, by force: the older program cannot read what the newer one has written, and says so.
        place.put("storage/database/tables.py", (f"\nVERSION = {VERSION + 1}\n", f"\nVERSION = {VERSION}\n"))
        place.put_version("1.0.0")
        told = until(lambda: status_of(newer, place)["trouble"], "told")
        assert "schema" in told or "cannot read the database" in told
        assert agent.process.poll() is None
        place.put("storage/database/tables.py", (f"\nVERSION = {VERSION}\n", f"\nVERSION = {VERSION + 1}\n"))
        place.put_version("3.0.0")
        until(lambda: (found := status_of(newer, place))["version"] == "3.0.0" and not found["trouble"], "again")
        assert agent.end()[0] == 0
    answer = spawn(*newer, "recall", "--json", "lamp", environ=place.environ, cwd=place.folder)
    assert answer.code == 0, answer
    assert sorted(hit["text"] for hit in answer.json["hits"] if hit["tier"] == "memory") == sorted(said)
    assert not list(vault.state.glob("*.corrupt-*"))


def status_of(words: list[str], place: Place) -> dict[str, Any]:
    answer = spawn(*words, "status", "--json", environ=place.environ, cwd=place.folder)
    assert answer.code == 0, answer
    return dict(answer.json)


@pytest.mark.slow
def test_told_to_stop_or_to_reload_while_it_makes_way_it_does_so(vault: Vault, tmp_path: Path) -> None:
    place = Place(tmp_path / "site")
    for number, (name, wait) in enumerate((name, wait) for name in ("TERM", "HUP") for wait in (0.0, 0.1, 0.3, 0.6)):
        with running(vault, place) as agent:
            of_version(agent, f"{number}.0.0" if number else __version__)
            place.put_version(f"{number + 1}.0.0")
            until(lambda: "makes way" in agent.output(), "it makes way")
            time.sleep(wait)
            agent.send(signal.Signals[f"SIG{name}"])
            if name == "TERM":
                assert agent.process.wait(20) in (0, -signal.SIGTERM)
            else:
                of_version(agent, f"{number + 1}.0.0")
                assert agent.end()[0] == 0


# ── what it is made of ──


IMPORT = re.compile(r"^( *)from (signet_sync[\w.]*) import (\([^)]*\)|.*)$", re.MULTILINE)
OF_TYPES = re.compile(r"^( *)if TYPE_CHECKING:\n(?:\1 +.*\n|\n)+", re.MULTILINE)
# Asked for by commands and by processes beside the agent, each of which is of one version from its start.
OF_PROCESSES: set[str] = set()


def test_an_agent_loads_all_of_its_version_while_that_is_the_one_on_the_disk() -> None:
    """What is imported inside of functions that the agent may call is loaded at its first quiet moment."""
    loaded: set[str] = set()
    late: dict[str, str] = {}
    waiting = ["signet_sync.app.daemon", "signet_sync.app.upgrade"]
    waiting += [name for name in upgrade._LOADED_LATE if name.startswith("signet_sync.")]
    while waiting:
        module = waiting.pop()
        if module not in loaded and (source := source_of(module)):
            loaded.add(module)
            for indent, package, names in IMPORT.findall(OF_TYPES.sub("", source)):
                targets = [package, *(f"{package}.{name}" for name in re.findall(r"\w+", names))]
                if indent:
                    late.update({target: module for target in targets if source_of(target)})
                else:
                    waiting += targets
    assert {target: module for target, module in late.items() if target not in loaded | OF_PROCESSES} == {}


def source_of(module: str) -> str:
    """A module's text; empty for a package's, and for what is no module."""
    try:
        return (ROOT / module.replace(".", "/")).with_suffix(".py").read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""
