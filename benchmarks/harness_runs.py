"""Runs a real harness without a terminal against a mock model, and shows what its requests and the vault contain.

The model ends its answers with hand-over lines, which the start of a new session shows; nobody sits before these runs,
so none of their requests may ask for such lines. The programs are taken from PATH, nothing leaves the machine. `FOLDER`
gets a home, a workspace and a repository; it must not be in a folder for temporary files, whose projects are not shown.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

from signet_sync.capture.notes import REQUEST

Words = list[str]
OWN, OTHER = "The retry loop gives up after five tries.", "Plumage photographs go into the bucket named aerie."
QUESTION = "Which bucket holds the plumage photographs of the kestrel?"
OUTCOME, NEXT = "the retry loop waits longer between its tries", "measure the restart of the broker under load"
ANSWER = f"Understood.\n\nOutcome: {OUTCOME}\nNext: {NEXT}"
KEY = "no-key"


class MockModel(ThreadingHTTPServer):
    """Answers every request with the same text, and keeps what it was sent; `tokens` counts for one answer only."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.requests: list[str] = []
        self.text, self.tokens = ANSWER, 1_000

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
        if path.endswith(("/messages", "/responses", "/chat/completions", "enerateContent")):
            self.server.requests.append(json.dumps(body, ensure_ascii=False))
            self.server.tokens = 1_000
        if path.endswith("/messages"):
            self._stream(_anthropic(text, tokens, body), named=True)
        elif path.endswith("/responses"):
            self._stream(_responses(text, tokens), named=True)
        elif path.endswith("/chat/completions"):
            self._stream([*_chat(text, tokens), None])
        elif path.endswith("enerateContent"):
            answer = _gemini(text, tokens, body)
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


def _anthropic(text: str, tokens: int, body: dict[str, Any]) -> list[dict[str, Any]]:
    usage = {"input_tokens": tokens, "output_tokens": 9}
    message: dict[str, Any] = {"id": f"msg_{time.time_ns()}", "type": "message", "role": "assistant", "content": []}
    message |= {"model": body.get("model"), "stop_reason": None, "stop_sequence": None, "usage": usage}
    stop = {"stop_reason": "end_turn", "stop_sequence": None}
    return [
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": stop, "usage": usage},
        {"type": "message_stop"},
    ]


def _responses(text: str, tokens: int) -> list[dict[str, Any]]:
    name = f"{time.time_ns()}"
    item = {"type": "message", "role": "assistant", "id": f"m{name}", "status": "completed",
            "content": [{"type": "output_text", "text": text, "annotations": []}]}  # fmt: skip
    usage = {"input_tokens": tokens, "output_tokens": 9, "total_tokens": tokens + 9}
    done = {"id": name, "object": "response", "status": "completed", "output": [item], "usage": usage}
    return [
        {"type": "response.created", "response": {"id": name}},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": done},
    ]


def _chat(text: str, tokens: int) -> list[dict[str, Any]]:
    shared = {"id": f"c{time.time_ns()}", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    said = {"index": 0, "delta": {"role": "assistant", "content": text}, "finish_reason": None}
    end = {"index": 0, "delta": {}, "finish_reason": "stop"}
    usage = {"prompt_tokens": tokens, "completion_tokens": 9, "total_tokens": tokens + 9}
    return [shared | {"choices": [said]}, shared | {"choices": [end]}, shared | {"choices": [], "usage": usage}]


def _gemini(text: str, tokens: int, body: dict[str, Any]) -> dict[str, Any]:
    if "responseJsonSchema" in body.get("generationConfig", {}):  # Gemini CLI asks which model it should ask
        text = json.dumps(
            {"complexity_reasoning": "-", "complexity_score": 1, "reasoning": "-", "model_choice": "flash"}
        )
    part = {"content": {"role": "model", "parts": [{"text": text}]}, "finishReason": "STOP", "index": 0}
    usage = {"promptTokenCount": tokens, "candidatesTokenCount": 9, "totalTokenCount": tokens + 9}
    return {"candidates": [part], "usageMetadata": usage}


class Run(NamedTuple):
    """How a harness is set up and called; `compact` are the words that make it compact, "" if a full context does."""

    prepare: Callable[[Path, str], dict[str, str]]
    first: Words
    resumed: Words
    compact: str = ""


def _claude(home: Path, url: str) -> dict[str, str]:
    (home / ".claude").mkdir()
    off = {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1"}
    return {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": KEY, **off}


def _codex(home: Path, url: str) -> dict[str, str]:
    (home / ".codex").mkdir()
    (home / ".codex" / "config.toml").write_text(
        'model = "mock"\nmodel_provider = "mock"\nmodel_auto_compact_token_limit = 50000\n'
        f'[model_providers.mock]\nname = "mock"\nbase_url = "{url}/v1"\nenv_key = "MOCK_KEY"\nwire_api = "responses"\n'
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


_CODEX = ["codex", "exec", "--dangerously-bypass-hook-trust"]  # it cannot ask whether hooks may run
RUNS = {
    "claude-code": Run(_claude, ["claude", "-p"], ["claude", "-p", "--continue"], "/compact"),
    "codex": Run(_codex, _CODEX, [*_CODEX, "resume", "--last"]),
    "gemini": Run(_gemini_cli, ["gemini", "-p"], ["gemini", "-r", "latest", "-p"]),
    "opencode": Run(_opencode, ["opencode", "run"], ["opencode", "run", "--continue"]),
}


_LOOKED_FOR = {"of its start": OWN, "of its prompt": OTHER, "handed over": NEXT, "ASKED FOR LINES": REQUEST[:60]}


def main() -> None:
    """Prints a line for each request of each step, and the injected lines that are in the vault afterwards."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("harnesses", nargs="+", choices=RUNS, metavar="HARNESS")
    given = parser.parse_args()
    for name in given.harnesses:
        if shutil.which(RUNS[name].first[0]) is None:
            parser.error(f"{RUNS[name].first[0]} is not on PATH")
        _show(name, given.folder.resolve() / name)


def _show(name: str, folder: Path) -> None:
    run, model, vault, home = RUNS[name], MockModel(), folder / "vault", folder / "home"
    threading.Thread(target=model.serve_forever, daemon=True).start()
    project = home / "code" / "lantern"
    project.mkdir(parents=True)
    environ = {"PATH": os.environ["PATH"], "HOME": str(home), "SIGNET_STATE": str(folder / "state")}
    environ |= {"SIGNET_CONFIG": str(folder / "config.toml"), **run.prepare(home, model.url)}

    def call(*words: str, given: str = "") -> str:
        done = subprocess.run(words, input=given, capture_output=True, text=True, cwd=project, env=environ, timeout=300)
        return done.stdout + done.stderr

    def ours(*words: str, given: str = "") -> str:
        return call(sys.executable, "-m", "signet_sync", "--workspace", str(vault), *words, given=given)

    # What nobody said is not shown otherwise, and these runs stand for sessions of a person.
    (folder / "config.toml").write_text("[noise]\nheadless = false\n")
    call("git", "init", "-q", ".")
    ours("init", str(vault))
    for number, (place, text) in enumerate(((project, OWN), (home / "kestrel", OTHER))):
        summary = f"# Part\n\n## Decisions\n\n- {text}\n"
        document = {"session_id": f"earlier-{number}", "project": str(place), "transcript": "-", "summary": summary}
        ours("session", "end", "--input", "-", given=json.dumps(document))
    before = set(vault.rglob("*.md"))
    ours("hooks", "install", name)
    print(f"{name}: {call(run.first[0], '--version').strip()}")
    steps = [("start", [*run.first, QUESTION], 1_000), ("resume", [*run.resumed, "Thank you, and then?"], 99_000)]
    if run.compact:
        steps.append(("compaction", [*run.resumed, run.compact], 1_000))
    steps.append(("after it", [*run.resumed, "And what is next?"], 1_000))
    for step, words, tokens in [*steps, ("a new start", [*run.first, "Go on, please."], 1_000)]:
        model.requests.clear()
        if step == "a new start":
            ours("session", "take-spool")
            ours("reindex")
        model.tokens = tokens
        call(*words)
        for one in model.requests:
            blocks = one.count("signet-memory") // 2
            held = [what for what, text in _LOOKED_FOR.items() if text in one.replace(json.dumps(ANSWER)[1:-1], "")]
            print(f"  {step}: {len(one):,} characters, {blocks} blocks: {', '.join(held) or 'nothing'}")
    ours("session", "take-spool")
    new = [path.read_text() for path in set(vault.rglob("memory/*.md")) - before]
    back = [text for text in new if any(one in text for one in (OWN, OTHER, "signet-memory"))]
    print(f"  vault: {len(new)} new files, {len(back)} with what was injected")
    model.shutdown()


if __name__ == "__main__":
    main()
