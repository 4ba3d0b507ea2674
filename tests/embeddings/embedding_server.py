"""A server that makes vectors, as Ollama and others do, and a small model for it."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np

DIMENSIONS = 64
_WORD = re.compile(r"[^\W_]+")
Vector = list[float]
Act = Callable[["Handler", list[str]], None]


def words(text: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(text)]


def hashed(text: str, dimensions: int = DIMENSIONS) -> Vector:
    """The words of a text, each as a direction of its own: what shares words is similar."""
    total = np.zeros(dimensions)
    for word in words(text):
        seed = int.from_bytes(sha256(word.encode()).digest()[:4], "big")
        total += np.random.default_rng(seed).standard_normal(dimensions)
    return [float(number) for number in total]


# What the model takes for the same word.
SYNONYMS = {"automobile": "car", "vehicle": "car", "petrol": "fuel", "wheels": "tyres", "need": "needs"}


def understood(text: str) -> Vector:
    """The same by a model that knows synonyms."""
    return hashed(" ".join(SYNONYMS.get(word, word) for word in words(text)))


class Handler(BaseHTTPRequestHandler):
    """Answers each request by the server's present act."""

    protocol_version = "HTTP/1.1"
    server: EmbeddingServer

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append(body["input"])
        self.server.requests.append((self.path, body["model"], self.headers.get("Authorization")))
        with suppress(OSError):
            self.server.act(self, body["input"])

    def say(self, document: Any, status: int = 200) -> None:
        raw = document if isinstance(document, bytes) else json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, *_: Any) -> None:
        pass


class EmbeddingServer(ThreadingHTTPServer):
    """`asked` are the texts of each request; `act` answers one, `model` makes a vector."""

    daemon_threads = True
    block_on_close = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: list[list[str]] = []
        self.requests: list[tuple[str, str, str | None]] = []
        self.model: Callable[[str], Vector] = hashed
        self.act: Act = vectors
        self.stopped = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"

    @property
    def texts(self) -> list[str]:
        return [text for some in self.asked for text in some]

    def handle_error(self, *_: Any) -> None:
        pass


@contextmanager
def serving() -> Iterator[EmbeddingServer]:
    with EmbeddingServer() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.stopped.set()
        server.shutdown()
        thread.join()


def document(found: Sequence[Any]) -> dict[str, Any]:
    # Not in order: the index counts.
    return {"data": [{"index": number, "embedding": one} for number, one in reversed(list(enumerate(found)))]}


def vectors(handler: Handler, texts: list[str]) -> None:
    handler.say(document([handler.server.model(text) for text in texts]))


# ── what goes wrong ──


def hang(handler: Handler, texts: list[str]) -> None:
    handler.server.stopped.wait(600)


def say_vectors(make: Callable[[list[str]], Sequence[Any]]) -> Act:
    return lambda handler, texts: handler.say(document(make(texts)))


FAULTS: dict[str, Act] = {
    "hangs": hang,
    "other dimensions": say_vectors(lambda texts: [hashed(text, DIMENSIONS // 2) for text in texts]),
    "no numbers": say_vectors(lambda texts: [[float("nan")] * DIMENSIONS for _ in texts]),
    "infinite": say_vectors(lambda texts: [[1e300] * DIMENSIONS for _ in texts]),
    "too few": say_vectors(lambda texts: [hashed(text) for text in texts[1:]]),
    "no vectors": say_vectors(lambda texts: ["a vector"] * len(texts)),
    "no JSON": lambda handler, texts: handler.say(b"<html>"),
    "broken": lambda handler, texts: handler.say({"error": "out of memory"}, 500),
}
