"""What the pages name is there: every command, option, setting, variable and link. `test_docs_run.py` runs them."""

from __future__ import annotations

import ast
import os
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from doc_pages import PAGES, ROOT, anchors, blocks, calls, generated, links, name_of, spans

from signet_sync.cli import main
from signet_sync.cli.commands import COMMANDS
from signet_sync.settings.model import ALL_SETTINGS, environment_name

# What other programs, and tests, set.
OTHERS = {"SIGNET_PORT"}
INDEX = ROOT / "docs" / "index.md"


def unknown(arguments: list[str], *, exact: bool) -> str | None:
    """What signet-sync would not know of a call, or None; in running text values may be left out."""
    command: click.Command = main.group
    words = ["signet-sync"]
    context = None
    while True:
        context = click.Context(command, parent=context, info_name=words[-1], help_option_names=["-h", "--help"])
        parser = command.make_parser(context)
        try:
            given, left, _ = parser.parse_args(list(arguments))
        except click.BadOptionUsage as error:
            return error.format_message() if exact else None
        except click.UsageError as error:
            return f"{' '.join(words)}: {error.format_message()}"
        for parameter in command.params:
            if isinstance(parameter.type, click.Choice) and (wrong := misfits(parameter, given.get(parameter.name))):
                return f"{' '.join(words)}: {parameter.name} is never {wrong}"
        if not isinstance(command, click.Group) or not left:
            return None
        below = [command.get_command(context, name) for name in left[0].split("|")]
        if below[-1] is None or None in below:
            return f"{' '.join(words)} has no command {left[0]}"
        command, arguments = below[-1], left[1:]
        words.append(left[0])


def misfits(parameter: click.Parameter, given: object) -> list[str]:
    """Values that are none of a parameter's choices; words in capitals and `…` stand for one."""
    assert isinstance(parameter.type, click.Choice)
    words = [word for word in (given if isinstance(given, list) else [given]) if isinstance(word, str)]
    values = [value for word in words for value in word.split("|") if not re.fullmatch(r"\[?[A-Z]+\]?|…", value)]
    return [value for value in values if value not in parameter.type.choices]


def named(page: Path) -> Iterator[tuple[list[str], bool]]:
    """Every call on a page: those of blocks exactly, those of running text as they are written."""
    for block in blocks(page):
        if block.language in ("sh", "console", "yaml"):
            script = re.sub(r"^\s*(\$ |- (run: )?)", "", block.text, flags=re.MULTILINE)
            if block.language == "console":
                script = "\n".join(re.findall(r"^\$ (.*)$", block.text, re.MULTILINE))
            if block.language == "yaml":
                script = "\n".join(line for line in script.splitlines() if line.startswith("signet-sync"))
            yield from ((call, True) for call in calls(script))
    for span in spans(page):
        first, *rest = span.split()
        if first == "signet-sync" and rest:
            yield rest, False
        elif first in COMMANDS and any(word.startswith("--") for word in rest):
            yield [first, *rest], False


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_command_and_option_that_a_page_names_is_there(page: Path) -> None:
    wrong = [f"{' '.join(call)}: {lack}" for call, exact in named(page) if (lack := unknown(call, exact=exact))]
    assert wrong == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    lost = []
    for path, anchor in links(page):
        target = Path(os.path.normpath(page.parent / path)) if path else page
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
            lost.append(f"{path}#{anchor}" if anchor else path)
    assert lost == []


def test_every_page_is_in_the_index() -> None:
    told = {os.path.normpath(INDEX.parent / path) for path, _ in links(INDEX)}
    assert [name_of(page) for page in PAGES if page != INDEX and str(page) not in told] == []


def told_packages() -> str:
    """What each package promises, from what people see down to byte formats, as its `__init__` says it."""
    layers = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"][0][
        "layers"
    ]
    names = [name.strip().rpartition(".")[2] for layer in layers for name in layer.split("|")]
    modules = {name: ROOT / "signet_sync" / name / "__init__.py" for name in names}
    told = {
        name: ast.get_docstring(ast.parse(path.read_text("utf-8"))) for name, path in modules.items() if path.exists()
    }
    return "".join(f"* **`{name}`**: {' '.join((text or '').split())}\n" for name, text in told.items())


def test_the_map_of_the_code_is_what_packages_say_and_names_what_is_there() -> None:
    path, product = ROOT / "docs" / "internals" / "architecture.md", ROOT / "signet_sync"
    page = path.read_text(encoding="utf-8")
    generated(path, packages=told_packages())
    rooms = {path.stem for path in product.iterdir() if path.suffix in ("", ".py") and "__" not in path.name}
    assert [room for room in sorted(rooms) if not re.search(rf"`{room}[`/]", page)] == []
    named = re.findall(rf"\b((?:{'|'.join(sorted(rooms))})/[a-z_/]+[a-z_])", page)
    assert [name for name in named if not (product / name).is_dir() and not (product / f"{name}.py").is_file()] == []


def test_every_setting_and_variable_that_a_page_names_is_there() -> None:
    keys = {field.key for field in ALL_SETTINGS}
    tables = {key.partition(".")[0] for key in keys}
    source = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "signet_sync").rglob("*.py"))
    variables = {environment_name(field) for field in ALL_SETTINGS} | OTHERS
    wrong = []
    for page in PAGES:
        for span in spans(page):
            key = re.match(r"([a-z]+)\.([a-z_]+)(…?)(?: = |$)", span)
            if key and key[1] in tables and key[2] not in ("md", "py", "toml", "json", "db", "log"):
                meant = f"{key[1]}.{key[2]}"
                known = any(one.startswith(meant) for one in keys) if key[3] else meant in keys
                wrong += [] if known else [f"{name_of(page)}: {span}"]
        for name in set(re.findall(r"\bSIGNET_[A-Z_]+\b", page.read_text(encoding="utf-8"))):
            if name not in variables and f'"{name}"' not in source:
                wrong.append(f"{name_of(page)}: {name}")
    assert wrong == []


@pytest.mark.parametrize(
    ("line", "lack"),
    [
        ("signet-sync serch x", "no command serch"),
        ("sudo A=b signet-sync --workspace x status --chek", "No such option"),
        ("cat x | signet-sync hooks install cursor", "never ['cursor']"),
        ("true && signet-sync entity pinn jo", "no command pinn"),
        ("signet-sync reindex --now", "requires an argument"),
    ],
)
def test_what_is_not_there_would_be_noticed(line: str, lack: str) -> None:
    (call,) = calls(line)
    assert lack in (unknown(call, exact=True) or "")
