"""The faces of `status`: Prometheus' text format held to its rules, and `--watch` on a terminal and in a pipe."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import agents
import pytest
from agents import Session, ago, until
from workbench import ROOT, Answer, Vault, call, tree

from signet_sync.admin import status_line
from signet_sync.capture import spool
from signet_sync.capture.spool import Job
from signet_sync.cli import status_watch
from signet_sync.cli.formats.status import prometheus, summary
from signet_sync.storage import state_dir

vault = agents.vault
HELD = "signet_sync_"


@pytest.fixture
def indexed(vault: Vault) -> Vault:
    Session().write(vault)
    vault.reindex()
    return vault


def document(vault: Vault) -> dict[str, Any]:
    return dict(vault.call("status", "--json").json)


# ── Prometheus ──

_SAMPLE = re.compile(r'([a-zA-Z_:][a-zA-Z0-9_:]*)\{((?:[a-z_]+="(?:[^"\\\n]|\\[\\n"])*",?)*)\} (\S+)')
_LABEL = re.compile(r'([a-z_]+)="((?:[^"\\]|\\.)*)"')
_UNESCAPED = {"\\\\": "\\", "\\n": "\n", '\\"': '"'}

Samples = dict[tuple[str, str], float]


def parsed(text: str) -> tuple[Samples, set[str]]:
    """The samples by name and part, and the workspaces named; the format's rules are held on the way.

    Rules: lines end in a newline; HELP and TYPE come once a metric, before its samples, which stand together; no sample
    comes twice; names, labels and escapes are of the grammar (source: Prometheus, *Exposition formats*).
    """
    assert text.endswith("\n") and "\r" not in text
    samples: Samples = {}
    workspaces = set()
    told: list[str] = []
    for line in text.splitlines():
        if line.startswith("#"):
            _, keyword, name, rest = line.split(" ", 3)
            if keyword == "HELP":
                assert name not in told and "\\" not in rest
                told.append(name)
            else:
                assert (keyword, name, rest) == ("TYPE", told[-1], "gauge")
            continue
        found = _SAMPLE.fullmatch(line)
        assert found, line
        assert found[1] == told[-1], "all samples of a metric stand together"
        labels = {name: re.sub(r"\\.", lambda m: _UNESCAPED[m[0]], value) for name, value in _LABEL.findall(found[2])}
        workspaces.add(labels.pop("workspace"))
        key = (found[1].removeprefix(HELD), labels.pop("part", ""))
        assert key not in samples and not labels
        samples[key] = float(found[3])
    assert all(name.startswith(HELD) for name in told)
    return samples, workspaces


def measured(vault: Vault) -> Samples:
    answer = vault.call("status", "--prometheus")
    assert (answer.code, answer.err) == (0, "")
    samples, workspaces = parsed(answer.out)
    assert workspaces == {str(vault.root)}
    return samples


def test_every_number_of_status_is_a_metric(indexed: Vault) -> None:
    folder = state_dir.locate(str(indexed.root))
    spool.put(folder.spool, Job(event="end", harness="codex", session_id="s-1", agent_id="default", at=ago()))
    path = next(path for path in indexed.memory.iterdir() if "summary" in path.name)
    path.write_bytes(path.read_bytes() + b"More.\n")
    indexed.reindex("--index-only")
    found = measured(indexed)
    wanted = {"artifacts": 3, "sessions": 1, "agents": 1, "tombstones": 0, "violations": 1, "invalid": 0}
    assert {name: found[name, ""] for name in wanted} | {"artifacts": 3} == wanted
    alive = ("agent_up", "agent_responding", "healthy", "halted", "degraded", "held")
    assert [found[name, ""] for name in alive] == [0] * 6
    assert (found["spool_waiting", ""], found["spool_given_up", ""]) == (1, 0)
    assert 0 <= found["lag_seconds", ""] < 600
    assert found["last_full_pass_timestamp_seconds", ""] == 1774785600, "2026-03-29T12:00:00Z"
    assert found["size_bytes", "database"] == indexed.db.stat().st_size
    assert found["rows", "seals"] == 2
    assert ("agent_silent_seconds", "") not in found


def test_an_agent_that_is_well_and_one_that_is_halted(indexed: Vault) -> None:
    folder = state_dir.locate(str(indexed.root))
    facts = {"since": ago(hours=1), "last_full_pass": ago(seconds=5), "interval": 300.0, "watch": "inotify"}
    with state_dir.run_lock(folder):
        state_dir.write_heartbeat(folder, {"state": "watching", **facts})
        found = measured(indexed)
        assert [found[name, ""] for name in ("agent_up", "agent_responding", "healthy", "halted")] == [1, 1, 1, 0]
        assert 0 <= found["agent_silent_seconds", ""] < 60
        state_dir.write_heartbeat(folder, {"state": "halted: cliff", **facts})
        found = measured(indexed)
        assert [found[name, ""] for name in ("agent_up", "healthy", "halted")] == [1, 0, 1]


def test_an_index_that_cannot_be_read_has_no_counts(indexed: Vault) -> None:
    indexed.db.write_bytes(b"hello\n" * 5000)
    found = measured(indexed)
    assert found["index_readable", ""] == 0
    assert not {name for name, _ in found} & {"artifacts", "violations", "invalid", "tombstones", "endings_refused"}
    assert {part for name, part in found if name == "size_bytes"} >= {"database", "logs"}
    assert not {part for _, part in found} & {"seals", "recall_events", "unused"}, "not zero: not known"
    assert ("spool_waiting", "") in found


def test_a_label_may_hold_anything(indexed: Vault) -> None:
    place = '/srv/a "b" \\n \\\\ {x="y"} # ü\n日本 \udcff'
    text = prometheus(document(indexed) | {"workspace": place}, healthy=False)
    _, workspaces = parsed(text.encode("utf-8").decode("utf-8"))
    assert workspaces == {place.replace("\udcff", "�")}


def test_answers_that_exclude_each_other_are_refused(vault: Vault) -> None:
    for words in (
        ["--watch", "--prometheus"], ["--watch", "--check"], ["--check", "--prometheus"], ["--json", "--prometheus"],
        ["--every", "2"], ["--watch", "--every", "0"],
    ):  # fmt: skip
        answer = vault.call("status", *words)
        assert answer.code == 2 and "--" in answer.err + answer.out, words


# ── --watch ──


class Stage:
    """What a watch looks at, one document after the other; it ends with the last one, as by Ctrl-C."""

    def __init__(self, *documents: dict[str, Any]) -> None:
        self._left = list(documents)

    def look(self) -> dict[str, Any]:
        if not self._left:
            raise KeyboardInterrupt
        return self._left.pop(0)


def changing(vault: Vault) -> list[dict[str, Any]]:
    """Nothing, then a second that goes by, then a violation, then a halt."""
    calm = document(vault)
    later = calm | {"silent_seconds": 3.0, "lag_seconds": 2.0}
    broken = calm | {"counts": calm["counts"] | {"violations": 1}}
    return [calm, later, broken, broken | {"state": "halted: cliff", "halt": "40 of 52 indexed files are gone"}]


def test_in_a_pipe_there_is_one_line_a_change(indexed: Vault, capfd: pytest.CaptureFixture[str]) -> None:
    assert status_watch.watch(Stage(*changing(indexed)).look, 0.01, as_json=False) == 0
    lines = capfd.readouterr().out.splitlines()
    assert [
        bool(re.match(r"\d{4}-\d\d-\d\dT[\d:.]+Z (stopped|halted: cliff) · 3 artifacts", line)) for line in lines
    ] == [True] * 3
    assert [("1 violation" in line, "halted" in line) for line in lines] == [
        (False, False),
        (True, False),
        (True, True),
    ]
    assert status_watch.watch(Stage(*changing(indexed)).look, 0.01, as_json=True) == 0
    found = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    assert [one["state"] for one in found] == ["stopped", "stopped", "halted: cliff"]
    assert found[0] == document(indexed)


def test_the_line_of_a_pipe_tells_of_all_that_needs_a_person(indexed: Vault) -> None:
    calm = document(indexed)
    worse = calm | {
        "responding": False,
        "trouble": "the disk is\nfull",
        "intake": calm["intake"] | {"waiting": 2, "given_up": 1},
    }
    line = summary(worse)
    for word in ("not responding", "2 jobs waiting", "1 job given up", "the disk is\\nfull"):
        assert word in line


Look = Callable[[], str]


@contextmanager
def on_terminal(vault: Vault, **environ: str) -> Iterator[tuple[subprocess.Popen[bytes], Look]]:
    """`status --watch` on a terminal of 80 columns, and what was drawn until now."""
    ours, theirs = pty.openpty()
    drawn = bytearray()

    def read() -> None:
        while True:
            try:
                drawn.extend(os.read(ours, 4096) or b"")
            except OSError:
                return

    command = [
        sys.executable,
        "-m",
        "signet_sync",
        "--workspace",
        str(vault.root),
        "status",
        "--watch",
        "--every",
        "0.1",
    ]
    given = {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm", **environ}
    with subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, env=given, start_new_session=True
    ) as process:
        os.close(theirs)
        thread = threading.Thread(target=read)
        thread.start()
        try:
            yield process, lambda: drawn.decode()
        finally:
            process.kill()
            process.wait()
            thread.join()
            os.close(ours)


@pytest.mark.slow
def test_on_a_terminal_it_is_drawn_in_place_and_ends_with_ctrl_c(indexed: Vault) -> None:
    with on_terminal(indexed, NO_COLOR="1") as (process, drawn):
        until(lambda: drawn().count("Ctrl-C ends") >= 2, "drawn twice")
        first, again = drawn().split("\x1b[?7h")[:2]
        assert "3 artifacts" in first and first.count("\n") == again.count("\n")
        assert f"\x1b[{again.count(chr(10))}F" in again, "over what was drawn before"
        assert not re.search(r"\x1b\[[\d;]*m", drawn()), "NO_COLOR"
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
        assert drawn().endswith("\x1b[?7h")
        assert "Traceback" not in drawn() and "interrupted" not in drawn()


def test_it_ends_when_nobody_reads_it_any_more(indexed: Vault) -> None:
    reader, writer = os.pipe()
    command = [sys.executable, "-m", "signet_sync", "--workspace", str(indexed.root), "status", "--watch"]
    process = subprocess.Popen(
        [*command, "--every", "3600"],
        stdout=writer,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    try:
        os.close(writer)
        assert b"3 artifacts" in os.read(reader, 4096)
        os.close(reader)
        assert process.wait(60) == 0
        assert process.stderr is not None and process.stderr.read() == b""
    finally:
        process.kill()
        process.wait()
        assert process.stderr is not None
        process.stderr.close()


def test_a_watch_keeps_nothing_open(indexed: Vault) -> None:
    stage = Stage(document(indexed))
    status_watch.watch(stage.look, 0.01, as_json=True)
    before = len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").exists() else 0
    for _ in range(3):
        document(indexed)
    assert not before or len(os.listdir("/proc/self/fd")) == before
    with indexed.database(readonly=False) as database:
        assert database.checkpoint(), "no reader is left that keeps the log from being emptied"


# ── one line ──


def test_a_line_says_what_is_there_and_nothing_of_sessions(vault: Vault) -> None:
    assert vault.call("status", "--line").out == "signet-sync: not running · no index\n"
    Session().write(vault)
    today, broken = Session(), Session()
    today.who["captured_at"] = ago(seconds=0)
    today.write(vault)
    broken.write(vault)
    assert vault.call("reindex").code == 0
    (vault / broken.path("transcript")).write_bytes(b"changed")
    vault.call("reindex")
    before = tree(vault.state)
    answer = vault.call("status", "--line")
    assert answer == Answer(0, "signet-sync: not running · 1 session today · 1 problem\n", "")
    assert tree(vault.state) == before


def test_a_line_knows_a_living_agent_by_its_heartbeat(indexed: Vault) -> None:
    folder = state_dir.locate(str(indexed.root))
    for given, told in (
        ({"state": "watching"}, "watching"),
        ({"state": "halted: cliff", "trouble": "no /secret/place"}, "halted · trouble"),
    ):
        state_dir.write_heartbeat(folder, given)
        assert indexed.call("status", "--line").out == f"signet-sync: {told} · 0 sessions today\n"
    os.utime(folder.heartbeat, (1, 1))
    assert "not responding" in indexed.call("status", "--line").out
    state_dir.write_heartbeat(folder, {"state": "watching", "boot": "another"})
    assert "not running" in indexed.call("status", "--line").out
    for event in ("end", "stop"):
        spool.put(folder.spool, Job(event=event, harness="codex", session_id="s-1", agent_id="default", at=ago()))
    assert indexed.call("status", "--line").out.endswith(" · 1 waiting\n")


def test_a_line_fails_quietly(vault: Vault, tmp_path: Path) -> None:
    for words in (["--workspace", str(tmp_path / "none")], ["--workspace", str(vault.root), "--db", str(tmp_path)]):
        answer = call(*words, "status", "--line")
        assert (answer.code, answer.err) == (0, "") and answer.out.startswith("signet-sync: ")
    vault.reindex()
    vault.db.write_bytes(b"no database" * 1000)
    assert vault.call("status", "--line") == Answer(0, "signet-sync: not running · index unreadable\n", "")
    vault.db.unlink()
    vault.reindex()
    with vault.database(readonly=False) as database:
        database.execute("drop table outbox")
    assert vault.call("status", "--line") == Answer(0, "signet-sync: not running · index unreadable\n", "")
    assert vault.call("status", "--line", "--json").code == 2


def test_a_line_is_the_same_without_click(indexed: Vault) -> None:
    words = ["--workspace", str(indexed.root), "status", "--line"]
    assert status_line.plain(words) == status_line.plain([*words[2:], *words[:2]]) == call(*words).out.rstrip("\n")
    for other in ([*words, "-v"], [*words, "--check"], ["--workspace", "status", "--line"], words[:3], ["--line"]):
        assert status_line.plain(other) is None
    said = indexed.spawn("status", "--line", input=b'{"hook_event_name": "Status"}')
    assert (said.code, said.out) == (0, call(*words).out)
