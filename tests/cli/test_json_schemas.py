"""docs/json: a schema of the document of each command with `--json`, which what it prints is held to."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from command_lines import COMMAND_LINES, EVERY, furnished, run
from doc_pages import blocks
from jsonschema import Draft202012Validator
from workbench import ROOT, Answer, Vault, call

FOLDER = ROOT / "docs" / "json"


def takes_json(name: str) -> bool:
    return any("--json" in parameter.opts for parameter in EVERY[name].params)


NAMES = [name for name, command in EVERY.items() if takes_json(name) and not command.hidden]
# What asks a service manager or a desktop, or serves, is not run by a test.
RUN = [name for name in NAMES if not COMMAND_LINES[name].serves]
FORMS = ("--dry-run", "--diff", "--all", "--list", "--accepted", "--check", "--strict")


def schema(name: str) -> Draft202012Validator:
    return Draft202012Validator(json.loads((FOLDER / f"{name.replace(' ', '-')}.json").read_text(encoding="utf-8")))


def hold(name: str, answer: Answer) -> None:
    """Holds the answer of a command to its schema, and an error to that of errors."""
    document = answer.json
    kind = "error" if "error" in document else name
    assert [(error.json_path, error.message) for error in schema(kind).iter_errors(document)] == [], answer


@pytest.fixture(scope="module")
def mould(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], Vault]:
    return furnished(tmp_path_factory.mktemp("mould"))


@pytest.fixture
def vault(mould: Callable[[Path], Vault], tmp_path: Path) -> Vault:
    return mould(tmp_path)


def test_every_command_that_prints_json_has_a_schema_and_nothing_else_has() -> None:
    found = {path.name for path in FOLDER.iterdir()}
    assert found == {"error.json", *(f"{name.replace(' ', '-')}.json" for name in NAMES)}


def objects(schema: Any) -> Iterator[dict[str, Any]]:
    """Every object that a schema describes."""
    if isinstance(schema, dict):
        if schema.get("type") == "object":
            yield schema
        for below in schema.values():
            yield from objects(below)
    elif isinstance(schema, list):
        for below in schema:
            yield from objects(below)


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.json")), ids=lambda path: path.stem)
def test_a_schema_is_well_formed_and_closed(path: Path) -> None:
    read = json.loads(path.read_text(encoding="utf-8"))
    Draft202012Validator.check_schema(read)
    assert path.read_text(encoding="utf-8") == json.dumps(read, indent=2, ensure_ascii=False) + "\n"
    # Beside an error stands what some errors have more; an event's payload depends on its operation.
    open_ones = [one for one in objects(read) if "additionalProperties" not in one]
    assert len(open_ones) == {"error": 1, "entity-log": 1, "open": 1}.get(path.stem, 0)


def forms(name: str) -> set[str]:
    return {flag for parameter in EVERY[name].params for flag in parameter.opts}.intersection(FORMS)


@pytest.mark.parametrize(
    ("name", "flag"),
    [*((name, "") for name in RUN)]
    + [pytest.param(name, flag, marks=pytest.mark.slow) for name in RUN for flag in sorted(forms(name))],
)
def test_what_a_command_prints_is_as_its_schema_says(vault: Vault, name: str, flag: str) -> None:
    for words in ([flag], []) if flag else ([],):  # then as usual, on what the form has left
        answer = run(vault, name, "--json", *words)
        assert answer.err == "" or answer.code > 1, answer
        hold(name, answer)


def test_what_every_handle_leads_to_is_as_the_schema_says(vault: Vault) -> None:
    hits = vault.call("recall", "lantern queue", "--json", "--limit", "100").json["hits"]
    handles = {one for (one,) in vault.rows("select id from session_summaries")} | {hit["id"] for hit in hits}
    assert len({handle[0] for handle in handles}) >= 4
    for handle in sorted(handles):
        hold("expand", vault.call("expand", handle, "--json"))
    hold("expand", vault.call("expand", "live", "--json"))
    hold("open", vault.call("open", "--json"))
    hold("open", vault.call("open", "live", "--json"))
    event = vault.call("entity", "log", "--json").json["events"][0]["token"]
    hold("open", vault.call("open", event, "--json"))


@pytest.mark.parametrize(
    "words",
    [("open", "nobody"), ("stauts",), ("recall",), ("entity", "show", "x"), ("remove", "x"), ("check", "--now", "x")],
)
def test_errors_are_as_their_schema_says(vault: Vault, words: tuple[str, ...]) -> None:
    answer = vault.call(*words, "--json")
    assert answer.code == 2 and "error" in answer.json
    hold("error", answer)


def test_the_examples_of_the_page_are_as_their_schemas_say() -> None:
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
