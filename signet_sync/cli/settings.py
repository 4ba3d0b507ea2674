"""`settings`: lists and explains every setting, and sets one in the person's own file."""

from __future__ import annotations

from typing import Any

import click

from signet_sync.cli.main import Context, json_option, pass_context
from signet_sync.cli.parsing import Command, Group
from signet_sync.formats.paths import display


@click.group(cls=Group)
def settings() -> None:
    """Show, explain or change settings.

    A value is taken from the command line, else the environment, else your own config.toml, else the
    workspace's signet-sync.toml, else it is the default.
    """


@settings.command("list", cls=Command, short_help="Show every setting, its value and where that is from.")
@click.option("--changed", is_flag=True, help="Only those that are not at their default.")
@json_option
@pass_context
def list_(context: Context, changed: bool) -> None:
    """Show every setting with its value, where the value is from, and the default."""
    from signet_sync.settings import model

    known, remarks = model.known_settings(context.root)
    for remark in remarks:
        context.say(f"warning: {remark}")
    listed = [_document(one) for one in known if not changed or one.origin != "default"]

    def show() -> None:
        width = max((len(one["name"]) for one in listed), default=0)
        for one in listed:
            usual = (
                "" if one["origin"] == "default" else f"  ({display(one['origin'])}; default {_word(one['default'])})"
            )
            click.echo(f"{one['name']:{width}}  {_word(one['value'])}{usual}")
        if not listed:
            click.echo("every setting is at its default")

    context.answer({"settings": listed}, show)


@settings.command(cls=Command, short_help="Say what a setting means and what it may be.")
@click.argument("name")
@json_option
@pass_context
def explain(context: Context, name: str) -> None:
    """Say what the setting NAME means, what it may be, and where its value is from."""
    from signet_sync.settings import model

    field = model.named(name)
    known, _ = model.known_settings(context.root)
    limits, choices = field.metadata["limits"], field.metadata["choices"]
    document = next(_document(one) for one in known if one.field.name == field.name)
    document |= {
        "meaning": field.metadata["doc"],
        "type": model.TYPES[type(field.metadata["default"])],
        "least": None if limits is None else limits[0],
        "most": None if limits is None else limits[1],
        "choices": [one for one in choices if one],
        "variable": model.environment_name(field),
        "in_workspace": field.metadata["workspace"],
    }

    def show() -> None:
        click.echo(document["meaning"])
        kind = "one of: " + ", ".join(document["choices"]) if document["choices"] else document["type"]
        click.echo(f"  may be    {kind}" + (f", {limits[0]:g} to {limits[1]:g}" if limits is not None else ""))
        click.echo(f"  is        {_word(document['value'])} ({display(document['origin'])})")
        click.echo(f"  default   {_word(document['default'])}")
        click.echo(f"  variable  {document['variable']}")
        if not document["in_workspace"]:
            click.echo("  The file of a workspace cannot set it.")

    context.answer(document, show)


@settings.command("set", cls=Command, short_help="Change a setting in your own file.")
@click.argument("name")
@click.argument("value")
@json_option
@pass_context
def set_(context: Context, name: str, value: str) -> None:
    """Set NAME to VALUE in your own config.toml; its comments stay. A list is divided by commas."""
    from signet_sync.settings import model, user_settings

    path, typed = user_settings.set_value(context.root, name, value)
    one = next(
        _document(known) for known in model.known_settings(context.root)[0] if known.field.metadata["key"] == name
    )

    def show() -> None:
        click.echo(f"{name} is {_word(typed)} in {display(path)}")
        if one["origin"] != path:
            click.echo(f"{display(one['origin'])} says {_word(one['value'])}, which counts more")

    context.answer({**one, "path": path}, show)


def _document(one: Any) -> dict[str, Any]:
    meta = one.field.metadata
    return {"name": meta["key"], "value": _plain(one.value), "origin": one.origin, "default": _plain(meta["default"])}


def _plain(value: object) -> object:
    """Returns a value as JSON has it, without secrets: somebody may have put a key on the wrong line."""
    from signet_sync.text.sanitizer import sanitize_line

    if isinstance(value, tuple):
        return [sanitize_line(part) for part in value]
    return sanitize_line(value) if isinstance(value, str) else value


def _word(value: object) -> str:
    """Returns a value as it is written in a file."""
    import json

    return display(json.dumps(value, ensure_ascii=False))
