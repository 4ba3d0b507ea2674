"""What each command prints with `--json` is its type in `docs/site/answers.py`, from which its schema is made."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from command_lines import COMMAND_LINES, EVERY, furnished, run
from doc_pages import blocks
from jsonschema import Draft202012Validator
from workbench import ROOT, Answer, Vault, call

sys.path.append(str(ROOT / "docs" / "site"))

import schemas

NAMES = [name for name in schemas.commands() if name in EVERY]
# What asks a service manager, or serves, is not run by a test.
RUN = [name for name in NAMES if not COMMAND_LINES[name].serves]
FORMS = ("--dry-run", "--diff", "--all", "--list", "--accepted", "--check", "--strict")


@cache
def schema(name: str) -> Draft202012Validator:
    return Draft202012Validator(schemas.schema(name))


def hold(name: str, answer: Answer) -> None:
    """Holds the answer of a command to its type, and an error to that of errors."""
    document = answer.json
    kind = "error" if "error" in document else name
    assert [(error.json_path, error.message) for error in schema(kind).iter_errors(document)] == [], answer


@pytest.fixture(scope="module")
def mould(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], Vault]:
    return furnished(tmp_path_factory.mktemp("mould"))


@pytest.fixture
def vault(mould: Callable[[Path], Vault], tmp_path: Path) -> Vault:
    return mould(tmp_path)


def test_every_command_that_prints_json_has_a_type(tmp_path: Path) -> None:
    schemas.write(tmp_path)
    found = {path.name for path in tmp_path.iterdir()}
    assert found == {"error.json", *(f"{name.replace(' ', '-')}.json" for name in schemas.commands())}
    for path in tmp_path.iterdir():
        Draft202012Validator.check_schema(json.loads(path.read_text(encoding="utf-8")))


def forms(name: str) -> set[str]:
    return {flag for parameter in EVERY[name].params for flag in parameter.opts}.intersection(FORMS)


@pytest.mark.parametrize(
    ("name", "flag"),
    [*((name, "") for name in RUN)]
    + [pytest.param(name, flag, marks=pytest.mark.slow) for name in RUN for flag in sorted(forms(name))],
)
def test_what_a_command_prints_is_of_its_type(vault: Vault, name: str, flag: str) -> None:
    for words in ([flag], []) if flag else ([],):  # then as usual, on what the form has left
        answer = run(vault, name, "--json", *words)
        assert answer.err == "" or answer.code > 1, answer
        hold(name, answer)


def test_what_every_handle_leads_to_is_of_the_type(vault: Vault) -> None:
    hits = vault.call("recall", "lantern queue", "--json", "--limit", "100").json["hits"]
    handles = {hit["id"] for hit in hits} | {one for (one,) in vault.rows("select id from session_summaries")}
    assert len({handle[0] for handle in handles}) >= 4
    for handle in sorted(handles):
        hold("expand", vault.call("expand", handle, "--json"))
    hold("expand", vault.call("expand", "live", "--json"))
    files = vault.call("recall", "--words", "lantern", "--json")
    assert files.json["files"]
    hold("recall", files)
    hold("open", vault.call("open", "--json"))
    hold("open", vault.call("open", "live", "--json"))
    event = vault.call("entity", "log", "--json").json["events"][0]["token"]
    hold("open", vault.call("open", event, "--json"))


@pytest.mark.parametrize(
    "words",
    [("open", "nobody"), ("stauts",), ("recall",), ("entity", "show", "x"), ("remove", "x"), ("check", "--now", "x")],
)
def test_errors_are_of_their_type(vault: Vault, words: tuple[str, ...]) -> None:
    answer = vault.call(*words, "--json")
    assert answer.code == 2 and "error" in answer.json
    hold("error", answer)


def test_the_examples_of_the_page_are_of_their_types() -> None:
    shown = [json.loads(block.text) for block in blocks(ROOT / "docs" / "commands.md") if block.language == "json"]
    assert [list(document) for document in shown] == [["error"], ["query", "hits"]]
    for kind, document in zip(("error", "recall"), shown, strict=True):
        assert list(schema(kind).iter_errors(document)) == []


def test_another_document_would_be_noticed() -> None:
    with pytest.raises(AssertionError):
        hold("recall", Answer(0, '{"query": "x", "hits": [], "more": 1}', ""))
    with pytest.raises(AssertionError):
        hold("recall", Answer(0, '{"query": "x", "hits": [{"tier": "memory"}]}', ""))
    assert call("recall", "--json").code == 2
