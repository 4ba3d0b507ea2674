"""Vectors in a vault: what is sent, what is found by them and where, what goes with what, and what failures change."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import artifacts_fixture as made
import embedding_server
import numpy as np
import pytest
from embedding_server import FAULTS, EmbeddingServer, Handler, hashed, learned, serving
from invented_secrets import some
from workbench import NOW, Answer, Vault, numbered

from signet_sync.app.workspace import opened
from signet_sync.cli.main import Context
from signet_sync.embeddings import making, meaning, operations, store
from signet_sync.mcp_server import read_tools
from signet_sync.mcp_server.memory import ServedMemory
from signet_sync.mcp_server.schemas import RecallArguments
from signet_sync.memories.store import memories
from signet_sync.recall import operations as recall_operations
from signet_sync.recall.search import Within
from signet_sync.settings import model
from signet_sync.settings.model_choice import has_embeddings
from signet_sync.sync.read_only import IndexPlace

SECRET = "ghp_" + some(Random(8), 36)
# What is said together, from which the small model learns which words mean the same.
SAYINGS = (
    "the car stands in the garage", "the automobile stands in the garage", "a vehicle is parked in the garage",
    "the car needs fuel and tyres", "the automobile needs fuel and tyres", "the vehicle needs fuel",
    "the soup is cooked with salt", "a meal is cooked with salt and onions", "dinner is a meal of soup",
    "the loop retries a request", "the request is retried by the loop", "the queue drains its requests",
)  # fmt: skip
LATER = "2026-03-29T12:10:00.000Z"


@pytest.fixture(autouse=True)
def rested(monkeypatch: pytest.MonkeyPatch) -> None:
    """No process that answered before remembers anything."""
    monkeypatch.setattr(meaning, "_rest_of", {})


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


def configure(server: EmbeddingServer, name: str = "small", more: str = "") -> None:
    set_user_file(f'[embeddings]\nprovider = "openai-compatible"\nmodel = "{name}"\nendpoint = "{server.url}"\n{more}')


def turn_off() -> None:
    set_user_file("")


def embed(vault: Vault) -> None:
    """What the agent does in idle time."""
    assert vault.call("session", "take-spool").code == 0


def filled(vault: Vault, number: int = 3) -> None:
    for each in range(1, number + 1):
        vault.session(each)
    vault.reindex()
    embed(vault)


def remember(vault: Vault, *words: str) -> str:
    answer = vault.call("remember", *words, "--json", "--now", NOW)
    assert answer.code == 0, answer
    name: str = answer.json["id"]
    return name


def recall(vault: Vault, words: str, *more: str, now: str = NOW) -> Answer:
    answer = vault.call("recall", words, "--json", "--now", now, *more)
    assert answer.code == 0, answer
    return answer


def hits(vault: Vault, words: str, *more: str, now: str = NOW) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = recall(vault, words, *more, now=now).json["hits"]
    return found


def count(vault: Vault) -> int:
    found: int = vault.rows("select count(*) from embeddings")[0][0]
    return found


def whole(vault: Vault) -> None:
    """Every line and artifact has its vectors, and each vector has what it was made from."""
    assert vault.rows(LEFT) == [(0, 0)]
    assert vault.rows(LOST) == []


LEFT = """select (select count(*) from texts l where l.artifact is null
    and l.first not in (select line from embeddings where line)),
    (select count(*) from memory_artifacts a where a.source_kind <> 'manifest'
    and a.id not in (select artifact from embeddings where complete and artifact))"""
LOST = """select e.artifact, e.line from embeddings e left join memory_artifacts a on a.id = e.artifact
    left join texts l on l.first = e.line and l.artifact is null
    where coalesce(a.agent_id, l.agent_id) is not e.agent_id or (a.id is null) = (l.first is null)"""


# ── making ──


def test_every_line_and_artifact_gets_its_vectors_once(vault: Vault, server: EmbeddingServer) -> None:
    filled(vault)
    whole(vault)
    assert vault.rows("select distinct length(vector) from embeddings") == [(2 * embedding_server.DIMENSIONS,)]
    assert {path for path, _, _ in server.requests} == {"/v1/embeddings"}
    asked = len(server.asked)
    embed(vault)
    assert len(server.asked) == asked and max(map(len, server.asked)) <= making.BATCH
    vault.session(4)
    vault.reindex()
    embed(vault)
    whole(vault)
    new = [text for some in server.asked[asked:] for text in some]
    assert new and not any("number1x" in text and text.startswith("User") for text in new)


def test_a_group_of_turns_has_a_vector_of_its_words(vault: Vault, server: EmbeddingServer) -> None:
    speakers = ("User", "Assistant")
    turns = "".join(
        f"## {speakers[each % 2]} · 2026-03-28T10:{each:02d}:00.000Z\n\nTurn {each} of the lamp. {'x' * 300}\n\n"
        for each in range(20)
    )
    vault.session(1)
    vault.put(made.transcript(**{**numbered(1), "body": turns}))
    vault.reindex()
    embed(vault)
    groups = vault.rows(
        "select e.start, e.end, e.complete, e.vector from embeddings e join memory_artifacts a on a.id = e.artifact"
        " where a.source_kind = 'transcript' order by e.start"
    )
    assert len(groups) > 4 and [complete for _, _, complete, _ in groups] == [0] * (len(groups) - 1) + [1]
    assert all(groups[at][1] == groups[at + 1][0] for at in range(len(groups) - 1))
    said = next(text for text in server.texts if "Turn 0 of" in text)
    assert "2026" not in said
    vector = np.asarray(hashed(said), dtype=np.float32)
    kept = np.frombuffer(groups[0][3], dtype=np.float16)
    assert float(kept @ (vector / np.linalg.norm(vector))) == pytest.approx(1, abs=1e-2)


def test_by_default_nothing_is_sent_and_nothing_loaded(vault: Vault, server: EmbeddingServer) -> None:
    turn_off()
    filled(vault)
    assert count(vault) == 0 and server.asked == []
    program = (
        "import sys; from signet_sync.cli import main; code = main.run(sys.argv[1:]);"
        " print(*sorted({'numpy', 'httpx', 'signet_sync.recall.similar'} & set(sys.modules)), file=sys.stderr);"
        " sys.exit(code)"
    )
    import subprocess

    done = subprocess.run(
        [sys.executable, "-c", program, "--workspace", vault.root, "recall", "lantern"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "lantern" in done.stdout and not {"numpy", "httpx"} & set(done.stderr.split())


def test_only_sanitized_text_is_sent(vault: Vault, server: EmbeddingServer) -> None:
    remember(vault, f"The token of the lamp is {SECRET} and it is red.")
    vault.session(1, body=f"# Lamp\n\n## Decisions\n\n- The lamp uses {SECRET} at dusk.\n")
    vault.reindex()
    embed(vault)
    hits(vault, f"which lamp uses {SECRET} today")
    hits(vault, "word " * 900 + f"{SECRET} {SECRET}")
    assert any("REDACTED" in text for text in server.texts)
    assert SECRET not in repr(server.asked) and max(len(text) for text in server.asked[-1]) <= 1000


def test_a_run_that_ends_early_is_continued(
    vault: Vault, server: EmbeddingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(making, "BATCH", 4)

    def die_at_third(handler: Handler, texts: list[str]) -> None:
        act = embedding_server.vectors if len(server.asked) < 3 else embedding_server.die_midway
        act(handler, texts)

    for each in range(1, 13):
        vault.session(each)
    vault.reindex()
    server.act = die_at_third
    embed(vault)
    done = count(vault)
    assert done == 2 * making.BATCH
    failed = len(server.asked)
    embed(vault)
    assert len(server.asked) == failed  # it rests
    assert vault.rows("select kind from model_rests") == [("embeddings",)]
    server.act = embedding_server.vectors
    with vault.database(readonly=False) as database:
        database.execute("delete from model_rests")
    embed(vault)
    whole(vault)
    assert sum(map(len, server.asked[:2])) + sum(map(len, server.asked[failed:])) <= count(vault)


@pytest.mark.parametrize("act", [act for name, act in FAULTS.items() if name not in ("hang", "drip")])
def test_no_vector_comes_of_a_wrong_answer(vault: Vault, server: EmbeddingServer, act: embedding_server.Act) -> None:
    filled(vault, 1)
    before = vault.rows("select * from embeddings order by line, artifact, start")
    server.act = act
    vault.session(2)
    vault.reindex()
    embed(vault)
    kept = set(vault.rows("select * from embeddings order by line, artifact, start"))
    assert kept <= set(before) and kept


def test_a_text_that_the_model_refuses_does_not_hold_up_the_others(vault: Vault, server: EmbeddingServer) -> None:
    def refuse(handler: Handler, texts: list[str]) -> None:
        if any("number2x" in text for text in texts):
            handler.say({"error": "too long"}, 400)
        else:
            embedding_server.vectors(handler, texts)

    server.act = refuse
    filled(vault)
    whole(vault)
    assert 0 < vault.rows("select count(*) from embeddings where length(vector) = 0")[0][0] < count(vault) / 2
    assert hits(vault, "number1x")


def test_a_model_that_refuses_everything_marks_nothing(vault: Vault, server: EmbeddingServer) -> None:
    server.act = lambda handler, texts: handler.say({"error": "unknown model"}, 400)
    filled(vault, 1)
    assert count(vault) == 0


def test_there_are_at_most_so_many(vault: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operations, "MOST", 7)
    filled(vault)
    embed(vault)
    assert count(vault) == 7


def test_another_model_replaces_all_vectors(vault: Vault, server: EmbeddingServer) -> None:
    filled(vault)
    before = count(vault)
    configure(server, "other")
    server.model = lambda text: hashed(text, 16)
    assert hits(vault, "step") is not None and len(server.asked[-1]) > 1  # nothing is compared with the old ones
    embed(vault)
    assert vault.rows("select distinct length(vector) from embeddings") == [(32,)]
    assert count(vault) == before
    with vault.database() as database:
        assert store.model_of(database) == (16, "openai-compatible other")


def test_turned_off_for_good_they_go_and_for_a_while_they_stay(vault: Vault, server: EmbeddingServer) -> None:
    filled(vault)
    before, asked = count(vault), len(server.asked)
    configure(server, more="enabled = false\n")
    embed(vault)
    hits(vault, "automobile")
    assert count(vault) == before and len(server.asked) == asked
    # What cannot be read may have forbidden it; it does not delete anything either.
    configure(server, more="enabled = perhaps\n")
    embed(vault)
    assert count(vault) == before and len(server.asked) == asked
    turn_off()
    embed(vault)
    assert count(vault) == 0 and vault.rows("select * from derivers where name = 'embeddings'") == []


def test_a_rebuild_makes_them_again(vault: Vault) -> None:
    filled(vault)
    before = count(vault)
    vault.reindex("--full")
    assert count(vault) == 0
    embed(vault)
    whole(vault)
    assert count(vault) == before


# ── finding ──


@pytest.fixture
def garage(vault: Vault, server: EmbeddingServer) -> Vault:
    """A vault with a model that knows synonyms."""
    server.model = learned(SAYINGS)
    remember(vault, "The car needs fuel and tyres.")
    remember(vault, "The soup is cooked with salt.")
    vault.session(1, body="# Queue\n\n## Decisions\n\n- The loop retries a request.\n")
    vault.reindex()
    embed(vault)
    return vault


def test_what_no_word_finds_is_found_by_its_meaning(garage: Vault) -> None:
    (found,) = [hit for hit in hits(garage, "automobile") if hit["tier"] == "memory"]
    assert found["text"].startswith("The car needs") and found["score"] == 0
    assert found["why"].startswith("similar in meaning, in a remembered ")
    turn_off()
    assert hits(garage, "automobile") == []


@pytest.mark.parametrize(
    "words", ["number2x lantern", "bounded retry loop", "what did step 3 do", "src/queue.py", "lantern"]
)
def test_what_words_find_is_first_and_as_it_was(vault: Vault, words: str) -> None:
    filled(vault, 6)
    found = hits(vault, words)
    turn_off()
    by_words = hits(vault, words)
    assert found[: len(by_words)] == by_words and by_words
    assert all(hit["score"] == 0 and "similar in meaning" in hit["why"] for hit in found[len(by_words) :])
    ids = [hit["id"] for hit in found]
    assert len(ids) == len(set(ids)) and len(found) <= 10


def test_a_full_answer_asks_no_model(vault: Vault, server: EmbeddingServer) -> None:
    filled(vault, 6)
    asked = len(server.asked)
    assert len(hits(vault, "lantern", "--limit", "2")) == 2
    assert len(server.asked) == asked


def test_a_session_is_found_at_its_turns(vault: Vault, server: EmbeddingServer) -> None:
    server.model = learned(SAYINGS)
    body = "## User · 2026-03-28T10:00:00.000Z\n\nThe vehicle needs fuel.\n"
    of_no_thread = {"body": body, "project": "/tmp/x", "memory_sentence": "A plain talk of lanterns at dusk."}
    vault.put(made.transcript(**{**numbered(1), **of_no_thread}))
    vault.reindex()
    embed(vault)
    found = [hit for hit in hits(vault, "automobile tyres") if hit["tier"] == "session"]
    assert [hit["text"] for hit in found] == ["The vehicle needs fuel."]
    assert found[0]["why"].startswith("similar in meaning, in a transcript") and "User, 2026-03-28" in found[0]["why"]
    assert found[0]["path"].endswith("--transcript.md") and found[0]["id"].startswith("k-")


def test_scopes_tiers_and_agents_hold(garage: Vault, server: EmbeddingServer) -> None:
    private = remember(garage, "The vehicle needs fuel and tyres.", "--private")
    other = remember(garage, "A vehicle needs fuel.", "--agent", "scout")
    embed(garage)
    place = IndexPlace(str(garage.root), None, lambda: model.load(str(garage.root))[0], lambda words: words, opened)

    def found(agent: str = "default", **scope: Any) -> set[str]:
        with garage.database() as database:
            answer = recall_operations.recall(
                database, "automobile", Within(agent, **scope), meaning=meaning.Meaning(place, 0)
            )
        return {hit.id for hit in answer}

    assert private in found() and other not in found()
    shared = found(private=False, statements=True)
    assert shared and private not in shared and all(one.startswith("m-") for one in shared)
    assert found(statements=True) >= shared | {private}
    assert found("scout") == {other} and found("nobody") == set()


def test_it_promotes_nothing(garage: Vault) -> None:
    found = hits(garage, "automobile")
    assert found and all(hit["score"] == 0 for hit in found)
    assert garage.rows("select * from recall_events") == []


# ── a model that fails while a person waits ──


_QUICK = ("hang", "broken")


@pytest.mark.parametrize(
    "act",
    [pytest.param(act, id=name, marks=() if name in _QUICK else pytest.mark.slow) for name, act in FAULTS.items()],
)
def test_words_answer_in_time_and_it_is_said_once(
    vault: Vault, server: EmbeddingServer, act: embedding_server.Act, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(vault)
    settings = Path(os.environ["SIGNET_CONFIG"]).read_text()
    turn_off()
    by_words = hits(vault, "number1x")
    set_user_file(settings)
    server.act, asked = act, len(server.asked)
    began = time.monotonic()
    first = recall(vault, "number1x")
    assert time.monotonic() - began < meaning.SECONDS + 1
    assert first.json["hits"] == by_words
    assert first.err.count("nothing was searched by meaning") == 1 and "\n" not in first.err.strip()
    after = len(server.asked)
    assert after > asked
    monkeypatch.setattr(meaning, "_rest_of", {})  # another process
    began = time.monotonic()
    second = recall(vault, "number1x")
    assert time.monotonic() - began < meaning.SECONDS
    assert second.json["hits"] == by_words and second.err == "" and len(server.asked) == after
    server.act = embedding_server.vectors
    assert recall(vault, "number1x", now=LATER).err == "" and len(server.asked) == after + 1


def test_a_reader_that_may_not_write_remembers_a_failure_itself(garage: Vault, server: EmbeddingServer) -> None:
    server.act = embedding_server.broken
    place = IndexPlace(str(garage.root), None, lambda: model.load(str(garage.root))[0], lambda words: words, opened)
    troubles = []
    for _ in range(3):
        asked = meaning.Meaning(place, 1_000_000, remembers=False)
        with garage.database() as database:
            assert asked.nearest(database, "default", "automobile") == []
        troubles.append(bool(asked.trouble))
    assert troubles == [True, False, False]
    assert garage.rows("select * from model_rests") == []


def test_without_the_key_words_answer(garage: Vault, server: EmbeddingServer) -> None:
    configure(server, more='api_key_env = "NO_SUCH_KEY"\n')
    answer = recall(garage, "automobile")
    assert answer.json["hits"] == [] and "nothing was searched by meaning: no key" in answer.err


def test_without_numpy_the_remedy_is_named(garage: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numpy", None)
    assert "pip install 'signet-sync[embeddings]'" in recall(garage, "automobile").err


# ── what goes with what ──


def raw_vectors(vault: Vault, where: str) -> list[bytes]:
    found = [row[0] for row in vault.rows(f"select vector from embeddings where {where}")]
    assert found
    return found


def leaks(vault: Vault, needles: list[bytes]) -> list[str]:
    """Files that hold a vector's bytes; of a page's overflow at least the first half of it."""
    return [
        path.name
        for path in vault.root.parent.rglob("*")
        if path.is_file() and any(needle[: len(needle) // 2] in path.read_bytes() for needle in needles)
    ]


def test_a_removed_session_leaves_no_vector_in_any_file(vault: Vault, server: EmbeddingServer) -> None:
    vault.session(4, body="# Lamp\n\n## Decisions\n\n- The zanzibar lamp is lit at dusk.\n")
    filled(vault)
    own = "artifact in (select id from memory_artifacts where session_id = ?)"
    session = numbered(4)["session_id"]
    needles = raw_vectors(vault, own.replace("?", f"'{session}'"))
    needles += raw_vectors(vault, "line in (select first from texts where text like '%zanzibar%')")
    assert leaks(vault, needles)
    answer = vault.call("remove", session, "--reason", "asked for", "--yes", "--json", "--now", NOW)
    assert answer.code == 0, answer
    assert vault.rows(LOST) == [] and leaks(vault, needles) == []
    asked = len(server.asked)
    embed(vault)
    whole(vault)
    assert "zanzibar" not in repr(server.asked[asked:])


def test_a_forgotten_memory_leaves_no_vector_in_any_file(garage: Vault) -> None:
    (gone,) = garage.rows("select id from memories where content like '%car%'")[0]
    needles = raw_vectors(garage, f"line in (select first from texts where name = '{gone}')")
    assert leaks(garage, needles)
    assert garage.call("forget", gone, "--json", "--now", NOW).code == 0
    assert garage.rows(LOST) == [] and leaks(garage, needles) == []
    assert all(hit["tier"] != "memory" for hit in hits(garage, "automobile"))


def test_the_vector_goes_in_the_transaction_of_its_text(garage: Vault) -> None:
    (gone,) = garage.rows("select id from memories where content like '%car%'")[0]
    with garage.database(readonly=False) as database:
        (line,) = next(database.execute("select first from texts where name = ?", (gone,)))
        with pytest.raises(ZeroDivisionError), database.transaction():
            memories.forget(database, "default", [gone])
            assert not list(database.execute("select 1 from embeddings where line = ?", (line,)))
            raise ZeroDivisionError
        assert list(database.execute("select 1 from embeddings where line = ?", (line,)))


def test_a_redacted_file_gets_vectors_of_its_new_text(vault: Vault, server: EmbeddingServer) -> None:
    vault.session(4, body=f"# Four\n\n## Decisions\n\n- The token is {SECRET} at dusk.\n")
    filled(vault)
    session = numbered(4)["session_id"]
    before = vault.rows("select id from memory_artifacts where session_id = ?", session)
    assert vault.call("redact", session, "--reason", "a token", "--yes", "--now", NOW).code == 0
    assert vault.rows(LOST) == []
    assert not set(before) & set(vault.rows("select artifact from embeddings where artifact"))
    embed(vault)
    whole(vault)
    assert SECRET not in repr(server.asked)


def test_a_tool_answers_by_words_and_says_why(garage: Vault, server: EmbeddingServer) -> None:
    memory = ServedMemory(Context(str(garage.root)).place(), "default")
    arguments = RecallArguments(query="automobile")
    assert read_tools.recall(memory, arguments)["hits"]
    server.act = embedding_server.broken
    answers = [read_tools.recall(memory, arguments) for _ in range(2)]
    assert [bool(answer["hits"]) for answer in answers] == [False, False]
    assert ["nothing was searched by meaning" in str(answer) for answer in answers] == [True, False]


def test_a_deleted_or_changed_file_takes_its_vectors_along(vault: Vault) -> None:
    filled(vault)
    (vault / made.path_for("transcript", **who(1))).unlink()
    vault.reindex()
    assert vault.rows(LOST) == []
    embed(vault)
    whole(vault)
    path = vault / made.path_for("manifest", **who(2))
    path.write_bytes(path.read_bytes() + b"\nMore words.\n")
    vault.reindex()
    embed(vault)
    whole(vault)


def who(number: int) -> dict[str, Any]:
    return {key: value for key, value in numbered(number).items() if key in ("session_id", "captured_at")}


def test_what_is_forgotten_while_the_model_works_gets_no_vector(vault: Vault, server: EmbeddingServer) -> None:
    gone = remember(vault, "The zanzibar lamp is red.")

    def forget_first(handler: Handler, texts: list[str]) -> None:
        server.act = embedding_server.vectors
        with vault.database(readonly=False) as database, database.transaction():
            memories.forget(database, "default", [gone])
            memories.store(
                database, memories.Memory("default", "m-aaaaaaaaaaaa", "fact", "Other words.", (), False, NOW), ("", "")
            )
        embedding_server.vectors(handler, texts)

    server.act = forget_first
    embed(vault)
    vector = np.asarray(hashed("The zanzibar lamp is red."), dtype=np.float32)
    unit = vector / np.linalg.norm(vector)
    kept = [np.frombuffer(row[0], dtype=np.float16) for row in vault.rows("select vector from embeddings")]
    assert all(float(one @ unit) < 0.9 for one in kept)
    embed(vault)
    whole(vault)


def test_two_agents_vectors_are_their_own(vault: Vault) -> None:
    for agent in ("default", "scout"):
        remember(vault, f"The {agent} lamp is lit.", "--agent", agent)
    vault.session(1)
    vault.session(2, agent_id="scout")
    vault.reindex()
    embed(vault)
    whole(vault)
    assert {agent for (agent,) in vault.rows("select distinct agent_id from embeddings")} == {"default", "scout"}


# ── settings ──


def test_a_workspace_names_no_model(tmp_path: Path, server: EmbeddingServer) -> None:
    vault = Vault(tmp_path / "vault")
    lines = f'[embeddings]\nprovider = "openai-compatible"\nmodel = "small"\nendpoint = "{server.url}"\n'
    (vault / "signet-sync.toml").write_text(f"{lines}enabled = true\n")
    filled(vault)
    assert server.asked == [] and count(vault) == 0
    settings, remarks = model.load(str(vault.root))
    assert not has_embeddings(settings) and len(remarks) == 4
    assert all("a workspace may not set this" in str(remark) for remark in remarks)


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ('provider = "ollama"', "embeddings.model is not set"),
        ('provider = "openai-compatible"\nmodel = "m"', "embeddings.endpoint is not set"),
        ('provider = "command"', "embeddings.provider = 'command' is unknown"),
    ],
)
def test_a_block_that_lacks_something_is_refused(tmp_path: Path, lines: str, words: str) -> None:
    set_user_file(f"[embeddings]\n{lines}\n")
    vault = Vault(tmp_path / "vault")
    answer = vault.call("reindex")
    assert answer.code == 2 and words in answer.err


# ── what doctor says ──


def finding(vault: Vault) -> dict[str, Any]:
    (found,) = [one for one in vault.call("doctor", "--json").json["findings"] if one["name"] == "embeddings"]
    assert isinstance(found, dict)
    return found


def test_doctor_says_what_is_sent_where_and_how_much_there_is(vault: Vault, server: EmbeddingServer) -> None:
    filled(vault)
    found = finding(vault)
    assert found["level"] == "ok" and f"are sent to 127.0.0.1:{server.server_port}" in found["message"]
    assert f"{count(vault)} vectors, 0.0 MB" in found["message"] and "without" not in found["message"].split(";")[-1]
    asked = len(server.asked)
    vault.session(4)
    vault.reindex()
    assert "texts without" in finding(vault)["message"] and len(server.asked) == asked
    server.act = embedding_server.broken
    embed(vault)
    assert finding(vault)["level"] == "warning"
    configure(server, more='api_key_env = "NO_SUCH_KEY"\n')
    assert "no key" in finding(vault)["message"] and finding(vault)["remedy"]
    turn_off()
    assert finding(vault)["message"].startswith("off")
