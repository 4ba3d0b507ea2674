"""Makes the JSON schema of each command's `--json` from its type in `answers.py` beside it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import answers
import click
from pydantic import TypeAdapter

from signet_sync.cli import main

# Beside the error stands what some errors have more.
_OPEN = ("Error",)


def type_name(command: str) -> str:
    """Returns the name of the type of a command's answer: `HooksStatus` for `hooks status`."""
    return "".join(word.capitalize() for word in command.replace("-", " ").split())


def schema(command: str) -> dict[str, Any]:
    """Returns the schema of a command's document, or of an `error`; no object has other fields than it names.

    Raises `LookupError` for a command without a type.
    """
    name = type_name(command)
    if not hasattr(answers, name):
        raise LookupError(f"docs/site/answers.py needs a class {name}, the type of `{command} --json`")
    found = TypeAdapter(getattr(answers, name)).json_schema()
    for one in (found, *found.get("$defs", {}).values()):
        if "properties" in one and one.get("title") not in _OPEN:
            one["additionalProperties"] = False
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **found,
        "title": f"signet-sync {command} --json",
    }


def commands(command: click.Command = main.group, words: tuple[str, ...] = ()) -> Iterator[str]:
    """Gives the names of all commands with `--json`, hidden ones too."""
    if any("--json" in parameter.opts for parameter in command.params) and words:
        yield " ".join(words)
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            if below is not None:
                yield from commands(below, (*words, name))


def write(folder: Path) -> None:
    """Writes the schemas of all answers: `hooks-install.json` and so on."""
    folder.mkdir(parents=True, exist_ok=True)
    for command in (*commands(), "error"):
        text = json.dumps(schema(command), indent=2, ensure_ascii=False) + "\n"
        (folder / f"{command.replace(' ', '-')}.json").write_text(text, encoding="utf-8")
