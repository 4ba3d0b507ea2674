"""A page of `ui` under test: asked as a view, or opened as a browser does, and read as elements and text."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from starlette.testclient import TestClient
from workbench import NOW, Answer, Vault

from signet_sync.app.workspace import open_to_write
from signet_sync.formats.timestamps import parse_instant
from signet_sync.settings.model import Settings
from signet_sync.sync.read_only import IndexPlace
from signet_sync.web.app import make
from signet_sync.web.request import Site, ViewRequest
from signet_sync.web.security import Keys

HOSTILE = "</title><script>alert(1)</script><img src=x onerror=alert(2)> \"'> {{ 1001 * 7 }} \u202eexe.dm"
# What SQLite keeps beside a database that is only read.
BESIDE = ("signet-sync.db-shm", "signet-sync.db-wal")
TOKEN = "the-token"
PORT = 8124
ADDRESS = f"http://127.0.0.1:{PORT}"


def site(root: Path, agent: str = "default", **settings: Any) -> Site:
    """A site over a vault; commands name its workspace."""
    return Site(
        IndexPlace(
            str(root),
            None,
            lambda: Settings(**settings),
            lambda words: f"signet-sync --workspace {shlex.quote(str(root))} {words}",
            open_to_write,
        ),
        agent,
    )


def asked(
    root: Path, agent: str = "default", *, given: Mapping[str, str] | None = None, now: str = NOW, **query: str
) -> ViewRequest:
    """What a view is asked; `given` are parameters of its path."""
    return ViewRequest(site(root), agent, given or {}, query, parse_instant(now) or 0)


def stranger(root: Path, agent: str = "default", *, token: str | Keys = TOKEN, **given: Any) -> TestClient:
    """Somebody who has not been let in yet, and follows no redirect."""
    app = make(site(root, agent), token, PORT, **given)
    return TestClient(app, base_url=ADDRESS, raise_server_exceptions=False, follow_redirects=False)


def visitor(root: Path, agent: str = "default", **given: Any) -> TestClient:
    """Somebody who was let in."""
    found = stranger(root, agent, **given)
    found.follow_redirects = True
    assert found.get("/", params={"token": TOKEN}).status_code == 200
    return found


def run(vault: Vault, command: str, **words: str) -> Answer:
    """A command that a page shows, run as it stands, but that `…` is replaced."""
    first, *arguments = shlex.split(command)
    assert first == "signet-sync" and arguments[:2] == ["--workspace", str(vault.root)]
    return vault.call(*(words.get("words", "…") if one == "…" else one for one in arguments[2:]))


class Elements(HTMLParser):
    """Tags with their attributes, links, and all text of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Remembers an element."""
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        """Remembers text."""
        self.text += data

    @property
    def links(self) -> list[str]:
        """What is linked to."""
        return [one["href"] or "" for tag, one in self.found if tag == "a" and "href" in one]


def harmless(page: str) -> Elements:
    """The elements of a page, on which nothing that a file said became one, ran, or turned the text around."""
    shown = Elements(page)
    for tag, attributes in shown.found:
        assert tag not in ("img", "iframe", "object", "embed", "style", "base"), (tag, attributes)
        assert "style" not in attributes, (tag, attributes)
        places = [attributes.get(name) or "/" for name in ("href", "src", "action") if name in attributes]
        assert all(place.startswith(("/", "#")) and not place.startswith("//") for place in places), (tag, attributes)
        assert tag != "script" or str(attributes.get("src")).startswith("/static/"), attributes
        assert not [name for name in attributes if name.startswith("on")], (tag, attributes)
    assert "7007" not in re.sub("[0-9a-f]{64}", "", page)  # the seal of a form may contain anything
    assert "\u202e" not in page
    return shown
