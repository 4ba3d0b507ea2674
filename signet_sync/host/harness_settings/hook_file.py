"""Plans and checks one file of hook groups, as Claude Code, Codex and Gemini CLI have it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from signet_sync.errors import SignetSyncError
from signet_sync.host.harness_settings import document, hook_groups
from signet_sync.host.harness_settings.condition import Condition, Edit, HarnessProblem
from signet_sync.host.harness_settings.hook_groups import Group, HandlerPlace
from signet_sync.host.harness_settings.program import Program, command_problems, workspace_of

OUTDATED = "the hooks were written by another version; what they do at prompts may differ"


def merging(path: str, wanted: Mapping[str, Group]) -> Edit:
    """Returns the edit after which a file contains exactly these groups of ours. Raises `ConfigError`."""
    text = document.load(path)
    return document.edit(path, text, hook_groups.merged(text, wanted, path))


def stripping(path: str) -> Edit:
    """Returns the edit that removes all groups of ours from a file. Raises `ConfigError`."""
    text = document.load(path)
    return document.edit(path, text, None if text is None else hook_groups.stripped(text, path))


def read(path: str) -> tuple[object, list[HandlerPlace], tuple[HarnessProblem, ...]]:
    """Returns the file's value, our handlers in it, and problems if it cannot be read."""
    try:
        text = document.load(path)
        data = {} if text is None else hook_groups.parsed(text, path)
    except SignetSyncError as error:
        return {}, [], (unparsable(error.message),)
    except OSError as error:
        return {}, [], (unparsable(f"{error.strerror}"),)
    return data, hook_groups.places(data), ()


def unparsable(message: str) -> HarnessProblem:
    """Returns the problem of settings that cannot be read."""
    return HarnessProblem(
        "settings-unparsable", message, "until this is corrected, hooks can be neither added nor removed"
    )


def condition(
    name: str,
    folder: str,
    path: str,
    ours: Sequence[HandlerPlace],
    wanted: Mapping[str, Group],
    program: Program,
    *,
    problems: Sequence[HarnessProblem] = (),
    trusted: bool | None = None,
) -> Condition:
    """Returns a harness's state from our handlers in its file; problems shared by several handlers are listed once."""
    calling = {place.event for place in ours}
    events = (*(event for event in wanted if event in calling), *sorted(calling - wanted.keys()))
    missing = tuple(event for event in wanted if event not in events)
    wrong = list(problems)
    for place in ours:
        wrong += command_problems(place.words, program.hook(name), name)
    if ours and not wrong and [place for place in ours if place.alone and place.whole != wanted.get(place.event)]:
        wrong.append(HarnessProblem("outdated", OUTDATED, program.again(name)))
    twice = [event for event in wanted if sum(place.event == event for place in ours) > 1]
    if twice and not wrong:
        wrong.append(HarnessProblem("twice", f"called more than once for: {', '.join(twice)}", program.again(name)))
    if events and missing:
        wrong.append(HarnessProblem("partly", f"not installed for: {', '.join(missing)}", program.again(name)))
    workspace = workspace_of(ours[0].words) if ours else None
    return Condition(
        name, os.path.isdir(folder), path, events, missing, workspace, tuple(dict.fromkeys(wrong)), trusted
    )
