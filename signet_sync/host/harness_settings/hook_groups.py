"""Edits hooks in a document `{"hooks": {EVENT: [{"hooks": [handler, …]}, …]}}`, which three harnesses have."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import Any, NamedTuple

from signet_sync.host.harness_settings.program import OURS
from signet_sync.host.harness_settings.settings_text import SettingsText, Way

Handler = dict[str, Any]


class Place(NamedTuple):
    """A handler that calls a command: its event, what leads to it, and itself."""

    event: str
    way: Way
    own: Handler

    @property
    def words(self) -> list[str]:
        """Returns the command's words; empty if a shell could not split them."""
        try:
            return shlex.split(str(self.own["command"]))
        except ValueError:
            return []


def places(data: Mapping[str, Any], command: re.Pattern[str] = OURS) -> list[Place]:
    """Returns the handlers that call a command, ours by default, in the document's order; other shapes are left out."""
    found = []
    hooks = data.get("hooks")
    for event, groups in hooks.items() if isinstance(hooks, dict) else ():
        for position, group in enumerate(groups if isinstance(groups, list) else ()):
            handlers = group.get("hooks") if isinstance(group, dict) else None
            for index, handler in enumerate(handlers if isinstance(handlers, list) else ()):
                if isinstance(handler, dict) and command.search(str(handler.get("command", ""))):
                    found.append(Place(event, ("hooks", event, position, "hooks", index), handler))
    return found


def merge(settings: SettingsText, wanted: Mapping[str, Handler]) -> None:
    """Puts one handler of ours at each event, in place of the first; takes the others out. Raises `ConfigError`."""
    first: dict[str, Way] = {}
    for place in places(settings.data):
        first.setdefault(place.event, place.way)
    surplus = [place for place in places(settings.data) if place.event not in wanted or place.way != first[place.event]]
    for event, handler in wanted.items():
        if event in first:
            settings.put(first[event], handler)
        else:
            settings.append(("hooks", event), {"hooks": [handler]})
    _remove(settings, surplus)


def strip(settings: SettingsText, command: re.Pattern[str] = OURS) -> list[Place]:
    """Takes out the handlers that call a command, and the groups that had only these. Raises `ConfigError`."""
    found = places(settings.data, command)
    _remove(settings, found)
    return found


def _remove(settings: SettingsText, found: list[Place]) -> None:
    for place in reversed(found):
        *group, _, _ = place.way
        settings.remove(tuple(group) if len(settings.at(place.way[:-1])) == 1 else place.way)
