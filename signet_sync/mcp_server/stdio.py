"""Serves over stdin and stdout until stdin closes or a signal arrives."""

from __future__ import annotations

import contextvars
import json
import os
import signal
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import anyio
import anyio.to_thread
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp_types import PARSE_ERROR, ErrorData, JSONRPCError
from pydantic import ValidationError

from signet_sync.app.upgrade import load_all

if TYPE_CHECKING:
    from mcp.shared._stream_protocols import ReadStream, WriteStream

_REST = 5.0  # seconds


def serve(server: Server[Any]) -> int:
    """Serves until the end; returns the exit code."""
    try:
        anyio.run(_served, server)
    except* BrokenPipeError:
        pass  # the client no longer reads
    return 0


async def _served(server: Server[Any]) -> None:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_leave_on_signal)
        tasks.start_soon(_load_rest)
        async with stdio_server() as (incoming, outgoing):
            messages = _Messages(incoming, outgoing)
            await server.run(messages, outgoing, server.create_initialization_options())
        tasks.cancel_scope.cancel()


async def _load_rest() -> None:
    """Imports what later calls need, once the first ones are answered."""
    await anyio.sleep(_REST)
    await anyio.to_thread.run_sync(load_all, abandon_on_cancel=True)


async def _leave_on_signal() -> None:
    """Ends the process: a thread waiting for stdin cannot be cancelled, and each of our writes can be interrupted."""
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for number in signals:
            os._exit(130 if number == signal.SIGINT else 0)


class _Messages:
    """Incoming messages; a line that cannot be parsed is answered with an error, so that its client does not wait.

    A request may contain half of a surrogate pair, which some languages write but UTF-8 cannot represent.
    """

    def __init__(self, incoming: ReadStream[SessionMessage | Exception], outgoing: WriteStream[SessionMessage]) -> None:
        self._incoming = incoming
        self._outgoing = outgoing

    @property
    def last_context(self) -> contextvars.Context | None:
        """Returns the context, which the SDK expects of its own streams."""
        return getattr(self._incoming, "last_context", None)

    async def receive(self) -> SessionMessage | Exception:
        """Returns the next message."""
        while True:
            item = await self._incoming.receive()
            if not isinstance(item, ValidationError):
                return item
            error = ErrorData(code=PARSE_ERROR, message="this line is not a JSON-RPC message in UTF-8")
            await self._outgoing.send(SessionMessage(JSONRPCError(jsonrpc="2.0", id=_id_in(item), error=error)))

    async def aclose(self) -> None:
        """Closes the stream."""
        await self._incoming.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


def _id_in(error: ValidationError) -> int | str | None:
    """Returns the id of the request in an invalid line, if Python's more tolerant parser finds one."""
    line = error.errors()[0]["input"]
    try:
        request = json.loads(line) if isinstance(line, str) else line
    except (ValueError, RecursionError):
        return None
    found = request.get("id") if isinstance(request, dict) else None
    if isinstance(found, str):
        return found if found.isprintable() else None
    return found if isinstance(found, int) and not isinstance(found, bool) else None
