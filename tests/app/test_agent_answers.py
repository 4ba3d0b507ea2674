"""The agent answers hooks: as they would themselves, or not at all; nothing is given twice or lost."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from artifacts_fixture import PROJECT
from workbench import Vault, cast

from signet_sync.app import answers, ask
from signet_sync.app.answers import Answers
from signet_sync.capture import injections, spool
from signet_sync.storage import state_dir

QUESTION = "Why does the retry loop give up so soon?"


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], Vault]:
    def make(vault: Vault) -> None:
        body = "# One\n\n## Decisions\n\n- The retry loop gives up after five tries.\n"
        vault.session(1, body=body, memory_sentence="A dead broker no longer blocks the start of a worker.")
        vault.reindex()

    return cast(tmp_path_factory.mktemp("cast"), make)


@pytest.fixture
def vault(tmp_path: Path, copied: Callable[[Path], Vault], monkeypatch: pytest.MonkeyPatch) -> Vault:
    vault = copied(tmp_path)
    state_dir.write_heartbeat(state_dir.locate(str(vault.root)), {"state": "watching"})  # no worker is started
    monkeypatch.setattr(ask, "DEADLINE", 20.0)  # a busy machine is no reason to do without
    return vault


@pytest.fixture
def agent(vault: Vault) -> Iterator[Answers]:
    made = Answers(str(vault.root), state_dir.locate(str(vault.root)))
    assert made.listen()
    yield made
    made.stop()


def payload(event: str, session: str = "s-1", **more: Any) -> bytes:
    document = {"session_id": session, "transcript_path": "/nowhere/s.jsonl", "cwd": PROJECT, "hook_event_name": event}
    return json.dumps(document | more).encode()


def asked(vault: Vault, data: bytes, harness: str = "claude-code") -> int | None:
    """The exit code that the agent gives; None where the hook has to do without it. What it prints is not kept."""
    return ask.ask(["--workspace", str(vault.root), "hook", harness], data)


STARTS = [payload("SessionStart", source="startup"), payload("UserPromptSubmit", prompt=QUESTION), payload("Stop")]


@pytest.mark.parametrize("harness", ["claude-code", "codex", "opencode", "gemini"])
@pytest.mark.parametrize("event", STARTS, ids=["start", "prompt", "stop"])
def test_the_answer_is_that_of_a_hook_without_an_agent(
    vault: Vault, monkeypatch: pytest.MonkeyPatch, harness: str, event: bytes
) -> None:
    alone = vault.hook(harness, "--strict", given=event)
    injections.clear(state_dir.locate(str(vault.root)))
    made = Answers(str(vault.root), state_dir.locate(str(vault.root)))
    assert made.listen()
    try:
        with monkeypatch.context() as patch:
            patch.setattr("signet_sync.capture.hook.main", lambda *_: pytest.fail("the agent does not answer"))
            answered = vault.hook(harness, "--strict", given=event)
    finally:
        made.stop()
    assert answered == alone
    assert [job.session_id for job in spool.jobs(state_dir.locate(str(vault.root)).spool)] or b"rompt" not in event


def test_what_a_session_got_is_recorded_when_it_says_so(vault: Vault, agent: Answers) -> None:
    folder = state_dir.locate(str(vault.root))
    head = {"version": answers.__version__, "arguments": ["hook", "claude-code"], "environ": {}, "size": len(STARTS[1])}
    head["environ"] = {name: os.environ[name] for name in ask.VARIABLES if name in os.environ}
    with socket.socket(socket.AF_UNIX) as hook, ask.address(ask.socket_of(folder)) as at:
        hook.connect(at)
        hook.sendall(json.dumps(head).encode() + b"\n" + STARTS[1])
        assert b"retry loop" in hook.recv(1 << 16)
    agent.stop()
    assert injections.read(folder, "default", "s-1") is None, "a hook that had gone gets it again"


@pytest.mark.parametrize("trouble", ["none", "stale", "another version", "another user", "our settings"])
def test_a_hook_does_without_an_agent_that_cannot_answer(
    vault: Vault, monkeypatch: pytest.MonkeyPatch, trouble: str
) -> None:
    folder = state_dir.locate(str(vault.root))
    made = Answers(str(vault.root), folder)
    if trouble == "stale":
        with socket.socket(socket.AF_UNIX) as left, ask.address(ask.socket_of(folder)) as at:
            left.bind(at)
    elif trouble != "none":
        assert made.listen()
    if trouble == "another version":
        monkeypatch.setattr(ask, "__version__", "0.0.1")
    if trouble == "another user":
        monkeypatch.setattr(answers, "_uid_of", lambda _: os.geteuid() + 1)
    if trouble == "our settings":
        monkeypatch.setenv("SIGNET_CONTEXT_BUDGET_TOKENS", "100")
    try:
        assert asked(vault, STARTS[0]) is None
        assert "retry loop" in vault.hook("claude-code", "--strict", given=STARTS[0]).out
    finally:
        made.stop()


def test_an_agent_takes_the_place_of_one_that_was_killed(vault: Vault) -> None:
    folder = state_dir.locate(str(vault.root))
    with socket.socket(socket.AF_UNIX) as left, ask.address(ask.socket_of(folder)) as at:
        left.bind(at)
    made = Answers(str(vault.root), folder)
    assert made.listen() and asked(vault, STARTS[2]) == 0
    made.stop()
    assert not os.path.lexists(ask.socket_of(folder))


def test_many_at_once_get_the_same_or_do_it_themselves(vault: Vault, agent: Answers) -> None:
    codes: list[int | None] = []

    def ask_once(number: int) -> None:
        codes.append(asked(vault, payload("UserPromptSubmit", f"s-{number}", prompt="Go on")))

    hooks = [threading.Thread(target=ask_once, args=(number,)) for number in range(60)]
    for hook in hooks:
        hook.start()
    for hook in hooks:
        hook.join()
    assert set(codes) <= {0, None} and codes.count(0) > 0
    jobs = {job.session_id for job in spool.jobs(state_dir.locate(str(vault.root)).spool)}
    assert len(jobs) >= codes.count(0)


_HANGS = """
import os, sys, time
from signet_sync.app.answers import Answers
from signet_sync.storage import state_dir
made = Answers(sys.argv[1], state_dir.locate(sys.argv[1]))
assert made.listen()
print("listens", flush=True)
time.sleep(600)
"""


def test_an_agent_that_hangs_costs_a_hook_its_deadline_only(vault: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ask, "DEADLINE", 0.15)
    line = [sys.executable, "-c", _HANGS, str(vault.root)]
    with subprocess.Popen(line, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None and other.stdout.readline() == b"listens\n"
        os.kill(other.pid, signal.SIGSTOP)
        try:
            assert asked(vault, STARTS[0]) is None
            assert "retry loop" in vault.hook("claude-code", "--strict", given=STARTS[0]).out
        finally:
            os.kill(other.pid, signal.SIGKILL)
