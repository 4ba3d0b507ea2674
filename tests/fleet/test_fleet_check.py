"""`fleet check`: what `check` says of every workspace, added up; each ends in exactly one state.

The tests of Ray are slow and need it: `pip install ray`.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from agents import until
from workbench import NOW, ROOT, Answer, Vault, call, spawn_ordinary, tree

from signet_sync.fleet import check as fleet_check
from signet_sync.formats.timestamps import parse_instant
from signet_sync.integrity import check as integrity_check

NOW_US = parse_instant(NOW) or 0
LOCAL = ("--engine", "local", "--workers", "2")
RAY = ("--engine", "ray", "--workers", "2")
BOTH = [LOCAL, pytest.param(RAY, marks=pytest.mark.slow)]
linux = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")


@pytest.fixture(autouse=True)
def importable(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers find the package; what is slow here needs Ray, which reads its environment when it is imported."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    if request.node.get_closest_marker("slow") and importlib.util.find_spec("ray") is None:
        pytest.skip("needs Ray")


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    """A good workspace and one that is damaged in many ways."""
    good, bad = Vault(tmp_path / "fleet/ada"), Vault(tmp_path / "fleet/ben o'neil")
    good.session(1)
    for number in (1, 2):
        paths = bad.session(number)
    (bad / paths["summary"]).write_bytes(b"\0\xff" * 3_000)
    (bad / paths["transcript"]).write_bytes((bad / paths["transcript"]).read_bytes() + b"more\n")
    bad.put(("notes.txt", b"of a person\n"))
    os.mkfifo(bad / "memory/2026-03-28T10-01-00.000Z--aaaaaaaaaaaaaaaa--summary.md")
    (bad / "memory/2026-03-28T10-02-00.000Z--aaaaaaaaaaaaaaaa--summary.md").symlink_to("/etc/passwd")
    (bad / "signet-sync.toml").write_text("[\n")
    (bad / "agents/scout").mkdir(parents=True)
    (bad / "agents/scout/MEMORY.md").write_bytes(b"\xff")
    return tmp_path / "fleet"


def check(*words: str | Path, engine: tuple[str, ...] = LOCAL) -> Answer:
    return call("fleet", "check", *words, *engine, "--now", NOW)


@pytest.mark.parametrize("engine", BOTH)
def test_it_says_what_check_says(fleet: Path, engine: tuple[str, ...]) -> None:
    before = tree(fleet)
    answer = check(f"{fleet}/*", "--json", engine=engine)
    assert answer.code == 1 and answer.err == ""
    expected: list[Any] = []
    counts = Counter[str]()
    for name in sorted(fleet.iterdir()):
        document = call("--workspace", name, "check", "--json", "--now", NOW).json
        expected += [{"workspace": str(name), **problem} for problem in document["problems"]]
        counts.update(document["counts"])
    assert answer.json == {"workspaces": 2, "counts": dict(counts), "problems": expected, "unreachable": []}
    assert {"invalid", "ignored"} <= {problem["verdict"] for problem in expected}
    assert tree(fleet) == before
    assert check(fleet / "ada", engine=engine).code == 0


def test_a_remedy_can_be_pasted(fleet: Path) -> None:
    bad = Vault(fleet / "ben o'neil")
    bad.reindex()
    (bad / next(iter(bad.session(1).values()))).unlink()
    answer = check(bad.root)
    assert "signet-sync " not in answer.out.replace(f"signet-sync --workspace '{fleet}/ben o'\"'\"'neil' ", "")


def test_what_cannot_be_read_is_one_of_them(fleet: Path) -> None:
    denied = Vault(fleet / "denied")
    denied.session(3)
    (fleet / "file").write_text("")
    denied.root.chmod(0)
    try:
        answer = spawn_ordinary("fleet", "check", f"{fleet}/ada", f"{fleet}/denied", f"{fleet}/file", *LOCAL, "--json")
    finally:
        denied.root.chmod(0o700)
    assert answer.code == 1
    assert answer.json["workspaces"] == 3 and answer.json["counts"]["indexed"] == 3
    found = {os.path.basename(one["workspace"]): one["message"] for one in answer.json["unreachable"]}
    assert found.keys() == {"denied", "file"} and "cannot be read" in found["denied"], found


def test_a_folder_without_artifacts_is_pointed_out(fleet: Path) -> None:
    """Which may be the one above the workspaces."""
    answer = check(fleet)
    assert answer.code == 0 and "there is no artifact in memory/ of any" in answer.err


@pytest.mark.parametrize(
    "words", [["{fleet}/none*"], ["@{fleet}/none"], ["{fleet}/ada", "--engine", "local", "--address", "auto"], []]
)
def test_faulty_calls(fleet: Path, words: list[str]) -> None:
    answer = call("fleet", "check", *(word.format(fleet=fleet) for word in words), "--json")
    assert answer.code == 2 and answer.json["error"]["hint"]


def test_a_worker_has_no_workers_of_its_own(fleet: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[int | None] = []
    make = integrity_check.Workers
    monkeypatch.setattr(integrity_check, "Workers", lambda count: given.append(count) or make(count))
    fleet_check.inspect((str(fleet / "ada"), NOW_US))
    assert given == [0]


# ── interrupted ──


@pytest.fixture
def silent() -> Iterator[tuple[str, threading.Event]]:
    """The URL of a place whose server takes a call and does not answer; and whether it was called."""
    called = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            called.set()
            over.wait()
            connection.close()

        over = threading.Event()
        serving = threading.Thread(target=serve, daemon=True)
        serving.start()
        yield f"ftp://127.0.0.1:{server.getsockname()[1]}/silent", called
        over.set()


def in_session(session: int) -> list[int]:
    """The processes of a session that are there."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(words[3]) == session and words[0] != "Z":
            found.append(int(process.name))
    return found


@linux
@pytest.mark.parametrize(
    ("engine", "number"),
    [
        (LOCAL, signal.SIGINT),
        (LOCAL, signal.SIGKILL),
        pytest.param(RAY, signal.SIGINT, marks=pytest.mark.slow),
        pytest.param(RAY, signal.SIGTERM, marks=pytest.mark.slow),
        pytest.param(RAY, signal.SIGKILL, marks=pytest.mark.slow),
    ],
)
def test_the_command_is_ended(
    fleet: Path, silent: tuple[str, threading.Event], engine: tuple[str, ...], number: signal.Signals
) -> None:
    url, called = silent
    command = [sys.executable, "-m", "signet_sync", "fleet", "check", f"{fleet}/*", url, *engine, "--now", NOW]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True, text=True
    ) as process:
        assert called.wait(300)
        if number is signal.SIGINT:
            os.killpg(process.pid, number)  # as a terminal does
        else:
            process.send_signal(number)
        out, err = process.communicate(timeout=300)
        assert out == ""
        if number is not signal.SIGKILL:
            assert (process.returncode, err.strip()) == (130, "signet-sync: interrupted")
    # Two agents of Ray, which do no work, look after a minute.
    until(lambda: not in_session(process.pid), "its processes end", 600)
    for folder in Path("/tmp").glob(f"signet-sync-{process.pid}-*"):
        assert number is signal.SIGKILL
        shutil.rmtree(folder)
    again = check(f"{fleet}/*", "--json")
    assert again.code == 1 and again.json["workspaces"] == 2 and again.json["counts"]["indexed"] == 7
