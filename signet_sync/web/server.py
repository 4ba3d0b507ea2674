"""Serves the page on one port of this machine's own address, until a signal ends it."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import uvicorn

from signet_sync.app.upgrade import load_all
from signet_sync.errors import UsageError
from signet_sync.web.app import make
from signet_sync.web.request import Site
from signet_sync.web.security import TOKEN, Keys

HOST = "127.0.0.1"
_BACKLOG = 64  # clients that connect before the server is ready wait a moment
_GRACE = 1  # seconds for answers in progress


def serve(site: Site, port: int, announce: Callable[[str, str, int], None], *, read_only: bool = False) -> None:
    """Serves until SIGINT or SIGTERM; `announce` gets the address, the one-time address for a browser, and the port.

    Port 0 is a free one. Raises `UsageError` if the port is taken.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener:
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((HOST, port))
            listener.listen(_BACKLOG)
        except OSError as error:
            hint = "omit --port to use any free port"
            message = f"port {port} cannot be used: {error.strerror}"
            raise UsageError(message, hint=hint, code="port-unusable") from None
        asyncio.run(_served(site, listener, announce, read_only=read_only))


async def _served(
    site: Site, listener: socket.socket, announce: Callable[[str, str, int], None], *, read_only: bool
) -> None:
    port: int = listener.getsockname()[1]
    keys, ending = Keys(), asyncio.Event()
    server = _Server(
        uvicorn.Config(
            make(site, keys, port, ending=ending, read_only=read_only),
            http="h11",
            loop="asyncio",
            ws="none",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            log_level="critical",
            access_log=False,  # it would contain the token
            proxy_headers=False,
            server_header=False,
            timeout_graceful_shutdown=_GRACE,
        )
    )

    def end() -> None:
        ending.set()
        server.should_exit = True

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, end)
    address = f"http://{HOST}:{port}/?{TOKEN}="
    announce(address + keys.token, address + keys.once, port)
    loop.run_in_executor(None, load_all)
    await server.serve(sockets=[listener])


class _Server(uvicorn.Server):
    """Leaves the signals to us: uvicorn would raise them again at the end, and the process would die of the signal."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Captures none."""
        yield
