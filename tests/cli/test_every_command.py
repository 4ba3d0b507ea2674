"""What holds for every command of the registry: a reader writes nothing, after a writer nothing is left to write, and
what is printed with `--json` is of the type in `docs/site/answers.py`, from which its schema is made.

A new command is held to this on the day that it is registered: without a line in `tests/support/command_lines.py` it
fails here.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import click
import pytest
from command_lines import COMMAND_LINES, EVERY, HOOKS, SERVES, Line, furnished, run
from doc_pages import blocks
from invented_secrets import some
from jsonschema import Draft202012Validator
from workbench import NOW, ROOT, SIGNS, Answer, Vault, sampled, tree

from signet_sync.capture import hook
from signet_sync.formats.artifact import REPOSITORY_FIELDS
from signet_sync.sessions.input import CompactionInput, SessionInput

sys.path.append(str(ROOT / "docs" / "site"))

import schemas

READING = [name for name, line in COMMAND_LINES.items() if line.reads]
WRITING = [name for name, line in COMMAND_LINES.items() if not (line.reads or line.serves)]
DRY = [name for name, command in EVERY.items() if any("--dry-run" in one.opts for one in command.params)]
# What says when something was, and what a reader of the database leaves beside it.
PASSING = (*SIGNS, "logs", "signet-sync.db-wal", "signet-sync.db-shm")
SECRET = "ghp_" + some(Random(11), 36)


# `doctor` finds something; the session of `restore` is no harness's: `test_harness_contract` restores sessions.
ENDS = {"doctor": 1, "restore": 2}
# What has another answer after its neighbours, and what refuses the folder that stands.
ALONE = ("violations restore", "entity undo")
REFUSING = ("restore",)
# What takes away what other commands work on comes last where one vault serves many.
TAKING = ("violations restore", "forget", "redact", "remove", "history forget", "backup restore", "eject")


def taking_last(names: Iterable[str]) -> list[str]:
    return sorted(names, key=lambda name: TAKING.index(name) if name in TAKING else -1)


def in_turn(names: list[Any], every: int) -> list[Any]:
    """Some of them in one vault; all of them where somebody asks for the slow ones."""
    return [names[::every], pytest.param(names, marks=pytest.mark.slow)]


@pytest.fixture(scope="module")
def mould(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Vault]:
    return furnished(tmp_path_factory.mktemp("mould"))


@pytest.fixture
def vault(mould: Callable[..., Vault], tmp_path: Path) -> Vault:
    return mould(tmp_path)


@pytest.fixture
def unsettled(mould: Callable[..., Vault], tmp_path: Path) -> Vault:
    """The same before a pass: for what is only looked for on the disk afterwards."""
    return mould(tmp_path, settled=False)


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


# These wait for more, ask for what is not there, or write.
UNTRIED = ("--with-index",)


def forms(command: click.Command) -> Iterator[tuple[str, ...]]:
    """The ways to ask for the same: as it is, with each flag, with each choice of an option."""
    yield ()
    for parameter in command.params:
        if isinstance(parameter, click.Option) and not {*parameter.opts, "--help"} & {*UNTRIED, parameter.name}:
            if parameter.is_flag:
                yield (parameter.opts[0],)
            elif isinstance(parameter.type, click.Choice):
                yield from ((parameter.opts[0], str(choice)) for choice in parameter.type.choices)


@pytest.mark.parametrize("names", in_turn(READING, 2), ids=len)
def test_commands_that_read_and_dry_runs_write_nothing(vault: Vault, names: list[str]) -> None:
    before = everything(vault)
    for name in names:
        for more in forms(EVERY[name]):
            answer = run(vault, name, *more)
            assert answer.code in (0, 1, 2), answer
            assert answer.code != 2 or more, answer
        assert moved(before, everything(vault)) == [], name
    for name in DRY:
        answer = run(vault, name, "--dry-run")
        assert answer.code == ENDS.get(name, 0) and (answer.out or answer.code == 2), (name, answer)
        assert moved(before, everything(vault)) == [], name


@pytest.mark.parametrize("name", sampled(WRITING, 8))
def test_after_a_command_and_a_pass_a_second_pass_writes_nothing(vault: Vault, name: str) -> None:
    answer = run(vault, name)
    # `doctor` tells of the change that is not accepted yet.
    assert answer.code == ENDS.get(name, 0), answer
    vault.call("reindex", "--now", NOW)
    if name == "eject":  # a new state: its first pass learns which entity files have drifted, the next one sums them up
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
    if name not in ("init", "demo") and not COMMAND_LINES.get(name, SERVES).serves
    for place in texts(command)
]


DOCUMENTS = [
    (name, field)
    for name, line in COMMAND_LINES.items()
    if line.given and not line.serves and name != "hook"
    for field in line.given
]


def body(secret: str) -> str:
    """A text with a secret wherever something is read out of a text: headings, items, slots, paths, names, code."""
    return (
        f"# Keys of {secret}\n\n## User · {secret}\n\n{secret} is what I use.\n\n"
        f"## Assistant · 2026-03-25T09:00:00.000Z\n\nThen src/queue.py reads {secret}.\n\n"
        f"## Decisions of {secret}\n\n- Not an item.\n\n"
        f"## Decisions\n\n- The queue is read with {secret} from now on.\n"
        f"- {secret}: is the token\n- Deploy token: {secret}\n- See src/{secret}.py and `{secret}/queue.py`.\n\n"
        f"## People\n\n- {secret}: keeps the queue\n- **{secret}** – asks\n\n## Next steps\n\n"
        f"- [x] Ask @{secret} of https://github.com/ada/{secret}/issues/7\n- [x] Turn {secret} in.\n\n"
        f"```sh\npip install {secret}\n```\n\n```python\nimport {secret}\n```\n"
    )


def holding(vault: Vault, word: str) -> list[str]:
    """Files that hold a word, or are called by it; full text leaves out what a word shares with the one before it."""
    places = (vault.root, Path(os.environ["SIGNET_STATE"]), Path(os.environ["HOME"]))
    needle = word[6:].lower()
    return [
        str(path)
        for place in places
        for path in place.rglob("*")
        if needle in path.name.lower() or (path.is_file() and needle.encode() in path.read_bytes().lower())
    ]


def spoken(name: str, option: str, what: str) -> Line:
    """The line of a command with a secret for one of its texts."""
    line = COMMAND_LINES[name]
    words = line.words.split()
    if option in words:
        words[words.index(option) + 1] = SECRET
    elif option:
        words += [option, SECRET]
    else:
        place = [one.name for one in EVERY[name].params if isinstance(one, click.Argument)].index(what)
        words[place : place + 1] = [SECRET]
    return Line(" ".join(words), line.given)


@pytest.mark.parametrize("places", in_turn(SPOKEN, 2), ids=len)
def test_a_secret_in_any_text_of_a_command_reaches_no_disk(
    unsettled: Vault, places: list[tuple[str, str, str]]
) -> None:
    for name in taking_last(dict.fromkeys(name for name, *_ in places)):
        for place in [place for other, *place in places if other == name]:
            answer = run(unsettled, name, line=spoken(name, *place))
            assert "Traceback" not in answer.err and answer.code in (0, 1, 2, 3), answer
        if name in TAKING:  # before it could be taken away
            assert holding(unsettled, SECRET) == [], name
    unsettled.call("reindex", "--now", NOW)
    assert holding(unsettled, SECRET) == []


def test_the_documents_have_every_field() -> None:
    for line, form in (("session end", SessionInput), ("session compact", CompactionInput)):
        known = {one.name for one in fields(form)} - {"tail", "more", "headless", *REPOSITORY_FIELDS}
        missing = known - set(COMMAND_LINES[line].given or ())
        assert not missing, f"{missing} of {form.__name__} must stand in tests/support/command_lines.py"


def test_a_secret_in_any_field_of_a_hook_reaches_no_job(unsettled: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    """Looked at before the job is taken: what takes it sanitizes once more."""
    monkeypatch.setattr(hook, "_start_worker", lambda *_: None)
    for event, given in HOOKS.items():
        assert run(unsettled, "hook", line=Line("claude-code --strict", given)).code == 0
        waiting = [path for path in unsettled.state.rglob("spool/**/*") if path.is_file()]
        assert waiting, f"{event} leaves a job"
        for field in given:
            if field != "transcript_path":  # where it lies stands in the job, which is of no use without it
                text = body(SECRET) if "\n" in given[field] else f"{given[field]} {SECRET}"
                run(unsettled, "hook", line=Line("claude-code --strict", given | {field: text}))
                assert holding(unsettled, SECRET) == [], (event, field)
        for path in waiting:
            path.unlink(missing_ok=True)


@pytest.mark.parametrize("documents", in_turn(DOCUMENTS, 2), ids=len)
def test_a_secret_in_any_field_of_a_document_reaches_no_disk(
    unsettled: Vault, documents: list[tuple[str, str]]
) -> None:
    for number, (name, field) in enumerate(documents):
        line = COMMAND_LINES[name]
        assert line.given is not None
        # Of a session each, so that none is told again what it knows.
        own = {"session_id": f"5e55f1e1-0000-4000-8000-{number:012d}", "idempotency_key": f"k{number}"}
        own["captured_at"] = f"2026-03-28T13:{number:02d}:00.000Z"
        given = {one: (own | {"turn": number}).get(one, value) for one, value in line.given.items()}
        before = given[field]
        spoken = body(SECRET) if "\n" in str(before) else f"{before} {SECRET}"
        answer = run(unsettled, name, line=Line(line.words, {**given, field: spoken}))
        assert "Traceback" not in answer.err and answer.code in (0, 1, 2, 3), (name, field, answer)
        assert answer.code == 0 or "\n" not in str(before), "a text is redacted, not refused"
    assert holding(unsettled, SECRET) == []
    run(unsettled, "session take-spool")
    unsettled.call("reindex", "--now", NOW)
    assert holding(unsettled, SECRET) == []


def test_a_secret_that_another_program_wrote_stays_in_its_file(vault: Vault) -> None:
    """Nor do the answers repeat it, nor the reason for which its session is removed."""
    theirs = vault.session(
        7, body=body(SECRET), project=f"/home/ada/{SECRET}", session_key=f"agent:{SECRET}",
        memory_sentence=f"In lantern the retry loop of src/queue.py reads {SECRET} so that it ends in the end.",
    )  # fmt: skip
    vault.call("reindex", "--now", NOW)
    assert vault.hits("queue")
    for name in (*READING, "recall", "context", "open", "expand"):
        answer = run(vault, name)
        assert SECRET not in answer.out + answer.err, name
    assert set(holding(vault, SECRET)) <= {str(vault / path) for path in theirs.values()}
    gone = vault.call("remove", "5e551007", "--reason", f"it held {SECRET}", "--yes", "--quoting", "keep", "--now", NOW)
    assert gone.code == 0 and holding(vault, SECRET) == []


def test_no_command_answers_with_a_word_of_a_removed_session(vault: Vault) -> None:
    answering = [*READING, "recall", "context", "open", "expand"]
    before = "".join(run(vault, name).out for name in answering)
    assert "number1x" in before
    assert run(vault, "remove").code == 0
    assert [name for name in answering if "number1x" in run(vault, name).out] == []
    assert holding(vault, "zzzzzznumber1x") == []


# ── answers as JSON ──

NAMES = [name for name in schemas.commands() if name in EVERY]
# What asks a service manager, or serves, is not run by a test.
RUN = [name for name in NAMES if not COMMAND_LINES.get(name, SERVES).serves]
FORMS = ("--dry-run", "--diff", "--all", "--accepted", "--check", "--strict")


@cache
def schema(name: str) -> Draft202012Validator:
    return Draft202012Validator(schemas.schema(name))


def hold(name: str, answer: Answer) -> None:
    """Holds the answer of a command to its type, and an error to that of errors."""
    document = answer.json
    kind = "error" if "error" in document else name
    assert [(error.json_path, error.message) for error in schema(kind).iter_errors(document)] == [], answer


def test_every_command_that_prints_json_has_a_type(tmp_path: Path) -> None:
    schemas.write(tmp_path)
    found = {path.name for path in tmp_path.iterdir()}
    assert found == {"error.json", *(f"{name.replace(' ', '-')}.json" for name in schemas.commands())}
    for path in tmp_path.iterdir():
        Draft202012Validator.check_schema(json.loads(path.read_text(encoding="utf-8")))


FLAGGED = [(name, flag) for name in RUN for flag in FORMS if any(flag in one.opts for one in EVERY[name].params)]


@pytest.mark.parametrize("names", [taking_last(name for name in RUN if name not in ALONE), ALONE], ids=len)
def test_what_a_command_prints_is_of_its_type(vault: Vault, names: list[str]) -> None:
    for name in names:
        answer = run(vault, name, "--json")
        assert answer.err == "" or answer.code > 1, (name, answer)
        hold(name, answer)
        assert "error" not in answer.json or name in REFUSING, answer


@pytest.mark.slow
@pytest.mark.parametrize(("name", "flag"), FLAGGED)
def test_what_a_command_prints_with_a_flag_is_of_its_type(vault: Vault, name: str, flag: str) -> None:
    for words in ([flag], []):  # then as usual, on what the form has left
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


def test_errors_are_of_their_type(vault: Vault) -> None:
    for words in ("open nobody", "stauts", "recall", "entity show x", "remove x", "check --now x"):
        answer = vault.call(*words.split(), "--json")
        assert answer.code == 2 and "error" in answer.json, words
        hold("error", answer)


def test_the_examples_of_the_page_are_of_their_types() -> None:
    shown = [json.loads(block.text) for block in blocks(ROOT / "docs" / "commands.md") if block.language == "json"]
    assert [list(document) for document in shown] == [["error"], ["query", "hits"]]
    for kind, document in zip(("error", "recall"), shown, strict=True):
        assert list(schema(kind).iter_errors(document)) == []
