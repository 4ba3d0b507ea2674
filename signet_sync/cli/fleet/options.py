"""Declares what the commands of `fleet` share: the targets, and the engine that runs the work."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import click

from signet_sync.fleet.engines import Engine

_Command = TypeVar("_Command", bound="Callable[..., Any]")

_TARGET = "TARGET: a folder, a URL or a glob of them, or @FILE; see signet-sync fleet --help."


def over_workspaces(command: _Command) -> _Command:
    """Adds TARGET... and the options of the engine to a command, which gets them as `targets` and `engine`."""

    @wraps(command)
    def called(*given: Any, engine: str, address: str | None, workers: int | None, **more: Any) -> Any:
        if address is not None and engine != "ray":
            raise click.UsageError("--address is of a Ray cluster: use it with --engine ray")
        return command(*given, engine=Engine(engine, address, workers), **more)

    called.__doc__ = f"{command.__doc__}\n\n    {_TARGET}"
    for add in (
        click.argument("targets", type=click.Path(readable=False), metavar="TARGET...", nargs=-1, required=True),
        click.option(
            "--workers", type=click.IntRange(1), metavar="N", help="Workspaces at a time (default: one a core)."
        ),
        click.option(
            "--address", metavar="HOST:PORT", help="A Ray cluster that has signet-sync (default: this machine)."
        ),
        click.option(
            "--engine",
            type=click.Choice(["ray", "local"]),
            default="ray",
            show_default=True,
            help="Ray, or processes of this machine without it.",
        ),
    ):
        called = add(called)
    return called  # type: ignore[return-value]
