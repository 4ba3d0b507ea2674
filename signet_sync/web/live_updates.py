"""Notifies open pages of changes: server-sent events, from checking a few files once a second."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from signet_sync.storage.locations import process_alive, read_heartbeat
from signet_sync.sync.read_only import IndexPlace

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

EVERY = 1.0  # seconds between two checks
_QUIET = 15  # checks without news until a sign of life
_STREAMS = 8  # at once; a browser closes the stream of a hidden tab
_TYPE = "text/event-stream"


class Events:
    """The streams of one workspace."""

    def __init__(self, place: IndexPlace, ending: asyncio.Event) -> None:
        self._place = place
        self._ending = ending
        self._open = 0

    async def answer(self, request: Request) -> Response:
        """Returns a stream, or 503 if too many are open or the server is ending."""
        if self._open >= _STREAMS or self._ending.is_set():
            return Response(status_code=503, headers={"Retry-After": "30"})
        if request.method == "HEAD":
            return Response(media_type=_TYPE)
        return _Counted(self._counted, self._stream(), media_type=_TYPE)

    @contextmanager
    def _counted(self) -> Iterator[None]:
        self._open += 1
        try:
            yield
        finally:
            self._open -= 1

    async def _stream(self) -> AsyncIterator[str]:
        known = self._look()
        yield "retry: 3000\n\n" + _event("hello")
        quiet = 0
        while not await self._rested():
            found = self._look()
            quiet += 1
            if found != known:
                known, quiet = found, 0
                yield _event("changed")
            elif quiet >= _QUIET:
                quiet = 0
                yield ": still here\n\n"

    async def _rested(self) -> bool:
        """Waits until the next check; True if there is none."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._ending.wait(), EVERY)
        return self._ending.is_set()

    def _look(self) -> tuple[object, ...]:
        """Returns what changes with the index or the agent's state, from files of the state folder only.

        Every write to the database goes through its log.
        """
        heartbeat = {**(read_heartbeat(self._place.state()) or {}), "beat_at": None}
        pid = heartbeat.get("pid")
        path = self._place.database
        return heartbeat, isinstance(pid, int) and process_alive(pid), _moved(path), _moved(f"{path}-wal")


class _Counted(StreamingResponse):
    """A stream that counts from the moment it is granted: of many requested at once, none has begun yet."""

    def __init__(self, counted: Callable[[], AbstractContextManager[None]], content: AsyncIterator[str], **given: Any):
        super().__init__(content, **given)
        self._counted = counted

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Sends it until it ends or the client disconnects."""
        with self._counted():
            await super().__call__(scope, receive, send)


def _moved(path: str) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size


def _event(name: str) -> str:
    return f"event: {name}\ndata: {{}}\n\n"
