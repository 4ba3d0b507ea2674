"""Tells a session before an edit or a command, and after a failure, what its project knows of exactly this.

Silent unless a standing statement or a dead end names this file, this command or this error; each once a session.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from contextlib import suppress

from signet_sync.capture import injections
from signet_sync.capture.injections import HookSession, Injection, Moment
from signet_sync.digest.tried import core_of
from signet_sync.formats.handle import handle
from signet_sync.formats.lazy_pattern import late
from signet_sync.formats.managed_block import neutral
from signet_sync.formats.timestamps import short_day
from signet_sync.memories.score import day_start
from signet_sync.pages import context
from signet_sync.pages.hook_context import NoIndex, own_project_of, readable_index, record_of
from signet_sync.pages.sections import StatementView, plain
from signet_sync.pages.staleness import PATH, marks
from signet_sync.pages.store import views
from signet_sync.text.token_estimate import estimate_tokens

BUDGET = 140  # tokens, with the marks around it
_LONGEST = 0.02  # seconds that the index may take
_TEXT = 240  # characters of a statement

# A name that a file of many folders has says nothing without its folder.
_DISTINCT = late(r"[\w]+[_-][\w.]+|[a-z]+[A-Z]\w+|\w{13,}")
_QUOTED = late(r"\"([^\"]{4,200})\"")
_PARTS = late(r"&&|\|\||;|\n|\|")
_LOOKS = frozenset("ls cat cd echo grep rg find sed head tail pwd wc which git rm mv cp mkdir touch sleep true".split())
# What names an error and nothing else: ERR_PNPM_UNEXPECTED_STORE, TS2352, E0308.
_ERROR = late(r"\b[A-Z][A-Z0-9]+(?:_[A-Z0-9]+)+\b|\b(?:TS|SC|E|CS|C)\d{3,5}\b")
_QUOTE = 14  # characters of a statement's quote that an error has


def answer_moment(session: HookSession, moment: Moment) -> Injection:
    """Returns what is known of a file, command or error, between marks; "" for nothing."""
    if not session.id or session.shared or not session.project:
        return Injection("")
    held = injections.read(session.folder, session.agent_id, session.id)
    given = held.ids if held is not None else set()
    now_us = time.time_ns() // 1000
    mark, view = "", None
    with suppress(NoIndex), readable_index(session, _LONGEST) as database:
        name, belongs = own_project_of(session, database)
        found = views.standing(database, session.agent_id, now_us, belongs) if name else []
        itself = views.sessions_of(database, {one.path for one in found if one.path})
        for one in found:
            if one.id not in given and itself.get(one.path or "") != session.id and names(one, moment):
                mark = marks(session.project, [one], views.deeds(database, session.agent_id, [one.id])).get(one.id, "")
                view = one
                break
    if view is None:
        return Injection("")
    who = "" if view.kind == "tried" else f" ({view.speaker})"
    line = f"- {view.kind}{who}, {short_day(view.latest_us, day_start(now_us))}: {plain(view.text, _TEXT)}{mark}"
    text = context.wrap(neutral(f"{line} {handle(view.id)}"), session.root, session.program)
    if estimate_tokens(text) > BUDGET:
        return Injection("")

    def record() -> str:
        with suppress(OSError), record_of(session) as written:
            written.at_prompts.append(view.id)
            written.characters += len(text)
        return text

    return Injection(text, record)


def names(view: StatementView, moment: Moment) -> bool:
    """Returns whether a statement names exactly the file, the command or the error of a moment."""
    if moment.error and _names_error(view.text, moment):
        return True
    if moment.command:
        return _names_command(view, moment.command)
    if view.kind == "tried" and _QUOTED.search(view.text):
        return False  # it is of a command
    named = PATH.findall(view.text)[: 1 if view.kind == "decision" else None]  # others a question names in passing
    return any(_is_file(one, path) for path in moment.path.split(", ") if path for one in named)


def _is_file(name: str, path: str) -> bool:
    name = name.rstrip(".").removeprefix("./")
    if "/" in name.strip("/"):
        return f"/{path}".endswith(f"/{name.lstrip('~/')}")
    return _DISTINCT.match(name) is not None and os.path.basename(path) == name


def _names_command(view: StatementView, command: str) -> bool:
    """Returns whether a dead end is of a part of a command line; of any other statement whether it has its words."""
    parts = {core_of(command), *(core_of(part) for part in _PARTS.split(command))} - {""}
    if view.kind == "tried":
        tried = _QUOTED.search(view.text)
        return tried is not None and tried[1] in parts
    return any(re.search(rf"(?<![\w./-]){re.escape(said)}(?![\w/-])", view.text) for said in _list_command_names(parts))


def _list_command_names(parts: set[str]) -> Iterator[str]:
    """Yields the words by which a statement names a command: all of them, or the first three."""
    for part in parts:
        words = part.split()
        if len(words) > 1 and (words[0] not in _LOOKS or len(words) > 2):
            yield part
            if len(words) > 3:
                yield " ".join(words[:3])


def _names_error(text: str, moment: Moment) -> bool:
    codes = set(_ERROR.findall(text))
    if codes and codes & set(_ERROR.findall(moment.error)):
        return True
    return any(len(quote) >= _QUOTE and quote in moment.error for quote in _QUOTED.findall(text))
