"""`expand`: every form of a handle, all that lies around a thing, down to the transcript's words, within the budget."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import artifacts_fixture as made
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sample_graph import AGENTS, COMPACTED, LONG, NOISE, SEGMENTED, SESSIONS, TRANSCRIPT_ONLY, fill, talk
from workbench import Vault

from signet_sync.errors import UsageError
from signet_sync.formats.handle import make_place_id, row_id_of
from signet_sync.graph.store import neighbours
from signet_sync.recall.as_text import list_expanded_lines
from signet_sync.recall.expand import expand
from signet_sync.recall.store import references
from signet_sync.storage.database.connection import Database
from signet_sync.storage.database.tables import NODES
from signet_sync.sync.store.texts import text_at
from signet_sync.text import chunking
from signet_sync.text.token_estimate import cut, estimate_tokens, keep_end


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Vault]:
    """Two agents with the same sessions, indexed once: only looked at."""
    folder = tmp_path_factory.mktemp("expand")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SIGNET_STATE", str(folder / "state"))
        vault = Vault(folder / "vault")
        for agent in AGENTS:
            fill(vault, agent)
        vault.reindex()
        yield vault


@pytest.fixture
def vault(filled: Vault, monkeypatch: pytest.MonkeyPatch) -> Vault:
    monkeypatch.setenv("SIGNET_STATE", str(filled.root.parent / "state"))
    return filled


@pytest.fixture
def database(vault: Vault) -> Iterator[Database]:
    with vault.database() as database:
        assert all(ids_of(database, agent) for agent in AGENTS)
        yield database


def ids_of(database: Database, agent: str = "default") -> list[str]:
    """Every id that an agent has."""
    columns = (
        ("session_summaries", "id"), ("memory_thread_heads", "thread_id"), ("statements", "id"), ("memories", "id"),
    )  # fmt: skip
    rows = [
        row[0]
        for table, column in columns
        for row in database.execute(f"select distinct {column} from {table} where agent_id = ? order by 1", (agent,))
    ]
    transcripts = [node for one in rows if one[0] == "k" and (node := neighbours.node(database, agent, one))]
    return rows + [place for one in transcripts for place in neighbours.siblings(database, one)]


def node_of(database: Database, session: str, kind: str = "summary", agent: str = "default") -> str:
    """The newest node of a session."""
    found: str = database.value(
        f"select id from {NODES} where agent_id = ? and session_id = ? and source_type = ?"
        " order by latest_us desc, start limit 1",
        (agent, session, kind),
    )
    return found


def texts(document: dict[str, Any]) -> list[str]:
    transcript = document["transcript"] or {"excerpt": ""}
    return [document["node"]["text"], transcript["excerpt"], *document["labels"].values()]


def around(document: dict[str, Any]) -> list[str]:
    return [*document["parents"], *document["children"], *document["siblings"], *document["memories"]]


# ── handles ──


def test_every_id_resolves_to_itself_in_every_form_and_by_its_beginning(database: Database) -> None:
    things = ids_of(database)
    for thing in things:
        for form in (thing, f"^{thing}", f" ^{thing} ", f"[[MEMORY#^{thing}]]", f"[[MEMORY.md#^{thing}|there]]"):
            assert references.resolve(database, "default", form) == thing
        if sum(other.startswith(thing[:6]) for other in things) == 1:
            assert references.resolve(database, "default", f"^{thing[:6]}") == thing


def test_a_path_means_its_node(database: Database) -> None:
    at = "2026-03-17T10:00:00.000Z"
    path = made.path_for("summary", session_id=LONG, captured_at=at)
    wanted = node_of(database, LONG)
    forms = (path, path.removeprefix("memory/"), path.removesuffix(".md"), f"[[{path}|summary]]", f"[[{path}]]")
    assert {references.resolve(database, "default", form) for form in forms} == {wanted}
    transcript = made.path_for("transcript", session_id=LONG, captured_at=at)
    first = neighbours.node(database, "default", references.resolve(database, "default", transcript))
    assert first is not None and (first.source_type, first.start) == ("chunk", 0)


def test_a_session_means_its_best_node(database: Database) -> None:
    for session, kind in ((LONG, "summary"), (COMPACTED, "compaction"), (TRANSCRIPT_ONLY, "chunk"), (NOISE, "chunk")):
        wanted = node_of(database, session, kind)
        token = made.token_for("default", session)
        for form in (session, session[:12], token, token[:8]):
            assert references.resolve(database, "default", form) == wanted


NOTHING = (
    "", " ", "^", "[[]]", "[[|]]", "nothing", "s-aaaaaaaaaaaa", "^t-aaaa", "t-", "memory/", "../../etc/passwd", "%",
    "_", "memory/2026--x--summary.md", "[[ledger/2026-03.md]]", "x" * 99_999, "\0", "' or 1=1 --", "^" + LONG, "日本語",
    "\ud800", "MEMORY.md", "[[MEMORY#^]]", "#1",
)  # fmt: skip


def test_what_means_nothing_is_said_so(database: Database) -> None:
    for handle in NOTHING:
        with pytest.raises(UsageError) as raised:
            references.resolve(database, "default", handle)
        assert raised.value.code == "unknown-handle" and "recall" in raised.value.hint, handle


def test_an_ambiguous_handle_names_the_candidates(vault: Vault) -> None:
    answer = vault.call("expand", "5e5510", "--json")
    assert answer.code == 2 and answer.json["error"]["code"] == "ambiguous-handle"
    assert all(session in answer.json["error"]["message"] for session in SESSIONS)


# ── what lies around ──


def test_the_nodes_of_a_session_lead_to_all_of_its_transcript(database: Database) -> None:
    """From every node of a session all of every transcript of it is a walk away, in answers of the usual budget."""
    follow = cache(partial(expand, database, "default"))
    for session in (*SESSIONS, NOISE):
        nodes = [neighbours.node(database, "default", one) for one in ids_of(database)]
        own = [one.id for one in nodes if one is not None and one.session_id == session]
        paths = {one.source_ref for one in nodes if one and one.id in own and one.id[0] == "k"}
        for start in own:
            told, ahead = dict[str, str](), [start]
            while ahead:
                here = ahead.pop()
                document = follow(here)
                if here not in told and document["node"]["session_id"] == session:
                    told[here] = document["node"]["text"]
                    near = document["parents"], document["children"], document["siblings"]
                    ahead += [one for some in near for one in some if one[0] in "skc"]
            shown = "\n".join(told.values())
            for line in {line for path in paths for line in text_at(database, path or "").split("\n")}:
                assert line in shown, (start, line)


def test_edges_go_both_ways(database: Database) -> None:
    things = set(ids_of(database))
    for thing in things:
        document = expand(database, "default", thing)
        assert thing not in around(document) and set(map(row_id_of, around(document))) <= things
        assert len(set(document["siblings"])) == len(document["siblings"]) <= neighbours.SIBLINGS
        if document["node"]["depth"] is None:
            continue
        for child in document["children"]:
            assert thing in expand(database, "default", child)["parents"]


def test_a_place_of_a_transcript_begins_with_the_turn_there(database: Database) -> None:
    (first,) = expand(database, "default", node_of(database, LONG))["children"]
    whole = neighbours.node(database, "default", first)
    assert whole is not None and whole.source_ref is not None
    text = text_at(database, whole.source_ref)
    begun = list(chunking.turns(text))
    for number in (1, 2, len(begun) // 2, len(begun) - 1):
        turn = begun[number]
        place = make_place_id(first, turn.start, len(text))
        document = expand(database, "default", place)
        assert document["node"]["text"].startswith(text[turn.start :][:40].strip("\n")), number
        assert (document["node"]["id"], document["node"]["label"]) == (place, turn.label)
        lines = "\n".join(list_expanded_lines(document))
        assert document["siblings"] and lines.index("beside") > lines.index(document["node"]["text"])


def test_a_session_of_two_segments(database: Database) -> None:
    newest = node_of(database, SEGMENTED)
    document = expand(database, "default", newest)
    assert "lease19" in document["node"]["text"] and "lease19 turn 0" in document["transcript"]["excerpt"]
    older = expand(database, "default", document["siblings"][0])
    assert older["node"]["session_id"] == SEGMENTED and "lease18 turn 0" in older["transcript"]["excerpt"]


def test_an_arc_leads_to_its_sessions(database: Database) -> None:
    arcs = [thing for thing in ids_of(database) if thing.startswith("a-")]
    assert len(arcs) == 2
    for arc in arcs:
        document = expand(database, "default", arc)
        assert (document["node"]["kind"], document["node"]["level"]) == ("condensation", "arc")
        assert document["children"] and document["parents"][0].startswith("e-")
    epoch = expand(database, "default", document["parents"][0])
    assert sorted(epoch["children"]) == sorted(arcs)


def test_a_thread(database: Database) -> None:
    thread = database.value("select thread_id from memory_thread_heads where agent_id = 'default'")
    document = expand(database, "default", thread)
    assert document["node"]["kind"] == "thread" and document["node"]["sessions"] == len(SESSIONS)
    assert document["children"][0].startswith("a-") and node_of(database, LONG) in document["children"]
    assert {one[0] for one in document["memories"]} == {"f"}


def test_a_statement_tells_its_lines(database: Database) -> None:
    statements = {
        text: thing for thing, text in database.execute("select id, text from statements where agent_id = 'default'")
    }
    former, present = statements["Storage: JSON files"], statements["Storage: SQLite"]
    document = expand(database, "default", former)
    assert (document["node"]["status"], document["node"]["speaker"]) == ("open", "file")
    source = document["sources"][0]
    content = text_at(database, source["path"])
    assert content.split("\n")[source["line"] - 1] == "- Storage: JSON files"
    assert document["parents"] == [source["id"]] == [node_of(database, LONG)]
    assert former in expand(database, "default", node_of(database, LONG))["memories"]
    assert document["transcript"]["path"] == made.path_for(
        "transcript", session_id=LONG, captured_at="2026-03-17T10:00:00.000Z"
    )
    assert len(expand(database, "default", present)["sources"]) == 4


def test_the_excerpt_of_a_statement_begins_where_the_transcript_speaks_of_it(tmp_path: Path) -> None:
    vault = Vault(tmp_path / "vault")
    talked = talk("filler", 20) + "\n\n## User · 2026-03-28T10:00:00.000Z\n\nThe kiln cools by forty degrees an hour."
    vault.put(made.transcript(body=talked))
    vault.put(made.summary(body="# Kiln\n\n## Decisions\n\n- The kiln must cool by forty degrees an hour at most.\n"))
    vault.reindex()
    with vault.database() as database:
        statement = database.value("select id from statements")
        excerpt = expand(database, "default", statement, 300)["transcript"]["excerpt"]
    assert "The kiln cools" in excerpt and "filler turn 0:" not in excerpt


# ── the budget ──


@pytest.mark.parametrize("budget", [1, 200, 20_000])
def test_all_texts_stay_within_the_budget(database: Database, budget: int) -> None:
    for thing in ids_of(database):
        document = expand(database, "default", thing, budget)
        spent = sum(map(estimate_tokens, texts(document)))
        assert spent <= budget and spent == document["tokens"]


def test_what_is_cut_says_so(database: Database) -> None:
    whole = expand(database, "default", node_of(database, LONG), 100_000)
    short = expand(database, "default", node_of(database, LONG), 30)
    assert "[The rest is left out here" in short["node"]["text"] and "[The" not in whole["node"]["text"]
    assert "[The transcript goes on.]" in expand(database, "default", node_of(database, LONG))["transcript"]["excerpt"]


@given(st.text(), st.integers(0, 60))
def test_a_cut_is_a_beginning_and_never_too_long(text: str, room: int) -> None:
    shown = cut(text, room, "[more]")
    assert estimate_tokens(shown) <= room
    assert text.startswith(shown.removesuffix("[more]").removesuffix("\n").removesuffix("…"))
    if estimate_tokens(text) <= room:
        assert shown == text


@given(st.text(), st.integers(0, 60))
def test_an_ending_is_an_end_and_never_too_long(text: str, room: int) -> None:
    shown = keep_end(text, room, "[before]")
    assert estimate_tokens(shown) <= room
    if shown.startswith("[before]\n"):
        assert shown.removeprefix("[before]\n") in text


# ── sessions that still run ──


def turns(*said: str) -> str:
    return "".join(
        json.dumps({"turn": number, "role": "user", "text": text, "at": f"2026-03-29T10:{number:02d}:00Z"}) + "\n"
        for number, text in enumerate(said)
    )


@pytest.fixture
def running(tmp_path: Path) -> Vault:
    vault = Vault(tmp_path / "running")
    said = turns("First the shutter.", *(f"Then step {number} of it." for number in range(30)), "Last the lens.")
    answer = vault.spawn("transcript", "append", "--session-key", "chat#7", input=said.encode())
    assert answer.code == 0, answer.err
    return vault


def test_a_session_that_still_runs(running: Vault) -> None:
    document = running.call("expand", "chat#7", "--json").json
    assert document["node"]["kind"] == "live" and document["node"]["turns"] == 32
    assert "First the shutter." in document["node"]["text"] and "Last the lens." in document["node"]["text"]
    newest = running.call("expand", "chat#7", "--json", "--budget", "80").json["node"]["text"]
    assert newest.startswith("[Earlier turns") and newest.endswith("Last the lens.")
    later = running.call("expand", "chat#7#31", "--json").json["node"]["text"]
    assert "Last the lens." in later and "shutter" not in later
    assert running.call("expand", "chat#7", "--agent", "scout").code == 2
    shown = running.call("expand", "chat#7")
    assert shown.code == 0 and "Last the lens." in shown.out and running.rows("select * from node_telemetry") == []


# ── the command ──


def test_what_a_person_sees(vault: Vault, database: Database) -> None:
    node = node_of(database, LONG)
    shown = vault.call("expand", node)
    assert shown.code == 0 and "\x1b" not in shown.out
    document = expand(database, "default", node)
    assert f"^{node}" in shown.out and document["node"]["text"] in shown.out
    for thing in [*document["parents"], *document["children"], *document["siblings"]]:
        label = document["labels"].get(thing)
        assert (f"    ^{thing}  {label}\n" in shown.out) if label else (" more" in shown.out)
    assert {*document["parents"], document["children"][0]} <= set(document["labels"])
    assert document["transcript"]["path"] in shown.out and document["transcript"]["excerpt"] in shown.out
