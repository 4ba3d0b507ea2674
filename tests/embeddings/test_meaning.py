"""Recall by meaning: what a model gets, how its answers order hits, what goes with what, what failures change."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import artifacts_fixture as made
import embedding_server
import numpy as np
import pytest
from embedding_server import EmbeddingServer, Handler, serving, understood
from invented_secrets import some
from workbench import NOW, Vault, numbered

from signet_sync.embeddings import resident, store, vectors
from signet_sync.embeddings.resident import Resident
from signet_sync.errors import SignetSyncError
from signet_sync.memories.store import memories
from signet_sync.recall import operations as recall_operations
from signet_sync.recall.store.rows import Within
from signet_sync.settings import model

SECRET = "ghp_" + some(Random(8), 36)
ASKED = "automobile wheels petrol"  # none of these words is in the vault


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The machine has nothing else to do, and no model is left to another test."""
    monkeypatch.setattr(resident, "_is_on_battery", lambda: False)
    monkeypatch.setattr(resident, "_PATIENCE", 300.0)
    yield
    store.let_tell(None)


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    with serving() as found:
        yield found


@pytest.fixture
def vault(tmp_path: Path, server: EmbeddingServer) -> Vault:
    configure(server)
    return Vault(tmp_path / "vault")


def set_user_file(text: str) -> None:
    path = Path(os.environ["SIGNET_CONFIG"])
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def configure(server: EmbeddingServer, name: str = "small") -> None:
    of_server = f'[meaning]\nmodel = "{name}"\nendpoint = "{server.url}"\n'
    set_user_file(f'[recall]\nmeaning = "openai-compatible"\n{of_server}')


def work(vault: Vault, agent: Resident | None = None) -> Resident:
    """What the agent does while nothing changes; from now on it tells what is near."""
    agent = agent or Resident(str(vault.db), lambda: model.load(str(vault.root))[0])
    store.let_tell(agent.measure_nearness)
    with vault.database(readonly=False) as database:
        while agent.work(database) == 0:
            pass
    return agent


def filled(vault: Vault, number: int = 3) -> None:
    for each in range(1, number + 1):
        vault.session(each)
    vault.reindex()


def remember(vault: Vault, *words: str) -> str:
    answer = vault.call("remember", *words, "--json", "--now", NOW)
    assert answer.code == 0, answer
    name: str = answer.json["id"]
    return name


def hits(vault: Vault, words: str, *more: str) -> list[dict[str, Any]]:
    answer = vault.call("recall", words, "--json", "--now", NOW, *more)
    assert answer.code == 0, answer
    found: list[dict[str, Any]] = answer.json["hits"]
    return found


def left(vault: Vault) -> int:
    """Texts without vectors, and vectors without a text."""
    found: int = vault.rows(
        "select (select count(*) from texts where first not in (select text from vectors))"
        " + (select count(*) from vectors where text not in (select first from texts))"
    )[0][0]
    return found


@pytest.fixture
def garage(vault: Vault, server: EmbeddingServer) -> Vault:
    """A vault with a model that knows synonyms."""
    server.model = understood
    remember(vault, "The car needs fuel and tyres.")
    remember(vault, "The soup is cooked with salt.")
    vault.session(1, body="# Queue\n\n## Decisions\n\n- The loop retries a request.\n")
    vault.reindex()
    return vault


# ── what is made ──


def test_every_text_gets_its_vectors_once_in_the_words_of_the_model(vault: Vault, server: EmbeddingServer) -> None:
    configure(server, "multilingual-e5-small")
    filled(vault)
    agent = work(vault)
    assert left(vault) == 0
    asked = len(server.asked)
    work(vault, agent)
    assert len(server.asked) == asked and all(text.startswith("passage: ") for text in server.texts)
    assert hits(vault, "bounded retry loop")
    assert server.asked[asked:] == [["query: bounded retry loop"]]
    vault.session(4)
    vault.reindex()
    work(vault, agent)
    assert left(vault) == 0


def test_what_tools_print_and_secrets_are_never_asked(vault: Vault, server: EmbeddingServer) -> None:
    turns = "## User · 2026-03-28T12:00:00.000Z\n\nDoes the lamp work?\n"
    turns += "- `Bash` · 2026-03-28T12:00:10.000Z · `ls`\n  zanzibar printed this\n"
    vault.session(1, body=f"# One\n\n## Decisions\n\n- The token is {SECRET} at dusk.\n")
    vault.put(made.transcript(**{**numbered(1), "body": turns}))
    vault.reindex()
    work(vault)
    hits(vault, f"where is {SECRET}")
    assert "lamp" in repr(server.asked) and "zanzibar" not in repr(server.asked) and SECRET not in repr(server.asked)


def test_without_the_agent_nothing_is_asked_or_loaded_and_words_answer(garage: Vault, server: EmbeddingServer) -> None:
    work(garage)
    asked = len(server.asked)
    store.let_tell(None)
    assert hits(garage, ASKED) == [] and hits(garage, "car") and len(server.asked) == asked
    script = "import sys, signet_sync.recall.operations, signet_sync.capture.hook; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_a_text_that_the_model_refuses_does_not_hold_up_the_others(vault: Vault, server: EmbeddingServer) -> None:
    def refuse(handler: Handler, texts: list[str]) -> None:
        if any("zanzibar" in text for text in texts):
            handler.say({"error": "too long"}, 400)
        else:
            embedding_server.vectors(handler, texts)

    remember(vault, "The zanzibar lamp is red.")
    remember(vault, "The garage is cold.")
    server.act = refuse
    work(vault)
    assert left(vault) == 0 and vault.rows("select count(*) from vectors where length(rows) > 0") == [(1,)]


def test_another_model_makes_all_anew_and_words_answer_meanwhile(garage: Vault, server: EmbeddingServer) -> None:
    agent = work(garage)
    configure(server, "second")
    server.act = embedding_server.FAULTS["broken"]
    with garage.database(readonly=False) as database, pytest.raises(SignetSyncError):
        agent.work(database)
    assert hits(garage, ASKED) == [] and hits(garage, "car")
    server.act = embedding_server.vectors
    work(garage, agent)
    assert ["second" in key for (key,) in garage.rows("select distinct model from vectors")] == [True]
    assert hits(garage, ASKED) and left(garage) == 0


def test_turned_off_for_good_they_go_and_for_a_while_they_stay(garage: Vault, server: EmbeddingServer) -> None:
    agent = work(garage)
    set_user_file('[recall]\nmeaning = "paused"\n')
    work(garage, agent)
    assert left(garage) == 0 and hits(garage, ASKED) == []
    set_user_file("")
    work(garage, agent)
    assert garage.rows("select count(*) from vectors") == [(0,)]


# ── what is found ──


def test_what_no_word_finds_is_found_by_its_meaning_and_both_are_one_score(garage: Vault) -> None:
    remember(garage, "A meal is in the garage.")
    work(garage)
    found = hits(garage, ASKED)
    assert found[0]["text"].startswith("The car needs") and not found[0]["known"]
    assert hits(garage, "zanzibar") == []
    both = [hit["text"] for hit in hits(garage, f"{ASKED} garage")]
    assert any("car needs" in text for text in both) and any("A meal" in text for text in both)
    store.let_tell(None)
    assert not any("car needs" in hit["text"] for hit in hits(garage, f"{ASKED} garage"))


def test_a_session_is_shown_where_it_means_it(vault: Vault, server: EmbeddingServer) -> None:
    server.model = understood
    for text in ("The soup is cooked with salt.", "A lamp is lit at dusk.", "We paint the door green."):
        remember(vault, text)
    said = "The garage door is green. " * 30, "Noted. " * 90, "The car needs fuel and tyres. " * 20
    turns = "".join(
        f"## {('User', 'Assistant')[number % 2]} · 2026-03-28T12:00:{number:02}.000Z\n\n{text}\n"
        for number, text in enumerate(said)
    )
    vault.put(made.transcript(**{**numbered(1), "body": turns}))
    vault.reindex()
    work(vault)
    found = [hit["text"] for hit in hits(vault, ASKED) if hit["tier"] == "session"]
    assert "The car needs fuel" in found[0] and "garage" not in found[0]


# ── whose it is ──


def test_scopes_and_agents_hold(garage: Vault) -> None:
    private = remember(garage, "The vehicle needs fuel and tyres.", "--private")
    other = remember(garage, "A vehicle needs fuel and tyres.", "--agent", "scout")
    remember(garage, "The soup is cooked with salt.", "--agent", "scout")
    work(garage)

    def found(agent: str = "default", **scope: Any) -> set[str]:
        with garage.database() as database:
            return {hit.id for hit in recall_operations.recall(database, ASKED, Within(agent, **scope))}

    assert private in found() and other not in found()
    shared = found(shared=True)
    assert shared and private not in shared and all(one.startswith("m-") for one in shared)
    assert found("scout") == {other} and found("nobody") == set()


def nearest(vault: Vault, text: str) -> float:
    """The cosine of the nearest vector of any text, whoever may read it."""
    told = store.measure_nearness
    with vault.database() as database:
        found = told(database, [(0, (1 << 63) - 1)], text)
    return found.most if found else 0.0


def leaks(vault: Vault, needles: list[bytes]) -> list[str]:
    """Files that hold half of a text's vectors."""
    return [
        path.name
        for path in vault.root.parent.rglob("*")
        if path.is_file() and any(needle[: len(needle) // 2] in path.read_bytes() for needle in needles)
    ]


def test_what_is_removed_or_forgotten_leaves_no_vector(vault: Vault, server: EmbeddingServer) -> None:
    said = "The zanzibar lamp is lit at dusk."
    vault.session(4, body=f"# Lamp\n\n## Decisions\n\n- {said}\n")
    gone = remember(vault, said)
    filled(vault)
    agent = work(vault)
    assert nearest(vault, said) > 0.95
    session = numbered(4)["session_id"]
    of = "select t.first from texts t left join memory_artifacts a on a.id = t.artifact where a.session_id = ?"
    found = vault.rows(f"select rows from vectors where text in ({of} or t.text like '%zanzibar%')", session)
    needles = [row[0] for row in found]
    assert leaks(vault, needles)
    assert vault.call("forget", gone, "--json", "--now", NOW).code == 0
    assert vault.call("remove", session, "--reason", "asked", "--yes", "--json", "--now", NOW).code == 0
    assert nearest(vault, said) < 0.8 and leaks(vault, needles) == []
    work(vault, agent)
    assert nearest(vault, said) < 0.8 and left(vault) == 0


def test_what_is_forgotten_while_the_model_works_gets_no_vector(vault: Vault, server: EmbeddingServer) -> None:
    gone = remember(vault, "The zanzibar lamp is red.")

    def forget_first(handler: Handler, texts: list[str]) -> None:
        if any("zanzibar" in text for text in texts):
            with vault.database(readonly=False) as database, database.transaction():
                memories.forget(database, "default", [gone])
                other = memories.Memory("default", "m-aaaaaaaaaaaa", "fact", "Other words.", (), False, NOW)
                memories.store(database, other, ("", ""))
        embedding_server.vectors(handler, texts)

    server.act = forget_first
    work(vault)
    assert nearest(vault, "The zanzibar lamp is red.") < 0.8 and nearest(vault, "Other words.") > 0.95


# ── vectors ──


def test_a_kept_vector_is_nearly_the_vector() -> None:
    asked = vectors.unit_vectors(np.random.default_rng(5).standard_normal((40, 384)), 40)
    kept = np.frombuffer(vectors.pack(range(40), asked), vectors._form(384))
    cosines = (kept["vector"].astype(np.float32) * asked).sum(axis=1) / kept["length"]
    assert cosines.min() > 0.999 and list(kept["row"]) == list(range(40))


# ── settings ──


def test_status_and_doctor_say_how_far_it_is_and_what_goes_where(vault: Vault, server: EmbeddingServer) -> None:
    def said() -> str:
        (found,) = [one for one in vault.call("doctor", "--json").json["findings"] if one["name"] == "meaning"]
        return str(found["message"])

    filled(vault, 1)
    assert "127.0.0.1" in said() and "no vectors" in said()
    work(vault)
    made = vault.call("status", "--json").json["meaning"]
    assert "have vectors" in made and made in said() and made in vault.call("status").out


def test_a_choice_that_lacks_something_is_refused(tmp_path: Path) -> None:
    vault = Vault(tmp_path / "vault")
    for lines, words in (
        ('meaning = "ollama"', "meaning.model is not set"), ('meaning = "models/mine"', "'models/mine' is unknown"),
        ('meaning = "openai-compatible"\n[meaning]\nmodel = "m"', "meaning.endpoint is not set"),
    ):  # fmt: skip
        set_user_file(f"[recall]\n{lines}\n")
        answer = vault.call("reindex")
        assert answer.code == 2 and words in answer.err
