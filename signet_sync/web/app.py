"""Serves the page on one port of this machine: calls views in threads, fills in templates, shows errors."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

import anyio
import uvicorn
from anyio import CapacityLimiter
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from signet_sync.app.daemon import load_all
from signet_sync.errors import SignetSyncError, UsageError
from signet_sync.log import logger
from signet_sync.storage.locations import now_us
from signet_sync.web import formatting, lists, overview, session
from signet_sync.web.acting import Acting, FormTokens
from signet_sync.web.actions import ACTIONS
from signet_sync.web.markdown import Links
from signet_sync.web.request import Site, View, ViewRequest, WebPage, frame_of
from signet_sync.web.security import FORMS, TOKEN, BrowserGuard, Keys, query_of

if TYPE_CHECKING:
    from starlette.types import ASGIApp

Listed = tuple[str, str, View]  # a view's path, name and function
VIEWS: list[Listed] = [
    ("/", "overview", overview.show),
    ("/page", "page", overview.page),
    ("/settings", "settings", overview.settings),
    ("/violations", "violations", overview.problems),
    ("/sessions", "sessions", lists.sessions),
    ("/sessions/{token}/{session:path}", "session", session.session),
    ("/threads", "threads", lists.threads),
    ("/threads/{node}", "node", lists.node),
    ("/recall", "recall", lists.recall),
    ("/entities", "entities", lists.entities),
    ("/entities/{entity}", "entity", lists.entity),
]

HOST = "127.0.0.1"
_BACKLOG = 64  # clients that connect before the server is ready wait a moment
_GRACE = 1  # seconds for answers in progress
_HERE = os.path.dirname(os.path.abspath(__file__))
_AT_ONCE = 4  # requests; each holds a thread and reads the index
_CARRIED = ("agent", "json", TOKEN)  # of the query: not passed to views
_TABLES = ("sessions", "threads", "violations", "recall", "entities", "settings")  # which `?json=1` gives as JSON
_REFUSED = {
    400: ("The form has too many fields, so nothing was done.", "go back and use the form of the page"),
    413: ("The form is too large, so nothing was done.", "go back and shorten the text"),
}
_LARGEST = 1 << 18  # bytes of a form


def make(site: Site, token: str | Keys, port: int, *, read_only: bool = False) -> ASGIApp:
    """Returns the application behind its guard."""
    keys = Keys(token) if isinstance(token, str) else token
    acting = None if read_only else Acting(ACTIONS, FormTokens(keys.cookie))
    return BrowserGuard(_Pages(site, acting).app, keys, port, read_only=read_only)


class _Pages:
    """Answers requests for one site."""

    def __init__(self, site: Site, acting: Acting | None) -> None:
        self._site = site
        self._templates = formatting.environment(os.path.join(_HERE, "templates"))
        self._limiter = CapacityLimiter(_AT_ONCE)
        self._waiting = CapacityLimiter(_AT_ONCE)  # forms wait for their action, and must not keep views waiting
        self._paths = {"static": "/static/{path}"}
        asking = [] if acting is None else [(f"{FORMS}{{action}}", "do", acting.confirm)]
        listed = [*VIEWS, *asking]
        self._paths |= {name: path for path, name, _ in listed}
        routes: list[BaseRoute] = [Route(path, self._endpoint(view), name=name) for path, name, view in listed]
        if acting is not None:
            routes.append(Route(f"{FORMS}{{action}}", self._form_endpoint(acting), methods=["POST"]))
        routes.append(Mount("/static", StaticFiles(directory=os.path.join(_HERE, "static")), name="static"))
        self.app = Starlette(
            routes=routes,
            exception_handlers={HTTPException: self._answer_http_error, Exception: self._answer_unexpected},
        )

    def _endpoint(self, view: View) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            return await anyio.to_thread.run_sync(self._answer, view, request, limiter=self._limiter)

        return answer

    def _form_endpoint(self, acting: Acting) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            given = await _form(request)
            perform = partial(acting.perform, given=given)
            return await anyio.to_thread.run_sync(self._answer, perform, request, limiter=self._waiting)

        return answer

    def _answer(self, view: View, request: Request) -> Response:
        frame = self._frame(request)
        try:
            shown = self._view_request(request, frame["agents"])
        except SignetSyncError as error:
            return self._render(frame, None, _error_page(error))
        try:
            page = view(shown)
        except SignetSyncError as error:
            page = overview.welcome(shown) or _error_page(error)
        except OSError as error:
            hint = "check permissions and free space, then try again"
            page = _message_page(503, error.strerror or type(error).__name__, hint, str(error.filename or ""))
        if "json" in request.query_params and page.template in _TABLES:
            # No markup, whoever reads it.
            text = json.dumps(formatting.plain(page.data), indent=1).replace("<", "\\u003c")
            return Response(text, page.status, media_type="application/json")
        return self._render(frame, shown, page)

    def _frame(self, request: Request) -> dict[str, Any]:
        """Returns the frame; its section is the view of the navigation whose path this path begins with."""
        first = f"/{request.url.path.split('/')[1]}"
        return frame_of(self._site, next((name for name, at in self._paths.items() if at == first), ""))

    def _view_request(self, request: Request, agents: list[str]) -> ViewRequest:
        """Builds the request for a view. Raises `UsageError` for an agent without a memory here."""
        query = dict(query_of(request.scope))
        agent = query.get("agent") or self._site.agent
        if agent != self._site.agent and agent not in agents:
            hint = "the menu of the page lists the agents that have a memory"
            raise UsageError(f"unknown agent: {agent}", hint=hint, code="unknown-agent")
        given = {name: value for name, value in query.items() if name not in _CARRIED}
        return ViewRequest(self._site, agent, dict(request.path_params), given, now_us())

    def _render(self, frame: dict[str, Any], shown: ViewRequest | None, page: WebPage) -> Response:
        shown = shown or ViewRequest(self._site, self._site.agent, {}, {}, now_us())
        values: dict[str, Any] = {
            **page.data,
            "page": page,
            "request": shown,
            "frame": frame,
            "url": Links(self._paths, shown.agent, self._site.agent),
        }
        text = self._templates.get_template(f"{page.template}.html").render(values)
        return Response(text.encode("utf-8", "backslashreplace"), page.status, media_type="text/html")

    async def _answer_http_error(self, request: Request, error: Exception) -> Response:
        """Answers a path that does not exist."""
        status = error.status_code if isinstance(error, HTTPException) else 500
        page = _message_page(
            status, *_REFUSED.get(status, ("There is nothing at this address.", "use the links above"))
        )

        def show() -> Response:
            return self._render(self._frame(request), None, page)

        return await anyio.to_thread.run_sync(show, limiter=self._limiter)

    async def _answer_unexpected(self, request: Request, error: Exception) -> Response:
        """Answers an unexpected error: the traceback goes to the terminal's log, never to a page."""
        logger.opt(exception=error).error("the page failed at {}", request.url.path)
        line = f"unexpected {type(error).__name__}; see the terminal of signet-sync ui"
        return Response(formatting.plain_page([line]), 500, media_type="text/html")


async def _form(request: Request) -> dict[str, str]:
    """Returns the fields of a form, each name once. Raises `HTTPException` for one that is too large."""
    raw = b""
    async for part in request.stream():
        raw += part
        if len(raw) > _LARGEST:
            raise HTTPException(413)
    try:
        return dict(parse_qsl(raw.decode("latin-1"), keep_blank_values=True, errors="replace", max_num_fields=40))
    except ValueError:
        raise HTTPException(400) from None


def _error_page(error: SignetSyncError) -> WebPage:
    """Shows an error of ours as a page: 404 for what is unknown, 400 for a wrong request, else 503."""
    status = 404 if error.code.startswith(("unknown", "no-such")) else 400 if isinstance(error, UsageError) else 503
    return _message_page(status, error.message, error.hint, error.path or "")


def _message_page(status: int, message: str, hint: str, path: str = "") -> WebPage:
    title = "Not found" if status == 404 else "Error"
    return WebPage("error", title, {"message": message, "hint": hint, "path": path}, status)


# ── the server ──


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
        asyncio.run(_serve(site, listener, announce, read_only=read_only))


async def _serve(
    site: Site, listener: socket.socket, announce: Callable[[str, str, int], None], *, read_only: bool
) -> None:
    port: int = listener.getsockname()[1]
    keys = Keys()
    server = _Server(
        uvicorn.Config(
            make(site, keys, port, read_only=read_only),
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
