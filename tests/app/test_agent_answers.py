"""The agent answers hooks and operations: as they would themselves, or not at all; nothing is given twice or lost."""

from __future__ import annotations

import _socket
import errno
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from artifacts_fixture import PROJECT
from workbench import ROOT, Vault, cast, sampled

from signet_sync import __version__
from signet_sync.app import answers, ask, operations
from signet_sync.app.answers import Answers
from signet_sync.capture import injections, spool
from signet_sync.cli.main import Context
from signet_sync.errors import SignetSyncError
from signet_sync.pages import hook_context
from signet_sync.storage import state_dir
from signet_sync.text.token_estimate import estimate_tokens

QUESTION = "Why does the retry loop give up so soon?"


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], Vault]:
    def make(vault: Vault) -> None:
        body = "# One\n\n## Decisions\n\n- The retry loop gives up after five tries.\n"
        vault.session(1, body=body, memory_sentence="A dead broker no longer blocks the start of a worker.")
        vault.reindex()

    return cast(tmp_path_factory.mktemp("cast"), make)


@pytest.fixture
def vault(tmp_path: Path, copied: Callable[[Path], Vault], monkeypatch: pytest.MonkeyPatch) -> Iterator[Vault]:
    vault = copied(tmp_path)
    state_dir.write_heartbeat(state_dir.locate(str(vault.root)), {"state": "watching"})  # no worker is started
    monkeypatch.setattr(ask, "DEADLINE", 300.0)  # a busy machine is no reason to do without
    with ExitStack() as held:
        held.enter_context(state_dir.run_lock(state_dir.locate(str(vault.root))))  # as an agent does
        vault.leave = held.close
        yield vault


@contextmanager
def listening(vault: Vault) -> Iterator[Answers]:
    made = Answers(str(vault.root), state_dir.locate(str(vault.root)))
    assert made.listen()
    try:
        yield made
        assert all(made._slots.acquire(timeout=300) for _ in range(answers._AT_ONCE)), "none is taken for ever"
    finally:
        made.stop()


@pytest.fixture
def agent(vault: Vault) -> Iterator[Answers]:
    with listening(vault) as made:
        yield made


def payload(event: str, session: str = "s-1", **more: Any) -> bytes:
    document = {"session_id": session, "transcript_path": "/nowhere/s.jsonl", "cwd": PROJECT, "hook_event_name": event}
    return json.dumps(document | more).encode()


def asked(vault: Vault, data: bytes, harness: str = "claude-code") -> int | None:
    """The exit code that the agent gives; None where the hook has to do without it. What it prints is not kept."""
    return ask.ask(["--workspace", str(vault.root), "hook", harness], data)


STARTS = [payload("SessionStart", source="startup"), payload("UserPromptSubmit", prompt=QUESTION), payload("Stop")]


@pytest.mark.parametrize("harness", ["claude-code", "gemini"])
@pytest.mark.parametrize("event", STARTS, ids=["start", "prompt", "stop"])
def test_the_answer_is_that_of_a_hook_without_an_agent(
    vault: Vault, monkeypatch: pytest.MonkeyPatch, harness: str, event: bytes
) -> None:
    alone = vault.hook(harness, "--strict", given=event)
    shutil.rmtree(vault.state / "injected", ignore_errors=True)
    with listening(vault), monkeypatch.context() as patch:
        patch.setattr("signet_sync.capture.hook.GUARDS", None)  # what a hook that does it itself looks at first
        answered = vault.hook(harness, "--strict", given=event)
    assert answered == alone
    assert [job.session_id for job in spool.jobs(state_dir.locate(str(vault.root)).spool)] or b"rompt" not in event


STATED = """# Two

## Constraints

- src/loop.py is generated, change tools/loop.py instead.
- Never answer ERR_LOOP_BUSY with a restart.

## Tried

- "rtk run loop" is not a command here; "run loop" worked
"""
LOOP, GENERATED, BUSY = "is not a command here", "is generated", "with a restart"
CLAUDE = "claude-code"
PATCH = "*** Begin Patch\n*** Update File: README.md\n+a\n*** Update File: src/loop.py\n+b\n*** End Patch"
EXITED = "ERR_LOOP_BUSY\n<shellId: 1 completed with exit code {}>"
OUTPUT = "<untrusted_context>\nOutput: ERR_LOOP_BUSY\nExit Code: {}\n</untrusted_context>"
RUN = {"tool_input": {"command": "run"}}
# By harness, as each of them tells it.
MOMENTS: list[tuple[str, str, dict[str, Any], str]] = [
    (CLAUDE, "PreToolUse", {"tool_input": {"command": "cd /x && rtk run loop 2>&1 | tail -4"}}, LOOP),
    (CLAUDE, "PreToolUse", {"tool_input": {"command": "rtk run loops"}}, ""),
    (CLAUDE, "PreToolUse", {"tool_input": {"file_path": f"{PROJECT}/src/loop.py"}}, GENERATED),
    (CLAUDE, "PreToolUse", {"tool_input": {"file_path": f"{PROJECT}/src/other/loop.py"}}, ""),
    (CLAUDE, "PreToolUse", {"tool_input": {"pattern": "src/loop.py"}}, ""),
    (CLAUDE, "PreToolUse", {"tool_input": None}, ""),
    (CLAUDE, "PreToolUse", {"tool_input": {"file_path": f"{PROJECT}/src/loop.py"}, "agent_id": "a1"}, ""),
    (CLAUDE, "PreToolUse", {"tool_input": {"command": "rtk run loop"}, "cwd": "/home/ada/elsewhere"}, ""),
    (CLAUDE, "PostToolUseFailure", {"tool_input": {"command": "run"}, "error": "code 1: ERR_LOOP_BUSY"}, BUSY),
    (CLAUDE, "PostToolUseFailure", {"tool_input": {"command": "run"}, "error": "code 1: ERR_LOOP"}, ""),
    (CLAUDE, "PostToolUseFailure", {"tool_input": {"command": "rtk run loop"}, "error": "exit 127"}, LOOP),
    ("codex", "PreToolUse", {"tool_name": "apply_patch", "tool_input": {"command": PATCH}}, GENERATED),
    ("codex", "PreToolUse", {"tool_input": {"command": f"apply_patch <<'EOF'\n{PATCH}\nEOF"}}, GENERATED),
    ("copilot", "PostToolUse", {"tool_input": {"path": f"{PROJECT}/src/loop.py", "file_text": ""}}, GENERATED),
    ("copilot", "PostToolUse", RUN | {"tool_result": {"text_result_for_llm": EXITED.format(2)}}, BUSY),
    ("copilot", "PostToolUse", RUN | {"tool_result": {"text_result_for_llm": EXITED.format(0)}}, ""),
    ("gemini", "AfterTool", {"tool_input": {"command": "rtk run loop"}, "tool_response": {"llmContent": "x"}}, LOOP),
    ("gemini", "AfterTool", RUN | {"tool_response": {"llmContent": OUTPUT.format(2)}}, BUSY),
    ("gemini", "AfterTool", RUN | {"tool_response": {"llmContent": OUTPUT.format(0)}}, ""),
    ("qwen", "PostToolUse", {"tool_input": {"file_path": f"{PROJECT}/src/loop.py"}, "tool_response": {}}, GENERATED),
    ("qwen", "PostToolUseFailure", RUN | {"error": "ERR_LOOP_BUSY"}, BUSY),
    ("opencode", "PostToolUse", {"tool_input": {"file_path": "src/loop.py"}}, GENERATED),
    ("pi", "PostToolUse", RUN | {"error": "ERR_LOOP_BUSY"}, BUSY),
    ("pi", "PostToolUse", RUN | {"error": ""}, ""),
]  # fmt: skip


def test_before_a_tool_and_after_its_failure_the_agent_alone_says_what_names_exactly_that(
    vault: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    vault.session(2, body=STATED)
    vault.reindex()
    monkeypatch.setattr(ask, "MOMENT", 20.0)
    monkeypatch.setattr("signet_sync.pages.hook_context._LONGEST_MOMENT", 20.0)

    def said(harness: str, event: str, session: str, more: dict[str, Any]) -> str:
        answer = vault.hook(harness, "--strict", given=payload(event, session, **more))
        assert (answer.code, answer.err) == (0, "")
        if not answer.out.startswith("{"):
            return answer.out
        answered = json.loads(answer.out)
        return str(answered.get("hookSpecificOutput", answered).get("additionalContext", ""))

    assert not any(said(harness, event, "alone", more) for harness, event, more, _ in MOMENTS)
    with listening(vault):
        for number, (harness, event, more, words) in enumerate(MOMENTS):
            text = said(harness, event, f"s-{number}", more)
            assert bool(text) is bool(words) and words in text, more
            assert estimate_tokens(text) <= hook_context.MOMENT_BUDGET, more
            assert not said(harness, event, f"s-{number}", more), "once a session"
        (vault / "signet-sync.toml").write_text("[context]\nmoments = false\n")
        assert not any(said(harness, event, "off", more) for harness, event, more, _ in MOMENTS)
    assert not spool.jobs(state_dir.locate(str(vault.root)).spool)


# What is there in place of an agent of this version: what it answers, and whether it goes then.
INSTEAD: dict[str, tuple[bytes, bool]] = {
    "nobody": (b"", True), "a socket that is left": (b"", True), "hangs": (b"", False), "goes": (b"", True),
    "says nothing of ours": (b"no such version\n", True), "an answer of another shape": (b'{"text": "x"}\n', True),
    "begins and hangs": (ask.BEGUN, False), "is cut off": (b'{"code": 0, "out": "', False),
    "a disk hangs": (b"", False),
}  # fmt: skip
# As long as nothing else ends it, such a hook waits for ever, and a module that does the work is none.
_WAITS = """
import sys, threading
from signet_sync.app import ask
ask.DEADLINE = ask.LONGEST_OPERATION = 1e6
sys.modules["signet_sync.capture.hook"] = None
if sys.argv.pop(1) == "a disk hangs":
    ask.locations.locate = lambda *_: threading.Event().wait()
sys.exit(ask.run_hook(sys.argv[1:]))
"""


@pytest.mark.parametrize("what", sampled(INSTEAD, 2))
def test_a_tool_waits_for_no_agent_that_is_gone_hangs_or_is_another_and_for_no_disk(vault: Vault, what: str) -> None:
    event, (said, goes) = payload("PostToolUse", tool_input={"command": "rtk run loop"}), INSTEAD[what]
    assert ask.is_moment(event) and not ask.is_moment(payload("Stop", prompt='{"hook_event_name": "PreToolUse"}'))

    def answer(instead: socket.socket) -> None:
        with suppress(OSError), instead.accept()[0] as caller:
            caller.recv(1 << 16)
            caller.sendall(said)
            while not goes and caller.recv(1 << 16):
                pass

    with ExitStack() as held:
        if what != "nobody":
            instead = held.enter_context(socket.socket(socket.AF_UNIX))
            with ask.address(ask.socket_of(state_dir.locate(str(vault.root)))) as at:
                instead.bind(at)
            if what != "a socket that is left":
                instead.listen()
                threading.Thread(target=answer, args=(instead,), daemon=True).start()
        words = [sys.executable, "-c", _WAITS, what, "--workspace", str(vault.root), "hook", "claude-code", "--strict"]
        environ = {**os.environ, "PYTHONPATH": str(ROOT)}
        ran = subprocess.run(words, input=event, env=environ, capture_output=True, timeout=120, check=False)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, b"", b"")


def request(vault: Vault, mode: int, **more: Any) -> bytes:
    """What the agent answers to a prompt from whoever has its lock open in a mode; then the caller is gone."""
    folder = state_dir.locate(str(vault.root))
    data = payload("UserPromptSubmit", prompt=QUESTION)
    environ = {name: os.environ[name] for name in ask.VARIABLES if name in os.environ}
    head = {"version": __version__, "arguments": ["hook", "claude-code"], "environ": environ, "size": len(data)} | more
    with socket.socket(socket.AF_UNIX) as hook, ask.address(ask.socket_of(folder)) as at:
        hook.connect(at)
        proof = os.open(ask.proof_of(folder), mode)
        socket.send_fds(hook, [json.dumps(head).encode() + b"\n" + data], [proof])
        os.close(proof)
        return hook.recv(1 << 16)


def test_what_a_session_got_is_recorded_when_it_says_so(vault: Vault, agent: Answers) -> None:
    assert b"retry loop" in request(vault, os.O_WRONLY)
    agent.stop()
    folder = state_dir.locate(str(vault.root))
    assert injections.read(folder, "default", "s-1") is None, "a hook that had gone gets it again"


@pytest.mark.parametrize(
    ("mode", "more"),
    [
        (os.O_RDONLY, {}),  # a sandbox that may read only
        (os.O_WRONLY, {"version": "0.0.1"}),
        (os.O_WRONLY, {"environ": {"TZ": "Asia/Tokyo"}}),
        (os.O_WRONLY, {"environ": {"SIGNET_CONFIG": "/nowhere/config.toml"}}),
        (os.O_WRONLY, {"environ": []}),
        (os.O_WRONLY, {"operation": "__import__", "given": {"agent": "default"}}),
        (os.O_WRONLY, {"operation": "recall", "given": {"agent": "default", "place": "/"}}),
    ],
)
def test_nobody_reaches_what_they_could_not_do_themselves(
    vault: Vault, agent: Answers, mode: int, more: dict[str, Any]
) -> None:
    assert request(vault, mode, **more) in (b"", ask.BEGUN)
    assert not spool.jobs(state_dir.locate(str(vault.root)).spool)


# ── operations ──

TEXT = "Retries are logged with their cause"
NOTE = {"kind": "note", "private": True, "session": None, "project": "", "now_us": 1}
OPERATIONS: list[tuple[str, dict[str, Any]]] = [
    ("recall", {"query": QUESTION, "limit": 5, "now_us": 1_780_000_000_000_000, "counted": False}),
    ("recall", {"query": "retry", "limit": 5, "now_us": 0, "period": [0, 1], "project": "lantern", "shared": True}),
    ("recall", {"query": "retry", "limit": 5, "now_us": 0, "agent": "nobody"}),
    ("find_files", {"query": "retry loop", "limit": 5, "period": None, "project": None}),
    ("expand", {"handle": "{session}", "budget": 300, "counted": False}),
    ("expand", {"handle": "f-zzzzzz", "budget": 300}),
    ("open_session", {"session": "{session}"}),
    ("open_session", {"session": "nobody"}),
    ("list_sessions", {"limit": 30}),
    ("context", {"shared": False, "budget": None, "project": PROJECT, "now_us": 1_780_000_000_000_000}),
    ("context", {"shared": True, "budget": 10, "project": None}),
    ("context", {"shared": False, "budget": 800, "project": None, "called": "nowhere"}),
    ("handoff", {"session": None, "project": None, "folder": PROJECT, "now_us": 1_780_000_000_000_000}),
    ("remember", NOTE | {"text": TEXT, "tags": ["retry"]}),
    ("remember", NOTE | {"text": " ", "tags": []}),
]


def operated(vault: Vault, name: str, given: dict[str, Any]) -> str:
    """The answer to an operation as JSON, of an error what it says."""
    context = Context(str(vault.root))
    context.agent_flag = given.get("agent", "default")
    context.as_json = True
    session = vault.rows("select session_id from memory_artifacts")[0][0]
    values = {key: value.format(session=session) if key in ("handle", "session") and value else value
              for key, value in given.items() if key != "agent"}  # fmt: skip
    try:
        return json.dumps(context.ask(name, **values), sort_keys=True)
    except SignetSyncError as error:
        return repr((type(error), error.exit_code, *(getattr(error, field) for field in ask.FIELDS)))


@pytest.mark.parametrize(("name", "given"), OPERATIONS)
def test_an_operation_answers_the_same_with_and_without_the_agent(
    vault: Vault, agent: Answers, monkeypatch: pytest.MonkeyPatch, name: str, given: dict[str, Any]
) -> None:
    with monkeypatch.context() as alone:
        alone.setattr(ask, "_read_answer", lambda *_: None)
        operated(vault, name, given)  # a memory is new only once
        expected = operated(vault, name, given)
    here = {name: lambda *_, **__: pytest.fail("the agent does not answer")}
    with monkeypatch.context() as asked:
        real = ask._read_answer

        def answered(*given: Any) -> Any:
            found = real(*given)
            asked.setattr("signet_sync.app.operations.OPERATIONS", here)
            return found

        asked.setattr(ask, "_read_answer", answered)
        assert operated(vault, name, given) == expected
    assert {name for name, _ in OPERATIONS} == set(operations.OPERATIONS)


def test_a_command_that_the_agent_answers_loads_no_index(vault: Vault, agent: Answers) -> None:
    code = "import sys; from signet_sync.cli.main import run; run(sys.argv[1:]); print('apsw' in sys.modules)"
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    for line in ("recall retry", "context", "remember x"):
        words = [sys.executable, "-c", f"import sys; from signet_sync.app import ask; ask.DEADLINE = 300.0; {code}"]
        ran = subprocess.run(
            [*words, "--workspace", str(vault.root), *line.split()], env=environ, capture_output=True, text=True
        )
        assert ran.stdout.endswith("False\n"), (line, ran)


# ── an agent that cannot answer ──

# An agent apart from us that does something when it is asked: stops, or dies before or after its work.
_AGENT = """
import os, signal, sys, time
from signet_sync.app import answers, operations
from signet_sync.storage import state_dir
root, what = sys.argv[1:]
ends = lambda *_, **__: os._exit(9)
stops = lambda *_, **__: os.kill(os.getpid(), signal.SIGSTOP)
def around(act, before=None, after=None):
    def run(*given, **more):
        if before: before()
        done = act(*given, **more)
        if after: after()
        return done
    return run
before, after = {"stops": (stops, None), "dies before": (ends, None), "dies after": (None, ends),
                 "stops after": (None, stops)}.get(what, (None, None))
answers.hook.answer = around(answers.hook.answer, before, after)
operations.OPERATIONS = {name: around(act, before, after) for name, act in operations.OPERATIONS.items()}
done = lambda: print("done", flush=True)
answers.Answers._answer = around(answers.Answers._answer, after=done if "hook" in what else None)
answers.Answers._operate = around(answers.Answers._operate, after=None if "hook" in what else done)
with state_dir.run_lock(state_dir.locate(root)):
    assert answers.Answers(root, state_dir.locate(root)).listen()
    print("listens", flush=True)
    if what == "is killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if "kill at" in what:
        import crash_runner
        fault, step = what.removeprefix("hook ").split(" at ")
        crash_runner.FAULTS[fault](int(step))
        print("armed", flush=True)
    time.sleep(600)
"""


def _refuses(monkeypatch: pytest.MonkeyPatch, error: int) -> None:
    class Refusing(_socket.socket):
        def connect(self, address: Any) -> None:
            raise OSError(error, os.strerror(error))

    monkeypatch.setattr(_socket, "socket", Refusing)


def _read_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ask, "proof_of", lambda _: "/proc/version")


OTHER = ("is killed", "stops", "stops after", "dies before", "dies after")
TROUBLES: dict[str, Callable[[pytest.MonkeyPatch], object]] = {
    "none": lambda _: None,
    "stale": lambda _: None,
    "another version": lambda patch: patch.setattr(ask, "__version__", "0.0.1"),
    "another user's socket": lambda patch: patch.setattr(os, "geteuid", lambda: 12_345),
    "our settings": lambda patch: patch.setenv("SIGNET_CONTEXT_BUDGET_TOKENS", "700"),
    "a sandbox without sockets": lambda patch: _refuses(patch, errno.EPERM),
    "a crowd": lambda patch: _refuses(patch, errno.EAGAIN),
    "a sandbox that reads only": _read_only,
} | dict.fromkeys(OTHER, lambda _: None)
TROUBLES["no thread"] = lambda patch: patch.setattr(threading, "Thread", lambda **_: 1 / 0)
ASKED: dict[str, tuple[str, list[str]]] = {
    "start": ("retry loop", ["hook", "claude-code", "--strict"]),
    "stop": ("", ["hook", "claude-code", "--strict"]),
    "recall": ("retry loop", ["recall", "retry"]),
    "remember": ("remembered as", ["remember", TEXT]),
}


@pytest.mark.parametrize(("trouble", "what"), sampled(product(TROUBLES, ASKED), 3))
def test_who_asks_in_vain_does_it_and_nothing_is_lost_or_there_twice(
    vault: Vault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trouble: str, what: str
) -> None:
    folder, (words, line) = state_dir.locate(str(vault.root)), ASKED[what]
    with ExitStack() as stack:
        if trouble == "stale":
            with socket.socket(socket.AF_UNIX) as left, ask.address(ask.socket_of(folder)) as at:
                left.bind(at)
        elif trouble in OTHER:
            vault.leave()  # the lock is the other's
            script = [sys.executable, "-c", _AGENT, str(vault.root), trouble]
            environ = {**os.environ, "PYTHONPATH": str(ROOT)}
            other = stack.enter_context(subprocess.Popen(script, env=environ, stdout=subprocess.PIPE))
            stack.callback(other.kill)
            assert other.stdout is not None and other.stdout.readline() == b"listens\n"
            monkeypatch.setattr(ask, "DEADLINE", 0.5 if "stops" in trouble else 20.0)
            monkeypatch.setattr(ask, "LONGEST_OPERATION", 0.5 if "stops" in trouble else 20.0)
            if trouble == "is killed":
                other.wait(300)
        elif trouble != "none":
            stack.enter_context(listening(vault))
        TROUBLES[trouble](monkeypatch)
        if what in ("start", "stop"):
            said = vault.hook(*line[1:], given=payload("SessionStart" if what == "start" else "UserPromptSubmit",
                                                       prompt="Go on", source="startup"))  # fmt: skip
            jobs = {job.event for job in spool.jobs(folder.spool)}
            assert jobs == {"session-start" if what == "start" else "stop"}
        else:
            said = vault.call(*line)
    assert (said.code, said.err) == (0, "") and words in said.out, said
    if what == "remember":
        assert vault.rows(f"select count(*) from memories where content = '{TEXT}'") == [(1,)]


@pytest.mark.parametrize(
    ("every", "what", "fault"),
    [
        (41, "remember", "kill"),
        pytest.param(1, "start", "kill", marks=pytest.mark.slow),
        pytest.param(1, "prompt", "kill", marks=pytest.mark.slow),
        pytest.param(1, "remember", "kill", marks=pytest.mark.slow),
        pytest.param(1, "remember", "sqlite-kill", marks=pytest.mark.slow),
    ],
)
def test_an_agent_may_be_killed_at_every_step_of_what_it_was_asked(
    vault: Vault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str, fault: str, every: int
) -> None:
    """Whoever asked does the same again by himself: once there, and the next agent finds a sound index."""
    vault.leave()
    environ = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'tests' / 'support'}"}
    monkeypatch.setattr(ask, "LONGEST_OPERATION", 300.0)
    for step in range(1, 2_000, every):
        asked = f"{'' if what == 'remember' else 'hook '}{fault} at {step}"
        script = [sys.executable, "-c", _AGENT, str(vault.root), asked]
        with subprocess.Popen(script, env=environ, stdout=subprocess.PIPE, cwd=tmp_path) as other:
            assert other.stdout is not None and other.stdout.readline() == b"listens\n"
            other.stdout.readline()
            if what == "remember":
                said = vault.call("remember", f"{TEXT}, {step}")
            else:
                event = "SessionStart" if what == "start" else "UserPromptSubmit"
                given = payload(event, f"s-{step}", source="startup", prompt="Go on")
                said = vault.hook("claude-code", "--strict", given=given)
            survived = other.stdout.readline() == b"done\n"  # what a session got is recorded after its hook has ended
            other.kill()
        assert (said.code, said.err) == (0, ""), (step, said)
        if what == "remember":
            assert vault.rows(f"select count(*) from memories where content = '{TEXT}, {step}'") == [(1,)], step
        else:
            jobs = [job for job in spool.jobs(state_dir.locate(str(vault.root)).spool) if job.session_id == f"s-{step}"]
            # One that the agent had written already is there twice: a job is taken as often as one likes.
            assert len(jobs) in (1, 2) and ("retry loop" in said.out) == (what == "start"), (step, said)
        if survived:
            break
    assert step > 1, "no step of it was met"
    assert vault.call("check").code == 0


def test_many_at_once_get_the_same_or_do_it_themselves(vault: Vault, agent: Answers) -> None:
    codes: list[int | None] = []
    answers: list[str] = []

    def ask_once(number: int) -> None:
        if number % 10 == 0:
            answers.append(operated(vault, *OPERATIONS[0]))
        codes.append(asked(vault, payload("UserPromptSubmit", f"s-{number}", prompt="Go on")))

    hooks = [threading.Thread(target=ask_once, args=(number,)) for number in range(50)]
    for hook in hooks:
        hook.start()
    for hook in hooks:
        hook.join()
    assert set(codes) <= {0, None} and codes.count(0) > 0
    assert len(set(answers)) == 1 and len(answers) == 5
    jobs = {job.session_id for job in spool.jobs(state_dir.locate(str(vault.root)).spool)}
    assert len(jobs) >= codes.count(0)
