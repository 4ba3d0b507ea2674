"""Edits our groups in a document `{"hooks": {EVENT: [{"hooks": [handler, …]}, …]}}`, shared by three harnesses."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from signet_sync.host.harness_settings import document, json_text
from signet_sync.host.harness_settings.json_text import Child
from signet_sync.host.harness_settings.program import OURS

Group = dict[str, Any]


@dataclass(frozen=True, slots=True)
class HandlerPlace:
    """The position of a handler of ours: its event, the index of its group and its own index in the group."""

    event: str
    group: int
    handler: int
    whole: Group
    own: dict[str, Any]

    @property
    def alone(self) -> bool:
        """Returns whether the group contains only this handler."""
        return len(self.whole["hooks"]) == 1

    @property
    def words(self) -> list[str]:
        """Returns the command's words; empty if a shell could not split them."""
        return _words(self.own)


def _words(handler: Mapping[str, Any]) -> list[str]:
    try:
        words = shlex.split(str(handler.get("command", "")))
    except ValueError:
        return []
    arguments = handler.get("args")
    return [*words, *map(str, arguments)] if isinstance(arguments, list) else words


def _calls(handler: object, command: re.Pattern[str]) -> bool:
    if not isinstance(handler, dict):
        return False
    arguments = handler.get("args")
    words = [handler.get("command", ""), *(arguments if isinstance(arguments, list) else ())]
    return command.search(" ".join(map(str, words))) is not None


def places(data: object, command: re.Pattern[str] = OURS) -> list[HandlerPlace]:
    """Returns the handlers that call a command, ours by default, in the document's order; other shapes are left out."""
    hooks = data.get("hooks") if isinstance(data, dict) else None
    return [
        HandlerPlace(event, g, h, group, handler)
        for event, groups in (hooks.items() if isinstance(hooks, dict) else ())
        for g, group in enumerate(groups if isinstance(groups, list) else ())
        for h, handler in enumerate(_handlers(group))
        if _calls(handler, command)
    ]


def _handlers(group: object) -> list[Any]:
    handlers = group.get("hooks") if isinstance(group, dict) else None
    return handlers if isinstance(handlers, list) else []


def parsed(text: str, path: str) -> dict[str, Any]:
    """Parses a file of hooks. Raises `ConfigError` with line and remedy if it cannot be edited safely."""
    data = document.parsed(text, path)
    if not isinstance(data.get("hooks", {}), dict):
        raise document.unusable(path, '"hooks" is not an object', "correct this")
    return data


def merged(text: str | None, wanted: Mapping[str, Group], path: str) -> str:
    """Returns the document with exactly our groups in it, one for each event; without a document, a new one.

    Groups of ours are replaced in place, missing ones are appended. Raises `ConfigError`.
    """
    if text is None:
        return json_text.new_document({"hooks": {event: [group] for event, group in wanted.items()}})
    first: dict[str, HandlerPlace] = {}
    for place in places(parsed(text, path)):
        first.setdefault(place.event, place)
    for event, group in wanted.items():
        if event in first:
            text = _refreshed(text, first[event], group)
    text = _completed(text, {event: group for event, group in wanted.items() if event not in first}, path)
    for place in reversed(places(json_text.parse(text))):
        kept = first.get(place.event) if place.event in wanted else None
        surplus = kept is None or (place.group, place.handler) != (kept.group, kept.handler)
        if surplus and place.event in first:
            shorter = _cut(text, place)
            assert shorter is not None, "what is wanted has been put in before, so something is left"
            text = shorter
    return text


def stripped(text: str, path: str) -> str | None:
    """Returns the document without our groups; None if we created it and it has nothing else. Raises `ConfigError`."""
    return [text, *steps_without(text, path)][-1]


def steps_without(text: str, path: str, command: re.Pattern[str] = OURS) -> list[str | None]:
    """Returns the document after the removal of each handler that calls a command, the last one first.

    The last is None if nothing else is left. Raises `ConfigError`.
    """
    found: list[str | None] = []
    shorter: str | None = text
    for place in reversed(places(parsed(text, path), command)):
        if shorter is None:
            break
        shorter = _cut(shorter, place)
        found.append(shorter)
    return found


def appended(text: str, event: str, group: Group, path: str) -> str:
    """Returns the document with one more group at the end of an event's. Raises `ConfigError`."""
    return _completed(text, {event: group}, path)


def _refreshed(text: str, place: HandlerPlace, group: Group) -> str:
    if place.alone and place.whole != group:
        return json_text.replaced(text, _group(text, place), group)
    if not place.alone and place.own != group["hooks"][0]:
        return json_text.replaced(text, _steps(text, place)[3], group["hooks"][0])
    return text


def _completed(text: str, lacking: Mapping[str, Group], path: str) -> str:
    hooks = json_text.member(text, json_text.root(text), "hooks")
    if hooks is None:
        if not lacking:
            return text
        value = {event: [group] for event, group in lacking.items()}
        return json_text.appended(text, json_text.root(text), value, "hooks")
    for event, group in lacking.items():
        groups = json_text.member(text, hooks.value, event)
        if groups is None:
            text = json_text.appended(text, hooks.value, [group], event)
        elif isinstance(groups.data, list):
            text = json_text.appended(text, groups.value, group)
        else:
            raise document.unusable(path, f'"hooks.{event}" is not a list', "correct this")
    return text


def _group(text: str, place: HandlerPlace) -> Child:
    return _steps(text, place)[2]


def _steps(text: str, place: HandlerPlace) -> tuple[Child, Child, Child, Child]:
    """Returns the path to a handler: the member `hooks`, the event's, the group, the handler."""
    hooks = json_text.member(text, json_text.root(text), "hooks")
    assert hooks is not None
    groups = json_text.member(text, hooks.value, place.event)
    assert groups is not None
    group = json_text.children(text, groups.value)[place.group]
    handlers = json_text.member(text, group.value, "hooks")
    assert handlers is not None
    return hooks, groups, group, json_text.children(text, handlers.value)[place.handler]


def _cut(text: str, place: HandlerPlace) -> str | None:
    """Returns the document without one handler and what we added for it; None if nothing else is in it."""
    hooks, groups, group, _ = _steps(text, place)
    if not place.alone:
        handlers = json_text.member(text, group.value, "hooks")
        assert handlers is not None
        return json_text.without(text, handlers.value, place.handler)
    return json_text.cut(text, [(json_text.root(text), hooks), (hooks.value, groups), (groups.value, group)])
