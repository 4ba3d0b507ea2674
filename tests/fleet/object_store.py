"""An S3 server in this process (moto, where it is installed), with faults on demand."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.request import Request, urlopen

import pytest

Fault = Callable[
    [str, str], int
]  # of a method and a path with its query: the status to answer with, 0 for none; it may wait first


_CODES = {403: "AccessDenied", 409: "ConditionalRequestConflict", 412: "PreconditionFailed"}
_CODES |= {500: "InternalError", 503: "SlowDown"}


class Store:
    """The server: its address, every request that it was asked (method, path and query), and its faults."""

    def __init__(self) -> None:
        self.address = ""
        self.asked: list[str] = []
        self.fault: Fault = lambda _method, _path: 0
        self.system: Any = None

    def wrap(self, application: Any) -> Callable[[dict[str, Any], Any], Iterable[bytes]]:
        """The application behind the faults."""

        def answer(environ: dict[str, Any], start: Any) -> Iterable[bytes]:
            method, asked = environ["REQUEST_METHOD"], f"{environ['PATH_INFO']}?{environ.get('QUERY_STRING', '')}"
            self.asked.append(f"{method} {asked}")
            status = self.fault(method, asked)
            if not status:
                return application(environ, start)
            code = _CODES[status]
            start(f"{status} fault", [("Content-Type", "application/xml")])
            return [f"<Error><Code>{code}</Code><Message>a fault of the test</Message></Error>".encode()]

        return answer


@contextmanager
def s3() -> Iterator[Store]:
    """Runs the server, with a bucket `bucket`; `s3://` is this one meanwhile. Skips the test without moto and s3fs."""
    server = pytest.importorskip("moto.server", reason="pip install 'moto[server]' s3fs")
    s3fs = pytest.importorskip("s3fs", reason="pip install 'moto[server]' s3fs")
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import make_server

    assert server is not None
    store = Store()
    application = store.wrap(DomainDispatcherApplication(create_backend_app))
    listening = make_server("127.0.0.1", 0, application, threaded=True)
    thread = threading.Thread(target=listening.serve_forever, daemon=True)
    thread.start()
    store.address = f"http://127.0.0.1:{listening.port}"
    with pytest.MonkeyPatch.context() as machine:
        for name, value in (
            ("AWS_ENDPOINT_URL", store.address),
            ("AWS_ACCESS_KEY_ID", "key"),
            ("AWS_SECRET_ACCESS_KEY", "secret"),
            ("AWS_DEFAULT_REGION", "us-east-1"),
            ("AWS_MAX_ATTEMPTS", "2"),
        ):
            machine.setenv(name, value)
        machine.setattr(s3fs.S3FileSystem, "retries", 2)
        s3fs.S3FileSystem.clear_instance_cache()
        store.system = s3fs.S3FileSystem(use_listings_cache=False)
        # moto keeps buckets for the whole process.
        urlopen(Request(f"{store.address}/moto-api/reset", method="POST")).close()
        store.system.mkdir("bucket")
        try:
            yield store
        finally:
            s3fs.S3FileSystem.clear_instance_cache()
            listening.shutdown()
            listening.server_close()
            thread.join()
