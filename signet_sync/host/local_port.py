"""Listens on a port of this machine's own address, which no other machine can reach."""

from __future__ import annotations

import socket

from signet_sync.errors import UsageError

HOST = "127.0.0.1"
_BACKLOG = 64  # clients that connect before the server is ready wait a moment


def listening(port: int, *, code: str) -> socket.socket:
    """Returns a listening socket on a port, 0 for any free one. Raises `UsageError` with the given code."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((HOST, port))
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        raise UsageError(
            f"port {port} cannot be used: {error.strerror}", hint="omit --port to use any free port", code=code
        ) from None
    return listener
