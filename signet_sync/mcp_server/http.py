"""Serves over HTTP on this machine only: bound to 127.0.0.1, for clients with the token."""

from __future__ import annotations

import signal
import socket
from hmac import compare_digest
from typing import Any

import anyio
import uvicorn
from mcp.server.lowlevel import Server
from mcp.server.transport_security import TransportSecuritySettings
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from signet_sync.host.local_port import HOST

PATH = "/mcp"
_PATIENCE = 3  # seconds for running requests after a signal
_LARGEST_REQUEST = 1 << 20  # bytes
_MOST_SESSIONS = 100


def app_of(server: Server[Any], port: int, token: str) -> TokenGuard:
    """Returns the server as an application, guarded."""
    hosts = [f"{HOST}:{port}", f"localhost:{port}"]
    origins = [f"http://{host}" for host in hosts]
    app = server.streamable_http_app(
        streamable_http_path=PATH,
        max_request_body_size=_LARGEST_REQUEST,
        max_sessions=_MOST_SESSIONS,
        transport_security=TransportSecuritySettings(allowed_hosts=hosts, allowed_origins=origins),
    )
    return TokenGuard(app, hosts, origins, token)


def serve(server: Server[Any], listener: socket.socket, token: str) -> int:
    """Serves until a signal comes; returns the exit code."""
    config = uvicorn.Config(
        app_of(server, listener.getsockname()[1], token),
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="on",
        timeout_graceful_shutdown=_PATIENCE,
    )
    got: list[int] = []
    # uvicorn ends cleanly at a signal and then raises it again for the previous handler.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, _: got.append(number))
    anyio.run(lambda: uvicorn.Server(config).serve(sockets=[listener]))
    return 130 if signal.SIGINT in got else 0


class TokenGuard:
    """Accepts only requests of programs on this machine that have the token.

    A page in a browser has no token, sends another origin, or, if its name was rebound to this machine, another host.
    """

    def __init__(self, app: ASGIApp, hosts: list[str], origins: list[str], token: str) -> None:
        self._app = app
        self._hosts = hosts
        self._origins = origins
        self._expected = f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles one request."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        hosts, origins, given = (headers.getlist(name) for name in ("host", "origin", "authorization"))
        refused = None
        if len(hosts) != 1 or hosts[0] not in self._hosts or any(origin not in self._origins for origin in origins):
            refused = PlainTextResponse("this host or origin is not served here\n", 403)
        elif len(given) != 1 or not compare_digest(given[0].encode("utf-8", "replace"), self._expected):
            refused = PlainTextResponse(
                "the token is missing or wrong\n", 401, {"WWW-Authenticate": 'Bearer realm="signet-sync"'}
            )
        await (refused or self._app)(scope, receive, send)
