"""Defines requests to views and their answers as plain values, so that views can be called without a server."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from signet_sync.sync.read_only import IndexPlace


@dataclass(frozen=True, slots=True)
class Site:
    """The workspace that is shown, and the agent whose memory is shown if a request names none."""

    place: IndexPlace
    agent: str


@dataclass(frozen=True, slots=True)
class ViewRequest:
    """One request: its agent, path parameters and query (each name once), and the present in microseconds."""

    site: Site
    agent: str
    path: Mapping[str, str]
    query: Mapping[str, str]
    now_us: int


@dataclass(frozen=True, slots=True)
class WebPage:
    """What is shown: a template's name without `.html`, the page's title, its values, the HTTP status."""

    template: str
    title: str
    data: dict[str, Any] = field(default_factory=dict)
    status: int = 200


View = Callable[[ViewRequest], WebPage]
