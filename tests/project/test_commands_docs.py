"""docs/commands.md is generated from the command line itself; this test holds it and brings it up to date."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import click
from command_lines import leaves

from signet_sync.cli import main
from signet_sync.cli.commands import ALIASES, COMMANDS, GROUPS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "commands.md"

HEAD = """\
# Commands

Every command with its options, by group, generated from the command line; `signet-sync COMMAND --help` explains them.

{groups}

## Options

Before or after the name of any command:

{everywhere}

Before or after the name of a command that lists them:

{some}

Every command that prints data takes `--json`: one document on stdout and nothing else. Messages go to stderr. Below,
`--json` leads to the JSON Schema of the command's document. An error is a document as well ([schema](json/error.json)):

```json
{{
  "error": {{
    "code": "unknown-session",
    "message": "no session of agent default is called '7rhx2agccvsngmt3'",
    "hint": "signet-sync search finds sessions",
    "path": null
  }}
}}
```

`signet-sync recall "who reviews releases" --json --limit 1` prints:

```json
{{
  "query": "who reviews releases",
  "hits": [
    {{
      "tier": "memory",
      "id": "m-4s3izrsisuw6",
      "text": "Jo reviews lantern's releases.",
      "path": null,
      "score": 0.71,
      "why": "a remembered person, 2026-03-24"
    }}
  ]
}}
```

Exit codes: 0 success, 1 problems found, 2 usage, 3 workspace or database unusable, 4 another agent is running, 5
halted for safety, 130 interrupted.

A word in the place of a command's name that is none stands for the first of these that the program, or the group, has:

{aliases}
"""
GROUP = """
## {title}

| command | does | options |
|---|---|---|
"""


def option_lines(context: click.Context, *, everywhere: bool) -> Iterator[str]:
    for parameter in context.command.params:
        record = parameter.get_help_record(context) if isinstance(parameter, click.Option) else None
        if record is not None and everywhere is (getattr(parameter, "everywhere", True)):
            yield f"* `{record[0]}`: {' '.join(record[1].split())}"


def names(command: click.Command, file: str) -> str:
    """The long names of a command's options; `--json` leads to the schema of its document."""
    options = (parameter for parameter in command.params if isinstance(parameter, click.Option))
    shown = [max(option.opts, key=len) for option in options if not option.hidden]
    return " ".join(f"[`{name}`](json/{file}.json)" if name == "--json" else f"`{name}`" for name in shown)


def generated() -> str:
    context = click.Context(main.group, info_name="signet-sync", help_option_names=["-h", "--help"])
    page = HEAD.format(
        groups="\n".join(
            f"* [{name}](#{name}): {', '.join(f'`{one}`' for one, listed in COMMANDS.items() if listed.group == name)}"
            for name in GROUPS
        ),
        everywhere="\n".join(option_lines(context, everywhere=True)),
        some="\n".join(option_lines(context, everywhere=False)),
        aliases="\n".join(f"* `{alias}`: {', '.join(f'`{one}`' for one in known)}" for alias, known in ALIASES.items()),
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
        call = " ".join((*words, *arguments)).replace("|", "\\|")
        text = " ".join((command.help or command.short_help or "").replace("\b", "").partition("\f")[0].split())
        first = re.split(r"(?<=\.) (?=[A-Z({])", text)[0].replace("|", "\\|")
        page += f"| `{call}` | {first} | {names(command, '-'.join(words))} |\n"
    return page


def test_the_page_of_commands_is_what_the_command_line_says() -> None:
    if os.environ.get("WRITE_DOCS"):
        PAGE.write_text(generated(), encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == generated(), "WRITE_DOCS=1 pytest brings it up to date"
