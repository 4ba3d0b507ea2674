"""What holds for every command of the registry: a reader writes nothing, after a writer nothing is left to write.

A new command is held to this on the day that it is registered: without a line in `tests/support/command_lines.py` it
fails here.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import click
import pytest
from command_lines import COMMAND_LINES, EVERY, Line, furnished, run
from secrets_made_up import some
from workbench import NOW, SIGNS, Vault, tree

READING = [name for name, line in COMMAND_LINES.items() if line.reads]
WRITING = [name for name, line in COMMAND_LINES.items() if not (line.reads or line.serves)]
DRY = [name for name, command in EVERY.items() if any("--dry-run" in one.opts for one in command.params)]
# What says when something was, and what a reader of the database leaves beside it.
PASSING = (*SIGNS, "logs", "signet-sync.db-wal", "signet-sync.db-shm")
SECRET = "ghp_" + some(Random(11), 36)


@pytest.fixture(scope="module")
def mould(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], Vault]:
    return furnished(tmp_path_factory.mktemp("mould"))


@pytest.fixture
def vault(mould: Callable[[Path], Vault], tmp_path: Path) -> Vault:
    return mould(tmp_path)


def test_every_command_has_a_line() -> None:
    missing = sorted(set(EVERY) - set(COMMAND_LINES))
    assert not missing, f"tests/support/command_lines.py needs a line for {', '.join(missing)}"
    assert sorted(set(COMMAND_LINES) - set(EVERY)) == [], "these are no commands any more"


def everything(vault: Vault) -> dict[str, Any]:
    """All that a command could write: workspace, state and home; a folder's time moves with names that come and go."""
    found = {}
    for place in (vault.root, Path(os.environ["SIGNET_STATE"]), Path(os.environ["HOME"])):
        for path, told in (tree(place, but=PASSING) if place.exists() else {}).items():
            found[f"{place.name}/{path}"] = told[:1] if told[0].startswith("0o4") else told
    return found


def moved(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    return sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))


@pytest.mark.parametrize("name", READING)
def test_a_command_that_reads_writes_nothing(vault: Vault, name: str) -> None:
    before = everything(vault)
    for more in ((), ("--json",)) if any("--json" in one.opts for one in EVERY[name].params) else ((),):
        answer = run(vault, name, *more)
        assert answer.code in (0, 1), answer
    assert moved(before, everything(vault)) == []


@pytest.mark.parametrize("name", DRY)
def test_a_dry_run_writes_nothing(vault: Vault, name: str) -> None:
    before = everything(vault)
    answer = run(vault, name, "--dry-run")
    assert answer.code == 0 and answer.out, answer
    assert moved(before, everything(vault)) == []


@pytest.mark.parametrize("name", WRITING)
def test_after_a_command_and_a_pass_a_second_pass_writes_nothing(vault: Vault, name: str) -> None:
    answer = run(vault, name)
    # `doctor` tells of the change that is not accepted yet.
    assert answer.code == 0 or name == "doctor", answer
    vault.call("reindex", "--now", NOW)
    before = everything(vault)
    document = vault.call("reindex", "--json", "--now", NOW).json
    assert moved(before, everything(vault)) == [], document


# ── secrets, and words that were removed ──


def texts(command: click.Command) -> Iterator[tuple[str, str]]:
    """The parameters of a command that take any text: the option, or the argument's name."""
    for parameter in command.params:
        if isinstance(parameter.type, click.types.StringParamType) and "--now" not in parameter.opts:
            yield parameter.opts[0] if isinstance(parameter, click.Option) else "", parameter.name or ""


# Whoever makes a workspace names its folder, and the state folder notes where it is.
SPOKEN = [
    (name, *place)
    for name, command in EVERY.items()
    if name not in ("init", "demo") and not COMMAND_LINES.get(name, Line()).serves
    for place in texts(command)
]


def holding(vault: Vault, word: str) -> list[str]:
    """Files that hold a word, or are called by it."""
    places = (vault.root, Path(os.environ["SIGNET_STATE"]), Path(os.environ["HOME"]))
    return [
        str(path)
        for place in places
        for path in place.rglob("*")
        if word in path.name or (path.is_file() and word.encode() in path.read_bytes())
    ]


@pytest.mark.parametrize(("name", "option", "what"), SPOKEN, ids=lambda value: value or "-")
def test_a_secret_in_any_text_of_a_command_reaches_no_disk(vault: Vault, name: str, option: str, what: str) -> None:
    line = COMMAND_LINES[name]
    words = line.words.split()
    if option in words:
        words[words.index(option) + 1] = SECRET
    elif option:
        words += [option, SECRET]
    else:
        place = [one.name for one in EVERY[name].params if isinstance(one, click.Argument)].index(what)
        words[place : place + 1] = [SECRET]
    answer = run(vault, name, line=Line(" ".join(words), line.given))
    assert "Traceback" not in answer.err and answer.code in (0, 1, 2, 3), answer
    vault.call("reindex", "--now", NOW)
    assert holding(vault, SECRET) == [], answer


def test_no_command_answers_with_a_word_of_a_removed_session(vault: Vault) -> None:
    answering = [*READING, "search", "recall", "context", "open", "expand", "export", "telemetry show"]
    before = "".join(run(vault, name).out for name in answering)
    assert "number1x" in before
    assert run(vault, "remove").code == 0
    assert [name for name in answering if "number1x" in run(vault, name).out] == []
    beside = {str(vault.root.parent / name) for name in ("file.backup", "rows.jsonl")}
    assert set(holding(vault, "number1x")) <= beside
