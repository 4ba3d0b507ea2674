"""Messages to the service manager, over real datagram sockets."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from signet_sync.app.heartbeat import Notifier


@pytest.fixture
def manager(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(tmp_path / "notify"))
        listening.settimeout(60)
        monkeypatch.setenv("NOTIFY_SOCKET", listening.getsockname())
        yield listening


def test_every_message_arrives_as_systemd_wants_it(manager: socket.socket) -> None:
    notifier = Notifier()
    notifier.send(Notifier.READY)
    notifier.send(Notifier.ALIVE)
    notifier.send(Notifier.STOPPING)
    assert [manager.recv(4096) for _ in range(3)] == [b"READY=1", b"WATCHDOG=1", b"STOPPING=1"]


@pytest.mark.parametrize("address", ["", "@", "relative/path", "vsock:2:1", "/nonexistent/notify", "/" + "x" * 300])
def test_nobody_listening_is_no_error(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", address)
    notifier = Notifier()
    notifier.send(Notifier.READY)
    notifier.send("\ud800 lone")
    notifier.send(Notifier.ALIVE)


def test_a_full_queue_does_not_hold_up_the_agent(manager: socket.socket) -> None:
    notifier = Notifier()
    for _ in range(2000):  # more than any queue holds: whoever waits for room in it never ends
        notifier.send(Notifier.ALIVE)


@pytest.mark.parametrize(("environ", "seconds"), [
    ({"WATCHDOG_USEC": "60000000"}, 30.0),
    ({"WATCHDOG_USEC": "500000", "WATCHDOG_PID": str(os.getpid())}, 0.25),
    ({"WATCHDOG_USEC": "60000000", "WATCHDOG_PID": str(os.getpid() + 1)}, None),
    ({"WATCHDOG_USEC": "0"}, None),
    ({"WATCHDOG_USEC": "soon"}, None),
    ({"WATCHDOG_USEC": "60000000", "WATCHDOG_PID": ""}, None),
    ({}, None),
])  # fmt: skip
def test_the_interval_is_half_of_what_the_watchdog_allows(
    monkeypatch: pytest.MonkeyPatch, environ: dict[str, str], seconds: float | None
) -> None:
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    assert Notifier().interval == seconds
