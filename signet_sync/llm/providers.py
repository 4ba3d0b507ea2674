"""Calls a model: the provider protocol, none, a program, or a server that speaks OpenAI's API or Anthropic's.

Each provider answers within its `timeout`, whatever the other side does, or raises `ProviderError`. Keys, prompts and
answers are never part of a message. `httpx` (the extra `llm`) is imported only when a server is configured.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

from signet_sync.errors import ConfigError, ProviderError, extra_hint
from signet_sync.formats.ids import MODEL_FOLDER, MODEL_MARK
from signet_sync.llm.token_budget import TokenBudget, prompt_tokens
from signet_sync.settings.model_choice import ANTHROPIC
from signet_sync.storage import locations
from signet_sync.storage.durable import private_folder
from signet_sync.text.token_estimate import estimate_tokens

if TYPE_CHECKING:
    import httpx

ANSWER_LIMIT = 256 * 1024  # bytes
CHILD = "SIGNET_SYNC_CHILD"  # set for programs that we start, so that their own hooks ignore our sessions
_CHUNK = 64 * 1024
_GLANCE = 0.02  # seconds between two checks whether a program has ended
_REAPING = 0.5  # seconds; only a process that hangs in the kernel takes longer to die
_MOST_TOKENS = 10**9  # that a server is believed to have taken for one answer
_ANTHROPIC_VERSION = "2023-06-01"
_INSTALL = extra_hint("llm")


class Provider(Protocol):
    """Answers prompts."""

    @property
    def name(self) -> str:
        """Returns the provider's name for the log."""

    def complete(self, system: str, prompt: str, *, max_tokens: int) -> str:
        """Returns the answer to a prompt, unchanged. Raises `ProviderError`."""


class _Refused(ProviderError):
    """A call was refused before anything worked on it, or reached nobody: nothing was spent."""


@contextmanager
def _reserve_tokens(budget: TokenBudget | None, most: int) -> Iterator[Callable[[int], None]]:
    """Sets tokens aside for a call; gives what corrects them. Raises `BudgetSpent`.

    What was asked may have been worked on, even if no answer came back: then the reservation stays.
    """
    reserved = budget.reserve(most) if budget is not None else None

    def settle(tokens: int) -> None:
        if budget is not None and reserved is not None:
            budget.settle(reserved, tokens)

    try:
        yield settle
    except _Refused:
        settle(0)
        raise


# --- a program ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandProvider:
    """A program that reads the prompt on stdin and prints the answer, both UTF-8; never run through a shell.

    It gets `environ` and `SIGNET_SYNC_CHILD=1`, runs in a folder of its own, by which the session that it may leave is
    recognised, and in its own process group, which is killed after the call. `timeout` is in seconds. Its tokens are
    estimated.
    """

    command: tuple[str, ...]
    timeout: float
    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ), repr=False)
    name: str = "command"
    budget: TokenBudget | None = field(default=None, compare=False, repr=False)

    def complete(self, system: str, prompt: str, *, max_tokens: int) -> str:
        """Returns the program's answer. Ignores `max_tokens`: programs have no such option. Raises `ProviderError`."""
        system = f"{MODEL_MARK}\n{system}"
        with _reserve_tokens(self.budget, prompt_tokens((system, prompt)) + max_tokens) as settle:
            answer = self._answer(system, prompt)
            settle(prompt_tokens((system, prompt)) + estimate_tokens(answer))
        return answer

    def _answer(self, system: str, prompt: str) -> str:
        deadline = time.monotonic() + self.timeout
        with self._run_program() as process:
            try:
                answer = _exchange(process, f"{system}\n\n{prompt}\n".encode("utf-8", "replace"), deadline)
                status = process.wait(max(0.0, deadline - time.monotonic()))
            except (TimeoutError, subprocess.TimeoutExpired):
                raise _too_late(self.timeout) from None
        if status:
            how = f"status {status}" if status > 0 else f"signal {-status}"
            raise ProviderError(f"the program ended with {how}", hint="run it by hand with a prompt on its stdin")
        return answer.decode("utf-8", "replace")

    @contextmanager
    def _run_program(self) -> Iterator[subprocess.Popen[bytes]]:
        try:
            process = subprocess.Popen(
                [os.path.expanduser(self.command[0]), *self.command[1:]],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,  # it may repeat the prompt
                cwd=self._folder(),
                env={**self.environ, CHILD: "1"},
                start_new_session=True,
                bufsize=0,
            )
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else "its arguments cannot be passed on"
            raise _Refused(f"the program cannot be started: {reason}", hint="name it by its full path") from None
        try:
            yield process
        finally:
            # Also after a good answer: child processes could keep our pipes open for ever.
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            if process.stdout is not None:
                process.stdout.close()
            with suppress(subprocess.TimeoutExpired):
                process.wait(_REAPING)

    def _folder(self) -> str:
        place = os.path.join(locations.base(self.environ), MODEL_FOLDER)
        try:
            private_folder(place)
        except OSError:
            return "/"  # the mark in the prompt says the same
        return place


def _exchange(process: subprocess.Popen[bytes], prompt: bytes, deadline: float) -> bytes:
    """Writes the prompt and reads stdout until the program closes it or ends.

    Raises `TimeoutError`, and `ProviderError` for an answer that is too long.
    """
    assert process.stdin is not None and process.stdout is not None
    threading.Thread(target=_feed, args=(process.stdin, prompt), name="signet-sync-llm", daemon=True).start()
    answer = bytearray()
    with selectors.DefaultSelector() as ready:
        ready.register(process.stdout, selectors.EVENT_READ)
        while (left := deadline - time.monotonic()) > 0:
            # Checked before reading: once the program has ended, everything it wrote is in the pipe.
            ended = process.poll() is not None
            if ready.select(0 if ended else min(left, _GLANCE)):
                chunk = os.read(process.stdout.fileno(), _CHUNK)
                answer += chunk
                if len(answer) > ANSWER_LIMIT:
                    raise _too_long()
                ended = not chunk
            if ended:
                return bytes(answer)
    raise TimeoutError


def _feed(pipe: IO[bytes], prompt: bytes) -> None:
    """Writes all that a program reads; it may stop, or be killed."""
    rest = memoryview(prompt)
    with suppress(OSError, ValueError), pipe:
        while rest:
            rest = rest[pipe.write(rest[:_CHUNK]) :]


# --- a server -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpProvider:
    """A server with OpenAI's `/chat/completions`, or Anthropic's `/messages` if `name` is `anthropic`.

    `endpoint` is its base URL, usually ending in `/v1`.

    One call takes at most `timeout` seconds in total. Redirects are not followed: text and key are sent only where the
    settings say. A server on this machine is never called through a proxy. Raises `ConfigError` if `httpx` is not
    installed.
    """

    endpoint: str
    model: str
    timeout: float
    key: str = field(default="", repr=False)
    name: str = "openai-compatible"
    budget: TokenBudget | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        _httpx()

    def complete(self, system: str, prompt: str, *, max_tokens: int) -> str:
        """Returns the text of the answer. Raises `ProviderError`."""
        prompt = f"{MODEL_MARK}\n{prompt}"  # the server may be a harness's gateway, which keeps what the user says
        asked = {"role": "user", "content": prompt}
        document: dict[str, Any] = {"model": self.model, "stream": False}
        if self.name == ANTHROPIC:
            path = "/messages"
            document |= {"system": system, "messages": [asked], "max_tokens": max_tokens}
        else:
            path = "/chat/completions"
            # OpenAI's newer models refuse the older name of the limit; most other servers know only that one.
            limit = "max_completion_tokens" if urlsplit(self.endpoint).hostname == "api.openai.com" else "max_tokens"
            document |= {"messages": [{"role": "system", "content": system}, asked], limit: max_tokens}
        with _reserve_tokens(self.budget, prompt_tokens((system, prompt)) + max_tokens) as settle:
            raw = self.post(path, document, limit=ANSWER_LIMIT)
            settle(_usage(raw) or prompt_tokens((system, prompt)) + estimate_tokens(raw.decode("utf-8", "replace")))
        return _content(raw)

    def post(self, path: str, document: Mapping[str, Any], *, limit: int) -> bytes:
        """Returns the answer to a document, at most `limit` bytes; it takes nothing of the budget.

        Raises `ProviderError`. The request is made in its own thread, because httpx's timeouts cover neither name
        look-ups nor heads that come byte by byte; what is late is not waited for.
        """
        answer: Future[bytes] = Future()

        def run() -> None:
            try:
                answer.set_result(self._exchange(path, json.dumps(document).encode("ascii"), limit))
            except ProviderError as error:
                answer.set_exception(error)
            finally:
                if not answer.done():
                    answer.set_exception(ProviderError("the request failed in an unexpected way"))

        threading.Thread(target=run, name="signet-sync-llm", daemon=True).start()
        try:
            return answer.result(self.timeout)
        except FutureTimeout:
            raise _too_late(self.timeout) from None

    def _exchange(self, path: str, body: bytes, limit: int) -> bytes:
        httpx = _httpx()
        deadline = time.monotonic() + self.timeout
        headers = {"Accept": "application/json", "Content-Type": "application/json"}
        if self.name == ANTHROPIC:
            headers |= {"anthropic-version": _ANTHROPIC_VERSION, "x-api-key": self.key}
        elif self.key:
            headers["Authorization"] = f"Bearer {self.key}"
        client = httpx.Client(timeout=self.timeout, follow_redirects=False, trust_env=not _local(self.endpoint))
        answer = bytearray()
        try:
            with client, client.stream("POST", self.endpoint + path, content=body, headers=headers) as response:
                _check_answer(response)
                for chunk in response.iter_bytes():
                    answer += chunk
                    if len(answer) > limit:
                        raise _too_long(limit)
                    if time.monotonic() > deadline:
                        raise _too_late(self.timeout)
        except (httpx.ConnectTimeout, httpx.ConnectError):
            raise _Refused("the connection failed", hint="is the server running?") from None
        except httpx.TimeoutException:
            raise _too_late(self.timeout) from None
        except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
            what = "connection" if isinstance(error, httpx.TransportError) else "request"
            raise ProviderError(f"the {what} failed ({type(error).__name__})", hint="is the server running?") from None
        return bytes(answer)


class TextRefused(_Refused):
    """The server cannot take this text, for example because it is too long."""


_REMEDIES = {
    401: "check the key that the settings name",
    403: "check the key that the settings name",
    429: "see the limits of your account",
    404: "the endpoint is a base URL, usually ending in /v1, and the server must have the model",
}


_UNFIT = (400, 413, 422)


def _check_answer(response: httpx.Response) -> None:
    """Raises `ProviderError` for anything but a good answer, whose text is not read."""
    status = response.status_code
    if response.is_redirect:
        raise _Refused(
            f"the server redirects ({status})", hint="redirects are not followed; set the endpoint to where it leads"
        )
    if status >= 500:
        raise ProviderError(f"the server answers {status}", hint="see the server's own log")
    if status != 200:
        failed = TextRefused if status in _UNFIT else _Refused if status >= 400 else ProviderError
        raise failed(f"the server answers {status}", hint=_REMEDIES.get(status, ""))


def _content(raw: bytes) -> str:
    """Returns the text of an answer: of the first choice, or Anthropic's; a string, or a list of parts with text.

    Raises `ProviderError`.
    """
    try:
        document = json.loads(raw)
        content = document["choices"][0]["message"]["content"] if "choices" in document else document["content"]
        if isinstance(content, list):
            content = "".join(part["text"] for part in content if part.get("type") == "text")
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        content = None
    if not isinstance(content, str):
        raise ProviderError("the answer is not a chat completion", hint="the endpoint must speak the provider's API")
    return content


def _usage(raw: bytes) -> int:
    """Returns the tokens that the server reports (`usage`); 0 if it reports none that can be."""
    names = ("total_tokens", "prompt_tokens", "completion_tokens", "input_tokens", "output_tokens")
    try:
        usage = json.loads(raw)["usage"]
        parts = [usage.get(name) for name in names]
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return 0
    total, *both = (part if type(part) is int and 0 <= part <= _MOST_TOKENS else 0 for part in parts)
    return max(total, sum(both[:2]), sum(both[2:]))


def _local(endpoint: str) -> bool:
    host = urlsplit(endpoint).hostname or ""
    return host in ("localhost", "::1") or host.startswith("127.")


def _httpx() -> Any:
    try:
        import httpx
    except ImportError:
        raise ConfigError("a server as provider needs httpx, which is not installed", hint=_INSTALL) from None
    return httpx


def _too_late(seconds: float) -> ProviderError:
    return ProviderError(f"no answer within {seconds:.3g} s", hint="set a longer timeout or a smaller model")


def _too_long(limit: int = ANSWER_LIMIT) -> ProviderError:
    return ProviderError(f"the answer is longer than {limit:,} bytes")
