"""Runs a real harness without a terminal against a mock model, and shows what its requests and the vault contain.

The programs are taken from PATH, nothing leaves the machine. `FOLDER` gets a home, a workspace and a repository; it
must not be in a folder for temporary files, whose projects are not shown. With `--hand-over` it also runs them in a
terminal (tmux), and shows who is asked for the lines that hand work over, and whether the next session gets them. With
`--moments` it lets them run commands and edit, and shows what they are told of exactly these. With `--branches` the
harnesses take turns on two branches, and what each was told at its start is printed.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

from signet_sync.capture.hook import REQUEST
from signet_sync.cli.context import REQUEST as GO_ON
from signet_sync.formats.managed_block import CLOSING, OPENING

Words = list[str]
OWN, OTHER = "The retry loop gives up after five tries.", "Plumage photographs go into the bucket named aerie."
QUESTION = "Which bucket holds the plumage photographs of the kestrel?"
KEY = "no-key"
TASK = "Repair the winch of the lantern, please."
SAID = "Outcome: the winch of the lantern turns again\nDecided: hemp rope replaces the chain"
SAID += "\nNext: oil the trapdoor hinges"
CALLED = "Outcome: the gallery railing is painted\nNext: order two panes for the lens"
# What the project knows, and the calls of a session that it is about: a command, one that fails, an edit.
KNOWN = """# Part

## Constraints

- The tower of the lamp has ninety-nine steps{more}.
- The command lamp-check --all needs the spare lamp{more}.
- ERR_LAMP_COLD goes away when the lamp has burnt for a minute{more}.
- wick/length.txt is measured by the keeper{more}.
""".format(
    more=", who writes it into the book of the tower with the day, the hour, the wind and the height of the tide"
)
CHANGED = "wick/length.txt"
SHELL, EDIT = (
    ("Bash", "bash", "run_shell_command", "exec_command"),
    ("Write", "write", "create", "write_file", "apply_patch"),
)
PATCH = f"*** Begin Patch\n*** Add File: {CHANGED}\n+3\n*** End Patch"
TOLD = {"before a command": "needs the spare lamp", "after a failure": "has burnt for a", "of an edit": "by the keeper"}


class MockModel(ThreadingHTTPServer):
    """Answers every request with the same text, and keeps what it was sent; `tokens` counts for one answer only."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.requests: list[str] = []
        self.text, self.tokens = "Understood.", 1_000
        # The tools that the next answers call, each with what: the first of its names that the request offers.
        self.calls: list[tuple[tuple[str, ...], dict[str, str] | str]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Answer(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: MockModel

    def log_message(self, *_: Any) -> None:
        pass

    def do_GET(self) -> None:
        self._send({"data": [], "models": []})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)) or b"{}")
        text, tokens, path = self.server.text, self.server.tokens, self.path.partition("?")[0]
        call: Call = None
        if self.server.calls:
            names, given = self.server.calls[0]
            if tool := next(filter(None, (_offered(body, name) for name in names)), None):
                call = (*tool, given)
                del self.server.calls[0]
            elif tool := _offered(body, "WaitForMcpServers"):  # our tools are not there yet
                call = (*tool, {})
        if path.endswith(("/messages", "/responses", "/chat/completions", "enerateContent")):
            self.server.requests.append(json.dumps(body, ensure_ascii=False))
            self.server.tokens = 1_000
        if path.endswith("/messages"):
            self._stream(_anthropic(text, tokens, body, call), named=True)
        elif path.endswith("/responses"):
            self._stream(_responses(text, tokens, call), named=True)
        elif path.endswith("/chat/completions"):
            self._stream([*_chat(text, tokens, call), None])
        elif path.endswith("enerateContent"):
            answer = _gemini(text, tokens, body, call)
            if "stream" in path:
                self._stream([answer])
            else:
                self._send(answer)
        else:
            self._send({"input_tokens": tokens, "totalTokens": tokens})

    def _stream(self, events: Iterable[dict[str, Any] | None], *, named: bool = False) -> None:
        parts = []
        for one in events:
            head = f"event: {one['type']}\n" if named and one else ""
            parts.append(f"{head}data: {json.dumps(one) if one else '[DONE]'}\n\n")
        self._send("".join(parts).encode(), "text/event-stream")

    def _send(self, answer: object, kind: str = "application/json") -> None:
        data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


Call = tuple[str, str, dict[str, str] | str] | None  # name, namespace and arguments


def _offered(value: object, tool: str, space: str = "") -> tuple[str, str] | None:
    """Returns the name that a request gives to a tool, and its namespace."""
    if isinstance(value, dict):
        name = value.get("name")
        if isinstance(name, str) and (name == tool or name.endswith(f"_{tool}")):
            return name, space
        space = name if value.get("type") == "namespace" and isinstance(name, str) else space
        value = [value.get(key) for key in ("tools", "function", "functionDeclarations")]
    found = (_offered(one, tool, space) for one in value) if isinstance(value, list) else ()
    return next((one for one in found if one), None)


def _anthropic(text: str, tokens: int, body: dict[str, Any], call: Call) -> list[dict[str, Any]]:
    usage = {"input_tokens": tokens, "output_tokens": 9}
    message: dict[str, Any] = {"id": f"msg_{time.time_ns()}", "type": "message", "role": "assistant", "content": []}
    message |= {"model": body.get("model"), "stop_reason": None, "stop_sequence": None, "usage": usage}
    stop = {"stop_reason": "tool_use" if call else "end_turn", "stop_sequence": None}
    block: dict[str, Any] = {"type": "text", "text": ""}
    delta = {"type": "text_delta", "text": text}
    if call:
        block = {"type": "tool_use", "id": f"toolu_{time.time_ns()}", "name": call[0], "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(call[2])}
    return [
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": stop, "usage": usage},
        {"type": "message_stop"},
    ]


def _responses(text: str, tokens: int, call: Call) -> list[dict[str, Any]]:
    name = f"{time.time_ns()}"
    item = {"type": "message", "role": "assistant", "id": f"m{name}", "status": "completed",
            "content": [{"type": "output_text", "text": text, "annotations": []}]}  # fmt: skip
    if call:
        item = {
            "type": "function_call",
            "id": f"f{name}",
            "call_id": f"c{name}",
            "name": call[0],
            "status": "completed",
        }
        item |= {"arguments": json.dumps(call[2])} | ({"namespace": call[1]} if call[1] else {})
        if isinstance(call[2], str):
            item |= {"type": "custom_tool_call", "input": call[2]}
    usage = {"input_tokens": tokens, "output_tokens": 9, "total_tokens": tokens + 9}
    done = {"id": name, "object": "response", "status": "completed", "output": [item], "usage": usage}
    return [
        {"type": "response.created", "response": {"id": name}},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": done},
    ]


def _chat(text: str, tokens: int, call: Call) -> list[dict[str, Any]]:
    shared = {"id": f"c{time.time_ns()}", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    delta: dict[str, Any] = {"role": "assistant", "content": text}
    if call:
        function = {"name": call[0], "arguments": json.dumps(call[2])}
        delta |= {"tool_calls": [{"index": 0, "id": f"t{time.time_ns()}", "type": "function", "function": function}]}
    said = {"index": 0, "delta": delta, "finish_reason": None}
    end = {"index": 0, "delta": {}, "finish_reason": "tool_calls" if call else "stop"}
    usage = {"prompt_tokens": tokens, "completion_tokens": 9, "total_tokens": tokens + 9}
    return [shared | {"choices": [said]}, shared | {"choices": [end]}, shared | {"choices": [], "usage": usage}]


def _gemini(text: str, tokens: int, body: dict[str, Any], call: Call) -> dict[str, Any]:
    if "responseJsonSchema" in body.get("generationConfig", {}):  # Gemini CLI asks which model it should ask
        text = json.dumps(
            {"complexity_reasoning": "-", "complexity_score": 1, "reasoning": "-", "model_choice": "flash"}
        )
    said = {"functionCall": {"name": call[0], "args": call[2]}} if call else {"text": text}
    part = {"content": {"role": "model", "parts": [said]}, "finishReason": "STOP", "index": 0}
    usage = {"promptTokenCount": tokens, "candidatesTokenCount": 9, "totalTokenCount": tokens + 9}
    return {"candidates": [part], "usageMetadata": usage}


class Run(NamedTuple):
    """How a harness is set up and called; `compact` are the words that make it compact, "" if a full context does.

    `terminal` is called before a prompt in a terminal, `quit` is typed there, `allow` lets our tool run unasked.
    """

    prepare: Callable[[Path, str], dict[str, str]]
    first: Words
    resumed: Words
    terminal: Words
    quit: str
    allow: Words = []  # noqa: RUF012 - never changed
    compact: str = ""


def _claude(home: Path, url: str) -> dict[str, str]:
    (home / ".claude").mkdir()
    asked = {"hasCompletedOnboarding": True, "customApiKeyResponses": {"approved": [KEY], "rejected": []}}
    trusted = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
    allowed = {"permissions": {"allow": ["mcp__signet-sync__memory_note", "Bash", "Write"]}}
    (home / ".claude" / "settings.json").write_text(json.dumps(allowed))
    (home / ".claude.json").write_text(json.dumps(asked | {"projects": {str(home / "code" / "lantern"): trusted}}))
    off = {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1"}
    off |= {"MCP_CONNECTION_NONBLOCKING": "0", "ENABLE_TOOL_SEARCH": "false"}  # our tools are in the first request
    return {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": KEY, **off}


def _codex(home: Path, url: str) -> dict[str, str]:
    (home / ".codex").mkdir()
    (home / ".codex" / "config.toml").write_text(
        'model = "mock"\nmodel_provider = "mock"\nmodel_auto_compact_token_limit = 50000\n'
        f'[model_providers.mock]\nname = "mock"\nbase_url = "{url}/v1"\nenv_key = "MOCK_KEY"\nwire_api = "responses"\n'
        f'[projects."{home / "code" / "lantern"}"]\ntrust_level = "trusted"\n'
        f'[projects."{home / "code" / "lantern-b"}"]\ntrust_level = "trusted"\n'
    )
    return {"MOCK_KEY": KEY}


def _gemini_cli(home: Path, url: str) -> dict[str, str]:
    (home / ".gemini").mkdir()
    settings = {"security": {"auth": {"selectedType": "gemini-api-key"}}, "privacy": {"usageStatisticsEnabled": False}}
    (home / ".gemini" / "settings.json").write_text(json.dumps(settings))
    return {"GEMINI_API_KEY": KEY, "GOOGLE_GEMINI_BASE_URL": url, "GEMINI_CLI_TRUST_WORKSPACE": "true"}


def _opencode(home: Path, url: str) -> dict[str, str]:
    options = {"baseURL": f"{url}/v1", "apiKey": KEY}
    models = {"m": {"name": "m", "limit": {"context": 100_000, "output": 4_000}}}
    provider = {"npm": "@ai-sdk/openai-compatible", "name": "mock", "options": options, "models": models}
    folder = home / ".config" / "opencode"
    folder.mkdir(parents=True)
    settings = {"autoupdate": False, "model": "mock/m", "small_model": "mock/m", "provider": {"mock": provider}}
    (folder / "opencode.json").write_text(json.dumps(settings))
    return {"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1"}


def _copilot(home: Path, url: str) -> dict[str, str]:
    limits = {"COPILOT_PROVIDER_MAX_PROMPT_TOKENS": "100000", "COPILOT_PROVIDER_API_KEY": KEY, "COPILOT_MODEL": "m"}
    return {"COPILOT_OFFLINE": "true", "COPILOT_PROVIDER_BASE_URL": f"{url}/v1", "COPILOT_ALLOW_ALL": "true", **limits}


def _pi(home: Path, url: str) -> dict[str, str]:
    folder = home / ".pi" / "agent"
    folder.mkdir(parents=True)
    provider = {"baseUrl": f"{url}/v1", "api": "openai-completions", "apiKey": KEY}
    models = [{"id": "m", "contextWindow": 100_000, "maxTokens": 4_000}]
    (folder / "models.json").write_text(json.dumps({"providers": {"mock": provider | {"models": models}}}))
    (folder / "settings.json").write_text(json.dumps({"compaction": {"keepRecentTokens": 1}}))
    return {"PI_OFFLINE": "1"}


def _qwen(home: Path, url: str) -> dict[str, str]:
    (home / ".qwen").mkdir()
    settings = {"security": {"auth": {"selectedType": "openai"}}, "privacy": {"usageStatisticsEnabled": False}}
    (home / ".qwen" / "settings.json").write_text(json.dumps(settings))
    return {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": f"{url}/v1", "OPENAI_MODEL": "m"}


_CODEX = ["codex", "exec", "--dangerously-bypass-hook-trust"]  # it cannot ask whether hooks may run
_WAITS = ["-c", "mcp_servers.signet-sync.required=true"]
RUNS = {
    "claude-code": Run(
        _claude,
        ["claude", "-p"],
        ["claude", "-p", "--continue"],
        ["claude"],
        "/exit",
        compact="/compact",
    ),
    "codex": Run(_codex, _CODEX, [*_CODEX, "resume", "--last"], ["codex", _CODEX[-1]], "/quit", _WAITS),
    "copilot": Run(
        _copilot,
        ["copilot", "-p"],
        ["copilot", "--continue", "-p"],
        ["copilot", "-i"],
        "/exit",
        compact="/compact",
    ),
    "gemini": Run(
        _gemini_cli, ["gemini", "-p"], ["gemini", "-r", "latest", "-p"], ["gemini", "-i"], "/quit", ["--yolo"]
    ),
    "pi": Run(
        _pi,
        ["pi", "--provider", "mock", "--model", "m", "-p"],
        ["pi", "--provider", "mock", "--model", "m", "--continue", "-p"],
        ["pi", "--provider", "mock", "--model", "m"],
        "/quit",
    ),
    "qwen": Run(_qwen, ["qwen", "-p"], ["qwen", "--continue", "-p"], ["qwen", "-i"], "/quit", compact="/compress"),
    "opencode": Run(
        _opencode, ["opencode", "run"], ["opencode", "run", "--continue"], ["opencode", "--prompt"], "/exit"
    ),
}


def main() -> None:
    """Prints a line for each request of each step, and the injected lines that are in the vault afterwards."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("harnesses", nargs="+", choices=RUNS, metavar="HARNESS")
    parser.add_argument("--hand-over", action="store_true", help="in a terminal too: who is asked, and what is kept")
    parser.add_argument("--moments", action="store_true", help="what is told of a command, a failure and an edit")
    parser.add_argument("--branches", action="store_true", help="two branches, by turns: what each start tells")
    parser.add_argument(
        "--restore", action="store_true", help="delete the program's own session, restore and resume it"
    )
    given = parser.parse_args()
    if given.branches:
        _show_branches(given.harnesses, given.folder.resolve() / "branches")
        return
    for name in given.harnesses:
        if shutil.which(RUNS[name].first[0]) is None:
            parser.error(f"{RUNS[name].first[0]} is not on PATH")
        show = _show_restored if given.restore else _show_hand_over if given.hand_over else _show
        show = _show_moments if given.moments else show
        show(name, given.folder.resolve() / name)


class _Place:
    """A home with a repository, a vault and a mock model for one harness."""

    def __init__(self, name: str, folder: Path) -> None:
        self.run, self.model, self.vault = RUNS[name], MockModel(), folder / "vault"
        threading.Thread(target=self.model.serve_forever, daemon=True).start()
        home = folder / "home"
        self.project = home / "code" / "lantern"
        self.project.mkdir(parents=True)
        self.environ = {"PATH": os.environ["PATH"], "HOME": str(home), "SIGNET_STATE": str(folder / "state")}
        self.environ |= {"SIGNET_CONFIG": str(folder / "config.toml"), **self.run.prepare(home, self.model.url)}
        self.call("git", "init", "-q", ".")
        self.ours("init", str(self.vault))

    def call(self, *words: str, given: str = "") -> str:
        done = subprocess.run(
            words, input=given, capture_output=True, text=True, cwd=self.project, env=self.environ, timeout=300
        )
        return done.stdout + done.stderr

    def ours(self, *words: str, given: str = "") -> str:
        return self.call(sys.executable, "-m", "signet_sync", "--workspace", str(self.vault), *words, given=given)

    def type(self, prompt: str, answer: str, *options: str, words: Words | None = None) -> list[str]:
        """Runs the program, or other words, in a terminal until it shows an answer to a prompt, and quits it.

        Returns its requests.
        """
        self.model.requests.clear()
        name = f"signet-{os.getpid()}"
        environ = {**self.environ, "TERM": "xterm-256color", "LANG": "C.UTF-8", "SHELL": "/bin/sh"}
        words = words or [self.run.terminal[0], *options, *self.run.terminal[1:], prompt]
        words = ["env", "-i", *(f"{key}={value}" for key, value in environ.items()), *words]

        def tmux(*given: str) -> str:
            told = ["tmux", "-L", name, "-f", os.devnull, *given]
            return subprocess.run(told, capture_output=True, text=True, check=False).stdout

        tmux("new-session", "-d", "-s", "one", "-x", "160", "-y", "50", "-c", str(self.project), *words)

        def asked() -> list[str]:
            return [one for one in self.model.requests if prompt in one and json.loads(one).get("tools")]  # no titles

        shown, ends = "", time.monotonic() + 240  # OpenCode takes more than a minute on a busy machine
        # A title that the program shows is an answer too.
        while not (asked() and answer in " ".join(shown.split())) and time.monotonic() < ends:
            time.sleep(0.5)
            shown = tmux("capture-pane", "-p", "-t", "one") or shown
        if answer not in " ".join(shown.split()):
            print(f"  the terminal shows no answer:\n{shown.rstrip()}")
        time.sleep(3)  # its hooks
        tmux("send-keys", "-t", "one", "-l", self.run.quit)
        time.sleep(1)
        tmux("send-keys", "-t", "one", "Enter")
        ends = time.monotonic() + 20
        while tmux("list-sessions") and time.monotonic() < ends:
            time.sleep(0.5)
        tmux("kill-server")
        self.ours("session", "take-spool")
        return asked()


def _show_hand_over(name: str, folder: Path) -> None:
    """Prints who was asked for a hand-over, and where its lines are afterwards."""
    place = _Place(name, folder)
    model, run, memory = place.model, place.run, place.vault / "MEMORY.md"
    place.ours("hooks", "install", name)
    print(f"{name}: {place.call(run.first[0], '--version').strip()}")

    def kept(note: str, text: str) -> str:
        lines = [line.partition(": ")[2].casefold() for line in note.split("\n")]
        return f"{sum(line in text.casefold() for line in lines)} of {len(lines)}"

    model.text = f"The winch was rusty.\n\n{SAID}"
    requests = place.type(TASK, "oil the trapdoor hinges")
    print(f"  terminal: {sum(REQUEST in one for one in requests)} of {len(requests)} requests ask")
    model.text = "Understood."
    place.ours("hooks", "uninstall", name)  # Codex would ask whether they may run
    own = [sys.executable, "-m", "signet_sync", "--workspace", str(place.vault), "handoff", "--to", name]
    requests = place.type(GO_ON, "Understood.", words=own)
    place.ours("hooks", "install", name)
    given = next((one for one in requests if "Handed over" in one), "")
    print(f"  handoff --to {name}: {kept(SAID, given)} lines are in its first prompt")
    requests = place.type("And what comes now?", "Understood.")
    shown = "\n".join(requests)
    print(f"  next start: {kept(SAID, shown)} lines, (agent): {'(agent)' in shown}")
    print(f"  MEMORY.md: {kept(SAID, memory.read_text())} lines")
    model.requests.clear()
    place.call(*run.first, TASK)
    asked = [one for one in model.requests if REQUEST in one]
    print(f"  headless: {len(asked)} of {len(model.requests)} requests ask")
    place.ours("hooks", "install", name, "--mcp", "--tools", "all")
    model.calls = [(("memory_note",), {"note": CALLED})]
    place.type("Paint the railing of the gallery, please.", "Understood.", *run.allow)
    called = not model.calls
    place.ours("session", "take-spool")
    context = place.ours("context", "--project", ".")
    print(f"  tool: {'called' if called else 'not offered'}; context: {kept(CALLED, context)} lines")
    model.shutdown()


def _show_moments(name: str, folder: Path) -> None:
    """Prints what a session is told of a command, of a failure and of an edit, with and without the agent."""
    place = _Place(name, folder)
    Path(place.environ["SIGNET_CONFIG"]).write_text(
        "[context]\nbudget_tokens = 100\nprompts = false\n"
    )  # a start says none of it
    document = {"session_id": "earlier", "project": str(place.project), "transcript": "-", "summary": KNOWN}
    place.ours("session", "end", "--input", "-", given=json.dumps(document))
    place.ours("hooks", "install", name)
    print(f"{name}: {place.call(place.run.first[0], '--version').strip()}")
    keys = {"copilot": ("path", "file_text"), "pi": ("path", "content"), "opencode": ("filePath", "content")}
    where, what = keys.get(name, ("file_path", "content"))
    edit = PATCH if name == "codex" else {where: str(place.project / CHANGED), what: "3"}
    commands = ("lamp-check --all || true", "sh -c 'echo ERR_LAMP_COLD; exit 3'")
    shell = [(SHELL, {("cmd" if name == "codex" else "command"): one, "description": "lamp"}) for one in commands]
    allowed = {"codex": ["-m", "gpt-5.5", "-s", "danger-full-access", "-c", "approval_policy=never"]}
    allowed |= {"gemini": ["--yolo"], "qwen": ["--yolo"]}
    for with_agent in (False, True):
        words = [sys.executable, "-m", "signet_sync", "--workspace", str(place.vault), "run"]
        agent = subprocess.Popen(words, env=place.environ, stderr=subprocess.DEVNULL) if with_agent else None
        time.sleep(5 if agent else 0)
        shutil.rmtree(place.project / "wick", ignore_errors=True)
        (place.project / "wick").mkdir()
        place.model.requests.clear()
        place.model.calls = [*shell, (EDIT, edit)]
        place.call(place.run.first[0], *allowed.get(name, []), *place.run.first[1:], TASK)
        asked = [one for one in place.model.requests if TASK in one]
        print(f"  {'with' if agent else 'without'} the agent, {3 - len(place.model.calls)} of 3 calls:")
        for what, said in TOLD.items():
            told = [number for number, one in enumerate(asked) if said in one]
            print(f"    {what}: {f'in request {told[0]} of {len(asked)}' if told else 'nothing'}")
        if agent:
            agent.terminate()
            agent.wait(30)
    place.ours("session", "take-spool")
    place.ours("import", name, str(folder / "home"))
    files = [
        one for path in place.vault.glob("memory/*.md") if 'session_id: "earlier"' not in (one := path.read_text())
    ]
    back = [one for one in files if any(said in one for said in TOLD.values())]
    print(f"  vault: {len(files)} new files, {len(back)} with what was told")
    place.model.shutdown()


# What the sessions of the story say at their end: on one branch, in a worktree of another, and on the first again.
STORY = (
    ("a", "Outcome: the winch of the lantern turns again\nDecided: hemp rope replaces the chain\nNext: oil the hinges"),
    ("b", "Outcome: the lens of the lantern is clear\nDecided: only wool polishes the lens\nNext: order two panes"),
    ("a", "Outcome: the hinges are oiled"),
)


def _show_branches(names: list[str], folder: Path) -> None:
    """Prints what each session of a story on two branches is told at its start; the harnesses take turns."""
    place = _Place(names[0], folder)
    places = {"a": place.project, "b": place.project.with_name("lantern-b")}
    git = ["git", "-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
    place.call(*git, "commit", "-q", "--allow-empty", "-m", "the lantern")
    place.call(*git, "checkout", "-q", "-b", "a")
    place.call(*git, "worktree", "add", "-q", "-b", "b", str(places["b"]))
    for name in names[1:]:
        place.environ |= RUNS[name].prepare(folder / "home", place.model.url)
    for name in names:
        place.ours("hooks", "install", name)
    for number, (branch, said) in enumerate(STORY):
        name = names[number % len(names)]
        place.run, place.model.text, place.project = RUNS[name], said, places[branch]
        asked = place.type(f"{TASK} Part {number + 1}.", said.split()[-1])
        print(f"session {number + 1}, {name} on branch {branch}, is told:")
        block = re.search(rf"{OPENING}.*?{CLOSING}", "".join(asked[:1]).replace("\\n", "\n"), re.DOTALL)
        print(block[0] if block else "  nothing")
    place.model.shutdown()


def _show_restored(name: str, folder: Path) -> None:
    """Prints what a program sends to the model when it resumes a session that it lost, and what is captured then."""
    place = _Place(name, folder)
    model, home, project = place.model, folder / "home", str(place.project)
    print(f"{name}: {place.call(place.run.first[0], '--version').strip()}")
    model.text = "The winch was rusty: hemp rope replaces the chain."
    place.call(*place.run.first, TASK)
    place.ours("import", name, str(home))
    (own,) = [path for path in home.rglob("*.jsonl") if TASK in path.read_text() and "history" not in path.name]
    own.unlink()
    session = own.stem[-36:]
    done = json.loads(place.ours("restore", session, "--to-harness", name, "--json"))
    print(f"  restored: {done['turns']} turns, in its place: {done['path'] == str(own)}, {done['folder'] == project}")
    print(f"  imported at once: {json.loads(place.ours('import', name, str(home), '--json'))['segments']}")
    model.requests.clear()
    model.text = "Grease it."
    words = {"codex": [*_CODEX, "resume", session]}.get(name, ["claude", "-p", "--resume", session])
    print(f"  {place.call(*words, 'And then?').strip().splitlines()[-1]}")
    held = [text in one for one in model.requests for text in (TASK, "hemp rope replaces the chain", "And then?")]
    print(f"  {sum(held)} of {len(held)} of what was said are in {len(model.requests)} requests")
    new = json.loads(place.ours("import", name, str(home), "--json"))["segments"]
    body = "".join((place.vault / one.replace("summary", "transcript")).read_text() for one in new)
    print(f"  then imported: {len(new)}; told again: {TASK in body}, new: {'Grease it.' in body}")
    model.shutdown()


def _show(name: str, folder: Path) -> None:
    place = _Place(name, folder)
    run, model, vault, project = place.run, place.model, place.vault, place.project
    call, ours, home = place.call, place.ours, folder / "home"
    for number, (where, text) in enumerate(((project, OWN), (home / "kestrel", OTHER))):
        summary = f"# Part\n\n## Decisions\n\n- {text}\n"
        document = {"session_id": f"earlier-{number}", "project": str(where), "transcript": "-", "summary": summary}
        ours("session", "end", "--input", "-", given=json.dumps(document))
    before = set(vault.rglob("*.md"))
    ours("hooks", "install", name)
    print(f"{name}: {call(run.first[0], '--version').strip()}")
    steps = [("start", [*run.first, QUESTION], 1_000), ("resume", [*run.resumed, "Thank you, and then?"], 99_000)]
    if run.compact:
        steps.append(("compaction", [*run.resumed, run.compact], 1_000))
    for step, words, tokens in [*steps, ("after it", [*run.resumed, "And what is next?"], 1_000)]:
        model.requests.clear()
        model.tokens = tokens
        call(*words)
        for one in model.requests:
            blocks = one.count("signet-memory") // 2
            held = [what for what, text in (("of its start", OWN), ("of its prompt", OTHER)) if text in one]
            print(f"  {step}: {len(one):,} characters, {blocks} blocks: {', '.join(held) or 'nothing'}")
    ours("session", "take-spool")
    if before >= set(vault.rglob("memory/*.md")):  # Qwen Code reports no end of `-p`: a sweep would come in 15 minutes
        ours("import", name, str(home))
    new = [path.read_text() for path in set(vault.rglob("memory/*.md")) - before]
    back = [text for text in new if any(one in text for one in (OWN, OTHER, "signet-memory"))]
    print(f"  vault: {len(new)} new files, {len(back)} with what was injected")
    model.shutdown()


if __name__ == "__main__":
    main()
