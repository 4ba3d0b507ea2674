"""Providers against a real server and real programs: whatever the other side does, an answer or an error in time."""

import json
import os
import signal
import sys
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from agents import until

from signet_sync.errors import ConfigError, ProviderError, extra_hint
from signet_sync.formats.ids import MODEL_MARK, is_in_model_folder
from signet_sync.llm import provider_choice
from signet_sync.llm.providers import CommandProvider, HttpProvider
from signet_sync.llm.token_budget import RECORD, TokenBudget

KEY = "key-that-nobody-may-see"
PROMPT = "prompt-that-nobody-may-see"


def completion(text="An answer."):
    return json.dumps({"choices": [{"message": {"role": "assistant", "content": text}}]}).encode()


class Handler(BaseHTTPRequestHandler):
    """Records each request and plays the next act; the last one is played again."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.seen.append((self.path, dict(self.headers), json.loads(body or b"null")))
        acts = self.server.acts
        act = acts.pop(0) if len(acts) > 1 else acts[0]
        with suppress(OSError):
            act(self)

    do_GET = do_POST  # what a followed redirect would become

    def log_message(self, *_):
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def handle_error(self, *_):
        pass


@pytest.fixture
def server():
    with Server(("127.0.0.1", 0), Handler) as found:
        found.seen, found.acts, found.stopped = [], [answer(200, completion())], threading.Event()
        found.url = f"http://127.0.0.1:{found.server_port}/v1"
        thread = threading.Thread(target=found.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield found
        found.stopped.set()
        found.shutdown()
        thread.join()


def answer(status, body=b"", **headers):
    def act(handler):
        handler.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        handler.wfile.write(body)

    return act


def drip(raw, pause=0.02):
    """Byte by byte, for as long as anybody listens."""

    def act(handler):
        for byte in raw:
            if handler.server.stopped.wait(pause):
                return
            handler.wfile.write(bytes([byte]))
            handler.wfile.flush()

    return act


def hang(handler):
    handler.server.stopped.wait(600)


def provider(server, **changes):
    values = {"endpoint": server.url, "model": "m", "timeout": 120.0, "key": KEY} | changes
    return HttpProvider(**values)


def ask(found, max_tokens=50):
    return found.complete("system", PROMPT, max_tokens=max_tokens)


def refused(found):
    with pytest.raises(ProviderError) as raised:
        ask(found)
    error = raised.value
    assert error.code == "provider-failed" and KEY not in repr(error) + error.hint
    assert PROMPT not in repr(error) + error.hint and "\n" not in error.message
    return error


def late(found):
    """Of what would take ten minutes nobody waits for the end: that would be told in other words."""
    assert "no answer within" in refused(found).message


@pytest.fixture
def no_thread_is_left():
    """Waits for the end of the threads of requests; those of an earlier test's slow heads may stay longer."""
    before = {*threading.enumerate()}

    def wait():
        new = {*threading.enumerate()} - before
        until(lambda: not any(thread.name == "signet-sync-llm" and thread.is_alive() for thread in new))

    return wait


# --- a server that behaves ------------------------------------------------------------------------------------------


def test_a_server_of_anthropic_s_api_is_asked_as_it_documents(server, tmp_path):
    usage = {"input_tokens": 30, "cache_read_input_tokens": 1, "output_tokens": 9}
    parts = [
        {"type": "thinking", "thinking": "Hm."},
        {"type": "text", "text": "An "},
        {"type": "text", "text": "answer."},
    ]
    server.acts = [answer(200, json.dumps({"type": "message", "content": parts, "usage": usage}).encode())]
    budget = TokenBudget(str(tmp_path / "state"), 1_000)
    assert ask(provider(server, name="anthropic", budget=budget)) == "An answer."
    assert json.loads((tmp_path / "state" / RECORD).read_text())["days"].popitem()[1] == 39
    ((path, headers, body),) = server.seen
    assert path == "/v1/messages" and headers["x-api-key"] == KEY and headers["anthropic-version"]
    assert "Authorization" not in headers
    asked = {"role": "user", "content": f"{MODEL_MARK}\n{PROMPT}"}
    assert body == {"model": "m", "system": "system", "messages": [asked], "max_tokens": 50, "stream": False}


def test_a_server_is_asked_as_openai_documents_it(server, no_thread_is_left):
    assert ask(provider(server)) == "An answer." and KEY not in repr(provider(server))
    ((path, headers, body),) = server.seen
    assert path == "/v1/chat/completions" and headers["Authorization"] == f"Bearer {KEY}"
    assert body == {
        "model": "m",
        "messages": [{"role": "system", "content": "system"}, {"role": "user", "content": f"{MODEL_MARK}\n{PROMPT}"}],
        "max_tokens": 50,
        "stream": False,
    }
    no_thread_is_left()
    ask(provider(server, key=""))
    assert "Authorization" not in server.seen[1][1]


def test_a_server_of_this_machine_is_never_asked_through_a_proxy(server, monkeypatch):
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert ask(provider(server)) == "An answer."


# --- a server that does not -----------------------------------------------------------------------------------------

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


SLOW = {
    "hang": hang,
    "slow body": drip(HEAD + b"Content-Length: 5000\r\n\r\n" + b" " * 5000, pause=0.001),
    "slow chunks": drip(HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + b"1\r\n \r\n" * 5000, pause=0.001),
    "slow head": drip(HEAD + b"X-Slow: " + b"y" * 30_000),  # the last one: its thread stays a while
}


def test_no_server_is_waited_for_beyond_the_timeout(server, no_thread_is_left):
    for name, act in SLOW.items():
        server.acts = [act]
        late(provider(server, timeout=0.2))
        if name != "slow head":
            no_thread_is_left()  # the connection is shut


def test_other_answers_are_final_and_never_repeated_and_redirects_are_not_followed(server):
    for number, status in enumerate((204, 301, 307, 400, 401, 404, 429, 500), 1):
        there = {"Location": f"{server.url}/elsewhere"} if 300 <= status < 400 else {}
        server.acts = [answer(status, b"" if status < 400 else f"{KEY} {PROMPT}".encode(), **there)]
        assert str(status) in refused(provider(server)).message and len(server.seen) == number


SHAPES = [
    b"", b"no json", b"\xff\xfe", b"[]", b"{}", b'"x"', b'{"choices": []}', b'{"choices": [{}]}', b"[" * 200_000,
    b'{"choices": [{"message": {"content": null}}]}', b'{"choices": [{"message": {"content": [1]}}]}',
    b'{"choices": {"0": 1}}', b'{"choices": [{"message": "x"}]}', b"9" * 9000,
]  # fmt: skip


def test_an_answer_of_another_shape_is_an_error(server):
    for body in SHAPES:
        server.acts = [answer(200, body)]
        assert "not a chat completion" in refused(provider(server)).message, body[:60]


def test_an_answer_is_bounded(server, no_thread_is_left):
    server.acts = [answer(200, completion("x" * 10_000_000))]
    assert "longer than" in refused(provider(server)).message
    no_thread_is_left()


def test_without_httpx_the_remedy_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "httpx", None)
    with pytest.raises(ConfigError) as raised:
        HttpProvider(endpoint="http://127.0.0.1", model="m", timeout=1.0)
    assert raised.value.hint == extra_hint("llm")


# --- a program ------------------------------------------------------------------------------------------------------


def shell(script, timeout=120.0):
    return CommandProvider(command=("/bin/sh", "-c", script), timeout=timeout)


def test_a_program_reads_the_prompt_and_prints_the_answer():
    assert ask(shell("cat")) == f"{MODEL_MARK}\nsystem\n\n{PROMPT}\n"
    assert ask(shell(r"printf 'a\377b'")) == "a\ufffdb"


def test_a_program_may_read_all_of_a_large_prompt_or_none_of_it():
    prompt = "é" * 100_000
    assert shell("cat").complete("s", prompt, max_tokens=1) == f"{MODEL_MARK}\ns\n\n{prompt}\n"
    assert shell("exec <&-; echo done").complete("s", "x" * 1_000_000, max_tokens=1) == "done\n"


def test_programs_that_fail(capfd):
    assert "status 1" in refused(shell("cat; cat >&2; exit 1")).message
    assert f"signal {signal.SIGKILL}" in refused(shell("kill -9 $$")).message
    assert "cannot be started" in refused(CommandProvider(command=("/no/such/program",), timeout=1.0)).message
    assert PROMPT not in "".join(capfd.readouterr())


def test_no_program_is_waited_for_beyond_the_timeout():
    for script in ("trap '' TERM INT HUP; while :; do sleep 600; done", "exec >&-; sleep 600", "sleep 600 & wait"):
        late(shell(script, 0.2))


def test_environment_and_folder_of_a_program(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir("/")
    found = CommandProvider(
        command=("/bin/sh", "-c", "echo $SIGNET_SYNC_CHILD $MINE; pwd -P"), timeout=120.0, environ={"MINE": KEY}
    )
    child, mine, folder = ask(found).split()
    assert (child, mine) == ("1", KEY) and is_in_model_folder(folder) and os.stat(folder).st_mode & 0o777 == 0o700
    assert KEY not in repr(found)


def alive(pid):
    """Whether a process runs; one that died and waits to be collected by somebody else does not."""
    try:
        with open(f"/proc/{pid}/stat") as handle:
            return handle.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="processes are looked up in /proc")
def test_a_child_that_keeps_stdout_open_holds_nothing_up(tmp_path):
    note = tmp_path / "pid"
    assert ask(shell(f"sleep 600 & echo $! > {note}; echo fine")) == "fine\n"
    until(lambda: not alive(int(note.read_text())))


def test_endless_output_is_cut_and_its_program_killed():
    assert "longer than" in refused(shell("yes")).message


# --- keys --------------------------------------------------------------------------------------------------------


def test_a_key_file_holds_one_key(tmp_path):
    file = tmp_path / "key"
    file.write_text(f"  {KEY}\n")
    file.chmod(0o600)
    assert provider_choice.read_key(str(file)) == (KEY, False)
    for mode in (0o640, 0o604, 0o644):
        file.chmod(mode)
        assert provider_choice.read_key(str(file)) == (KEY, True)


def test_anything_else_is_no_key_and_nothing_blocks(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    names = ["pipe", "nowhere", "."]
    for number, raw in enumerate((b"", b"a\nb", b"two words", b"\xff", "schlüssel".encode(), b"k\0", b"x" * 5000)):
        (tmp_path / str(number)).write_bytes(raw)
        names.append(str(number))
    for name in names:
        with pytest.raises(ConfigError) as raised:
            provider_choice.read_key(str(tmp_path / name))
        assert raised.value.path and raised.value.hint and "words" not in raised.value.message, name
