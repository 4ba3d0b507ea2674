"""docs/commands.md is generated from the command line itself; this test holds it and brings it up to date."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import click
from command_lines import leaves

from signet_sync.cli import main
from signet_sync.cli.commands import COMMANDS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "commands.md"
COMMON = {"--agent", "--json", "--now"}

HEAD = """\
# Commands

Every command with the options of its own, made from the command line; `--help` of a command explains them.

Before or after the name of any command:

{everywhere}

Before or after the name of most commands (`--help` of a command says which):

{some}

`--json` prints one document on stdout and nothing else; messages go to stderr. The site of the documentation has a JSON
Schema of each document. An error is a document as well:

```json
{{"error": {{"code": "unknown-session", "message": "no session of agent default is called '7rhx2agccvsngmt3'",
           "hint": "signet-sync recall finds sessions", "path": null}}}}
```

`signet-sync recall "who reviews releases" --json --limit 1` prints:

```json
{{"query": "who reviews releases", "hits": [
  {{"tier": "memory", "id": "m-4s3izrsisuw6", "text": "Jo reviews lantern's releases.", "path": null, "score": 1.0,
   "known": true, "speaker": "User", "turn": 0, "day": "2026-03-24",
   "why": "all words, in a remembered person, 2026-03-24"}}]}}
```

Exit codes: 0 success, 1 problems found, 2 usage, 3 workspace or database unusable, 4 another agent is running, 5
halted for safety, 130 interrupted.
"""
GROUP = """
## {title}

"""


def option_lines(context: click.Context, *, everywhere: bool) -> Iterator[str]:
    for parameter in context.command.params:
        record = parameter.get_help_record(context) if isinstance(parameter, click.Option) else None
        if record is not None and everywhere is (getattr(parameter, "everywhere", True)):
            yield f"* `{record[0]}`: {' '.join(record[1].split())}"


def names(command: click.Command) -> str:
    """The long names of the options that are a command's own."""
    options = (parameter for parameter in command.params if isinstance(parameter, click.Option))
    own = (one for one in options if not (one.hidden or getattr(one, "everywhere", False)))
    shown = (max(option.opts, key=len) for option in own)
    return " ".join(f"`{name}`" for name in shown if name not in COMMON)


def generated() -> str:
    context = click.Context(main.group, info_name="signet-sync", help_option_names=["-h", "--help"])
    page = HEAD.format(
        everywhere="\n".join(option_lines(context, everywhere=True)),
        some="\n".join(option_lines(context, everywhere=False)),
    )
    group = None
    for words, command in leaves(main.group, hidden=False):
        if COMMANDS[words[0]].group != group:
            group = COMMANDS[words[0]].group
            page += GROUP.format(title=group.capitalize())
        below = click.Context(command, info_name=words[-1], help_option_names=["-h", "--help"])
        arguments = [
            parameter.make_metavar(below) for parameter in command.params if isinstance(parameter, click.Argument)
        ]
        call = " ".join((*words, *arguments))
        text = " ".join((command.help or command.short_help or "").partition("\n\n")[0].split())
        first = re.split(r"(?<=\.) (?=[A-Z({])", text)[0]
        page += f"* `{call}`: {first} {names(command)}".rstrip() + "\n"
    return page


def test_the_page_of_commands_is_what_the_command_line_says() -> None:
    if os.environ.get("WRITE_DOCS"):
        PAGE.write_text(generated(), encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == generated(), "WRITE_DOCS=1 pytest brings it up to date"
