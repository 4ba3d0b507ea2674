"""Worker processes: what they answer, how they end, and that a pass with them gives what it gives without."""

from __future__ import annotations

import concurrent.futures.process
import multiprocessing.spawn
import os
import shutil
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import artifacts_fixture as made
import pytest
import worker_functions as given
from workbench import NOW, ROOT, Vault, numbered

from signet_sync.app.workspace import opened
from signet_sync.errors import Interrupted
from signet_sync.formats.snapshot import Found
from signet_sync.formats.timestamps import parse_instant
from signet_sync.settings.model import Settings
from signet_sync.storage.database.tables import full_text
from signet_sync.sync import engine, indexing, reading, workers
from signet_sync.sync.workers import Workers
from signet_sync.sync.workspace import Outcome, Request

TESTS = str(Path(__file__).parent)
NOW_US = parse_instant(NOW) or 0
# Tables that tell of pages as they stand on this disk.
OF_THE_MACHINE = ("pages", "memory_md_heads")
linux = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")


def quiet() -> None:
    """A sign of life that nobody waits for."""


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers find the package and the functions of tests."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(ROOT), TESTS)))


@pytest.fixture
def two() -> Iterator[Workers]:
    with Workers(2) as found:
        yield found


def asked(pool: Workers, function: Callable[[int], Any], count: int = 100) -> dict[int, Any]:
    """What workers answer to numbers from 0 on."""
    return dict(pool.give(function, ((number, number) for number in range(count))).answers(quiet))


def children() -> set[int]:
    """Processes that this one has started and not forgotten, but for one that `multiprocessing` keeps for itself."""
    found: set[int] = set()
    for thread in Path("/proc/self/task").iterdir():
        with suppress(OSError):  # it ends while they are listed
            found.update(map(int, (thread / "children").read_text().split()))
    for pid in sorted(found):
        with suppress(OSError):
            if b"resource_tracker" in Path(f"/proc/{pid}/cmdline").read_bytes():
                found.remove(pid)
    return found


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def until(true: Callable[[], bool], seconds: float = 300.0) -> bool:
    end = time.monotonic() + seconds
    while not (found := true()) and time.monotonic() < end:
        time.sleep(0.02)
    return found


# ── answers ──


def test_what_a_function_gives_nothing_for_fails_at_or_prints(two: Workers, capfd: Any) -> None:
    """It is left to the caller, and what is printed gets into no answer and reaches nobody."""
    assert asked(two, given.odd) == {number: number for number in range(1, 100, 2) if number % 10 != 3}
    assert [place.partition(" at ")[2].partition(":")[0] for place in two.failures] == ["worker_functions.py"]
    assert asked(two, given.loud) == {number: number for number in range(100)}
    assert capfd.readouterr() == ("", "")


# ── deaths ──


def test_what_is_left_when_a_worker_dies_is_left_to_the_caller(two: Workers) -> None:
    answers = asked(two, given.killed, 400)
    assert 7 not in answers and all(answers[number] == number for number in answers)
    assert not two and two.failures == {"it died"} and asked(two, given.doubled) == {}


def test_where_no_worker_can_be_started_everything_is_left_to_the_caller(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def refuse() -> None:
        raise NotImplementedError

    for broken in (str(tmp_path / "no-python"), "/bin/false"):
        monkeypatch.setattr(multiprocessing.spawn, "_python_exe", os.fsencode(broken))
        with Workers(2) as pool:
            assert asked(pool, given.doubled) == {} and not pool
    monkeypatch.setattr(concurrent.futures.process, "_check_system_limits", refuse)  # a system without semaphores
    with Workers(2) as pool:
        assert asked(pool, given.doubled) == {}
        assert pool.failures == {"none can be started: NotImplementedError"}


def test_a_function_that_cannot_be_imported_is_nobodys_death(monkeypatch: pytest.MonkeyPatch) -> None:
    with Workers(2) as pool:
        monkeypatch.setattr(given.doubled, "__qualname__", "nothing_of_that_name")
        monkeypatch.setattr(given.doubled, "__name__", "nothing_of_that_name")
        monkeypatch.setattr(given, "nothing_of_that_name", given.doubled, raising=False)
        assert asked(pool, given.doubled) == {} and pool.failures and pool


# ── nothing of ours reaches them, and nothing of them is left ──


@linux
def test_a_worker_has_nothing_of_ours_open_and_is_in_no_folder_of_a_workspace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pickle.py").write_text("raise SystemExit('it was run')")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(ROOT), TESTS)))
    with (tmp_path / "held").open("w") as held, Workers(2) as pool:
        os.set_inheritable(held.fileno(), True)
        found = asked(pool, given.surroundings, 1)[0]
    assert all(place.startswith("pipe:") or place == "/dev/null" for place in found["open"].values()), found["open"]
    assert found["folder"] == "/"
    assert not {"", ".", str(tmp_path)}.intersection(found["path"])


@linux
def test_the_end_of_the_block_leaves_no_process_behind(two: Workers) -> None:
    before = children()
    with pytest.raises(Interrupted), Workers(2) as pool:
        pids = set(asked(pool, given.whoami).values())
        pool.give(given.last_breath, ((number, number) for number in range(500)))
        assert until(lambda: len(children() - before) == 2) and pids <= children()
        raise Interrupted("the pass was asked to stop")
    assert children() == before


_KILLED = """
    import os, sys, worker_functions
    from signet_sync.sync.workers import Workers
    with Workers(2) as pool:
        numbers = pool.give(worker_functions.whoami, ((number, number) for number in range(200)))
        pids = set(dict(numbers.answers(lambda: None)).values())
        working = pool.give(worker_functions.doubled, ((number, number) for number in range(200)))
        print(*pids, flush=True)
        sys.stdin.read()
"""


@linux
def test_workers_whose_pass_was_killed_end_by_themselves() -> None:
    command = [sys.executable, "-c", textwrap.dedent(_KILLED)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        pids = list(map(int, parent.stdout.readline().split()))
        assert pids and all(map(alive, pids))
        parent.kill()
        assert until(lambda: not any(map(alive, pids)))


# ── a pass ──


@pytest.fixture
def vault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Vault:
    """Sessions of every verdict, of which three files are many."""
    for module in (reading, indexing, engine):
        monkeypatch.setattr(module, "BULK_FROM", 3)
    for module in (reading, indexing):
        monkeypatch.setattr(module, "WORKERS_FROM", 3)
    monkeypatch.setattr(engine, "DERIVERS_FROM", 3)
    monkeypatch.setattr(reading, "BATCH", 7)
    found = Vault(tmp_path / "vault")
    for number in range(1, 10):
        found.session(number)
    who = {k: v for k, v in numbered(2).items() if k != "body"}
    found.put(made.compaction(**who, body="# Compacted\n\n## Decisions\n\n- lantern keeps its queue.\n"))
    broken = found / found.session(16)["transcript"]
    broken.write_bytes(broken.read_bytes().replace(b"Lantern", b"Lamp"))
    missing = found / found.session(17)["summary"]
    missing.write_bytes(b"no frontmatter")
    (found.memory / "notes.md").write_text("mine")
    removed = {k: v for k, v in numbered(18).items() if k != "captured_at"}
    found.put(made.tombstone(session_id=removed["session_id"]), "memory/tombstones")
    return found


def with_workers(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    monkeypatch.setattr(workers, "useful", lambda: count)


def passed(vault: Vault, **asked: Any) -> Outcome:
    with opened(str(vault.root), Settings()) as workspace:
        return engine.run_pass(workspace, Request(now_us=NOW_US, **asked))


def everything(vault: Vault) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of every table, but for those of the machine."""
    with vault.database() as database:
        tables = [name for (name,) in database.execute("select name from pragma_table_list where schema = 'main'")]
        return {
            name: sorted(database.execute(f'select * from "{name}"'), key=repr)
            for name in sorted(tables)
            if not name.startswith("sqlite_") and name not in OF_THE_MACHINE and name not in full_text()
        }


def known(outcome: Outcome) -> dict[str, Any]:
    told = dict(vars(outcome))
    for machine in ("elapsed_ms", "seen", "pages"):
        del told[machine]
    told["change"] = {name: getattr(outcome.change, name) for name in outcome.change.__slots__}
    return told


def lost(vault: Vault) -> None:
    for suffix in ("", "-wal", "-shm"):
        Path(f"{vault.db}{suffix}").unlink(missing_ok=True)
    (vault / "MEMORY.md").unlink(missing_ok=True)
    shutil.rmtree(vault / "ledger", ignore_errors=True)


def test_a_pass_gives_the_same_with_workers_and_without(vault: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    asked_of_workers: list[int] = []
    really = Workers.give

    def give(self: Workers, *arguments: Any) -> Any:
        found = really(self, *arguments)
        asked_of_workers.append(len(found.pieces))
        return found

    monkeypatch.setattr(Workers, "give", give)
    found: dict[int, list[Any]] = {0: [], 2: []}
    changed = vault / made.path_for("summary", **{k: numbered(3)[k] for k in ("session_id", "captured_at")})
    passed(vault)  # rewrites manifests
    for rebuild in (False, True):
        for count, seen in found.items():
            with_workers(monkeypatch, count)
            if not rebuild:
                lost(vault)
            asked_of_workers.clear()
            seen += [known(passed(vault, rebuild=rebuild)), everything(vault)]
            assert seen[-2]["read"] == 34 and (sum(asked_of_workers) > 0) == bool(count)
        # Everything is sealed by now.
        changed.write_bytes(changed.read_bytes().replace(b"keeps", b"loses"))
    for without, beside in zip(found[0], found[2], strict=True):
        assert without == beside


def hooked(folder: Path, code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Has workers run some code when they start."""
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(code)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(folder), str(ROOT), TESTS)))


def test_without_the_memory_for_one_file_the_others_are_indexed(vault: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    path = made.path_for("summary", **{k: numbered(4)[k] for k in ("session_id", "captured_at")})
    really = reading.planner.judge

    def judge(asked: str, found: Any, judging: Any) -> Any:
        if asked == path and isinstance(found, Found):
            raise MemoryError
        return really(asked, found, judging)

    with_workers(monkeypatch, 0)
    with monkeypatch.context() as patch:
        patch.setattr(reading.planner, "judge", judge)
        assert passed(vault).read == 34
    assert vault.rows("select verdict, code from files where path = ?", path) == [("invalid", "unreadable")]
    assert passed(vault).read == 1 and vault.rows("select verdict from files where path = ?", path) == [("indexed",)]


@linux
def test_an_interrupted_pass_leaves_no_worker_behind(vault: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    with_workers(monkeypatch, 2)
    before = children()
    seen: list[int] = []

    def should_stop() -> bool:
        seen.append(len(children() - before))
        return len(seen) > 3

    with pytest.raises(Interrupted):
        passed(vault, should_stop=should_stop)
    assert max(seen) == 2 and children() == before
    assert passed(vault).read == 34


_FAILING = """
import sys
if "--multiprocessing-fork" in sys.orig_argv:
    import signet_sync.sync.planner as desk
    def judge(*_): raise ValueError("a slip of ours")
    desk.judge = judge
"""


def test_what_fails_in_workers_is_done_by_the_pass_and_its_own_error_names_the_file(
    vault: Vault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> None:
    with_workers(monkeypatch, 2)
    hooked(tmp_path / "hook", _FAILING, monkeypatch)
    assert passed(vault).read == 34
    trouble = vault.reindex("--full")["trouble"]
    assert [line.partition(" (")[0] for line in trouble] == ["a worker failed"], "and is not kept quiet"
    path = made.path_for("summary", **{k: numbered(3)[k] for k in ("session_id", "captured_at")})
    really = reading.planner.judge

    def judge(given: str, *arguments: Any) -> Any:
        if given == path:
            raise ValueError("a slip of ours")
        return really(given, *arguments)

    monkeypatch.setattr(reading.planner, "judge", judge)
    answer = vault.call("reindex", "--full", "--json", "--now", NOW)
    assert answer.json["error"]["path"] == path and "a slip of ours" in answer.json["error"]["message"]
    assert capfd.readouterr() == ("", "")
