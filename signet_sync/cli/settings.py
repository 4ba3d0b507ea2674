"""`settings`: lists and explains every setting, and sets one in the person's own file.

The settings are loaded in the functions: the help does without.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import click

from signet_sync.cli.main import Context
from signet_sync.cli.parsing import command
from signet_sync.formats.paths import display

if TYPE_CHECKING:
    from signet_sync.settings.model import KnownSetting


@command("--json")
@click.argument("name", required=False)
@click.argument("value", required=False)
@click.option("--yes", is_flag=True, help="Fetch what recall.meaning needs without asking.")
def settings(context: Context, name: str | None, value: str | None, yes: bool) -> None:
    """List every setting; say what the setting NAME means and may be; set it to VALUE in your own config.toml.

    VALUE `default` takes the setting out of that file.
    A value is taken from the command line, else the environment, else your own config.toml, else the workspace's
    signet-sync.toml, else it is the default. The comments of a file stay. A list is divided by commas.
    """
    if name is None:
        _list(context)
    elif value is None:
        _explain(context, name)
    else:
        _set(context, name, value, yes=yes)


def _list(context: Context) -> None:
    from signet_sync.settings import model

    known, remarks = model.list_settings(context.root)
    for remark in remarks:
        context.say(f"warning: {remark}")
    listed = [_describe(one) for one in known]
    width = max(len(one["name"]) for one in listed)
    lines = []
    for one in listed:
        usual = f"  ({display(one['origin'])}; default {_word(one['default'])})"
        lines.append(f"{one['name']:{width}}  {_word(one['value'])}{'' if one['origin'] == 'default' else usual}")
    context.answer({"settings": listed}, "\n".join(lines))


def _explain(context: Context, name: str) -> None:
    from signet_sync.settings import model

    field = model.require_setting(name)
    limits, choices = field.limits, field.choices
    document = _describe_now(context, field.key) | {
        "meaning": field.doc,
        "type": model.TYPES[type(field.default)],
        "least": None if limits is None else limits[0],
        "most": None if limits is None else limits[1],
        "choices": [one for one in choices if one],
        "variable": model.environment_name(field),
        "in_workspace": field.workspace,
    }
    kind = "one of: " + ", ".join(document["choices"]) if document["choices"] else document["type"]
    lines = [
        document["meaning"],
        f"  may be    {kind}" + (f", {limits[0]:g} to {limits[1]:g}" if limits is not None else ""),
        f"  is        {_word(document['value'])} ({display(document['origin'])})",
        f"  default   {_word(document['default'])}",
        f"  variable  {document['variable']}",
        f"  to change it: signet-sync settings {document['name']} VALUE (default: take it out)",
        *([] if field.workspace else ["  The file of a workspace cannot set it."]),
    ]
    context.answer(document, "\n".join(lines))


def _set(context: Context, name: str, value: str, *, yes: bool) -> None:
    from signet_sync.settings import user_settings

    if name == "recall.meaning":
        _prepare_meaning(context, value, yes=yes)
    path, typed = user_settings.set_value(context.root, name, value)
    document, reset = _describe_now(context, name), value == user_settings.DEFAULT
    shown = f"{name} is {_word(typed)}{', the default, and not' if reset else ''} in {display(path)}"
    if document["origin"] not in (path, "default"):
        shown += f"\n{display(document['origin'])} says {_word(document['value'])}, which counts more"
    context.answer({**document, "path": path}, shown)


def _prepare_meaning(context: Context, chosen: str, *, yes: bool) -> None:
    """Makes a model of this machine ready before the setting names it: libraries, files, one question."""
    from signet_sync.admin import meaning_setup
    from signet_sync.settings.model_choice import LOCAL

    if chosen not in LOCAL and not os.path.isabs(chosen):
        return
    meaning_setup.require_extra()
    if chosen in LOCAL and (wanted := meaning_setup.find_lost(chosen)):
        published = meaning_setup.PUBLISHED[chosen]
        size = sum(one.size for one in wanted) / 1_000_000
        context.confirm(f"fetch {size:.0f} MB from {published.where} (licence {published.licence})?", yes=yes)
        for file in meaning_setup.fetch(chosen, wanted):
            context.say(f"fetched {file.name}, {file.size / 1_000_000:.0f} MB")
    context.say(f"the model answers; {meaning_setup.try_out(chosen, context.place())}")
    context.say("the agent makes them when the machine is idle, the newest first; until then recall goes by words")


def _describe_now(context: Context, key: str) -> dict[str, Any]:
    from signet_sync.settings import model

    return next(_describe(one) for one in model.list_settings(context.root)[0] if one.field.key == key)


def _describe(one: KnownSetting) -> dict[str, Any]:
    default = _plain(one.field.default)
    return {"name": one.field.key, "value": _plain(one.value), "origin": one.origin, "default": default}


def _plain(value: object) -> object:
    """Returns a value as JSON has it, without secrets: somebody may have put a key on the wrong line."""
    from signet_sync.text.sanitizer import sanitize_line

    if isinstance(value, tuple):
        return [sanitize_line(part) for part in value]
    return sanitize_line(value) if isinstance(value, str) else value


def _word(value: object) -> str:
    """Returns a value as it is written in a file."""
    return display(json.dumps(value, ensure_ascii=False))
