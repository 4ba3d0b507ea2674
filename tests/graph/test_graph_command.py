"""`graph`: the temporal graph as Mermaid, DOT and JSON; bounded, of one agent, and no text breaks out of its label."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from workbench import Vault

from signet_sync.formats.handle import id_of
from signet_sync.graph.nodes import GraphEdge, GraphNode
from signet_sync.graph.picture import Picture, dot, mermaid, values

NAME = r"[skcaet]_[a-z2-7]{12}"
# A label: no sign of Mermaid's grammar but in `<br/>`, the rest by number.
LABEL = r'"(?:[^\x00-\x1f"#;:%&<>\[\]{}|`\\$*@]|#\d+;|<br/>)*"'
MERMAID = re.compile(
    rf"flowchart LR|    %% \d+ older ones are left out|    subgraph {NAME}\[{LABEL}\]|    end"
    rf"|        {NAME}(?:\[\[{LABEL}\]\]|\(\[{LABEL}\]\)|\{{\{{{LABEL}\}}\}}|\({LABEL}\)|\[{LABEL}\])"
    rf"|    {NAME} --> {NAME}"
)
QUOTED = r'"(?:[^"\\\x00-\x1f]|\\["\\n])*"'
DOT = re.compile(
    rf"digraph memory {{|    rankdir=LR;|    node \[shape=box, fontname=\"sans-serif\"\];|    // \d+ older ones.*"
    rf"|    subgraph {QUOTED} {{|        label={QUOTED};|        {QUOTED} \[label={QUOTED}\];|    }}|}}"
    rf"|    {QUOTED} -> {QUOTED};"
)
KINDS = (
    ("session", "summary", 0), ("session", "chunk", 0), ("session", "compaction", 0), ("arc", "condensation", 1),
    ("epoch", "condensation", 2),
)  # fmt: skip
HOSTILE = (
    'a"] --> b["x', "%%{init: {'theme': 'dark'}}%%", "style a:b#34;", "`**x**`", "<script>alert(1)</script>", "end",
    'click a "javascript:alert(1)"', "x\nclassDef y fill:#f00;", "#quot;", 'a\\"b\\', "--> x", "\u202ertl", "]]", "}}",
)  # fmt: skip


def picture(labels: list[str]) -> Picture:
    """A picture of one thread whose nodes are of every kind and carry these labels."""
    thread = id_of("t", "default", 1)
    nodes = [
        GraphNode(
            "default", id_of("s", "default", place), kind, source, depth, None, thread, None, None, 0, 10**15, 1, 0, 0,
            label, None,
        )
        for place, label in enumerate(labels)
        for kind, source, depth in [KINDS[place % len(KINDS)]]
    ]  # fmt: skip
    edges = [GraphEdge("default", one.id, other.id) for one, other in pairwise(nodes)]
    return Picture(((thread, labels[0] if labels else ""),), tuple(nodes), tuple(edges), 3)


def assert_sound(drawn: Picture) -> None:
    for text, grammar in ((mermaid(drawn), MERMAID), (dot(drawn), DOT)):
        for line in text.split("\n"):
            assert grammar.fullmatch(line), line
        assert text.count(" --> ") + text.count('" -> "') == len(drawn.edges)


@pytest.mark.parametrize("label", HOSTILE)
def test_no_label_breaks_out(label: str) -> None:
    assert_sound(picture([label] * len(KINDS)))


@given(st.lists(st.text() | st.sampled_from(HOSTILE), max_size=12))
def test_no_text_breaks_out(labels: list[str]) -> None:
    assert_sound(picture(labels))


def test_json_hangs_everything_below_its_thread() -> None:
    drawn = picture(["one", "two", "three"])
    document = values(drawn)
    ids = {node["id"] for node in document["nodes"]}
    assert len(ids) == 4 and document["left_out"] == 3
    assert {edge["parent"] for edge in document["edges"]} | {edge["child"] for edge in document["edges"]} == ids
    assert {edge["child"] for edge in document["edges"]} == ids - {drawn.threads[0][0]}


# ── the command ──


@pytest.fixture
def vault(tmp_path: Path) -> Vault:
    vault = Vault(tmp_path / "vault")
    for number in range(1, 13):
        vault.session(number)
    vault.session(1, agent_id="scout")
    vault.session(20, project="/home/ada/code/prism")
    vault.session(21, session_id="test-21", project=None)
    vault.reindex()
    return vault


def test_the_picture_is_that_of_the_tables(vault: Vault) -> None:
    answer = vault.call("graph", "--format", "json")
    nodes = {node["id"]: node for node in answer.json["nodes"]}
    stored = {
        row[0]
        for row in vault.rows(
            "select id from session_summaries where agent_id = 'default' and thread_id is not null"
            " union all select thread_id from memory_thread_heads where agent_id = 'default'"
        )
    }
    assert set(nodes) == stored and answer.json["left_out"] == 0
    edges = {(edge["parent"], edge["child"]) for edge in answer.json["edges"]}
    drawn = {edge for edge in edges if nodes[edge[0]]["kind"] != "thread"}
    assert drawn == {
        edge
        for edge in vault.rows("select parent_id, child_id from session_summary_children where agent_id = 'default'")
        if edge[0] in stored
    }
    assert {child for _, child in edges} == {thing for thing, node in nodes.items() if node["kind"] != "thread"}
    assert vault.call("graph", "--json").json == answer.json


def test_the_newest_are_drawn_and_what_is_left_out_is_said(vault: Vault) -> None:
    answer = vault.call("graph", "--limit", "5")
    every = len(vault.rows("select id from session_summaries where agent_id = 'default' and thread_id is not null"))
    assert f"%% {every - 5} older ones are left out" in answer.out and f"{every - 5} older ones" in answer.err
    shown = vault.call("graph", "--limit", "5", "--json").json
    assert len([node for node in shown["nodes"] if node["kind"] != "thread"]) == 5
    newest = max(shown["nodes"], key=lambda node: node.get("latest", ""))
    assert newest["latest"].startswith("2026-03-28")


def test_one_thread_and_one_agent(vault: Vault) -> None:
    for handle in ("5e551020", "^" + thread_of(vault, "prism")):
        shown = vault.call("graph", "--thread", handle, "--json").json["nodes"]
        assert {node.get("thread", node["id"]) for node in shown} == {thread_of(vault, "prism")}
    scout = {node["id"] for node in vault.call("graph", "--json", "--agent", "scout").json["nodes"]}
    assert scout and not scout & {node["id"] for node in vault.call("graph", "--json").json["nodes"]}
    assert vault.call("graph", "--thread", thread_of(vault, "prism"), "--agent", "scout").code == 2
    assert vault.call("graph", "--project", thread_of(vault, "prism"), "--agent", "scout").code == 2
    answer = vault.call("graph", "--project", "test-21", "--json")
    assert answer.code == 2 and answer.json["error"]["code"] == "no-thread"


def thread_of(vault: Vault, name: str) -> str:
    found: str = vault.rows("select thread_id from memory_thread_heads where label like ?", f"{name}%")[0][0]
    return found


def test_formats_of_the_command(vault: Vault) -> None:
    for form, grammar in (("mermaid", MERMAID), ("dot", DOT)):
        answer = vault.call("graph", "--format", form)
        assert answer.code == 0 and all(grammar.fullmatch(line) for line in answer.out.splitlines())
    assert vault.call("graph").out == vault.call("graph", "--format", "mermaid").out


def test_nothing_to_draw(tmp_path: Path) -> None:
    vault = Vault(tmp_path / "vault")
    vault.reindex()
    answer = vault.call("graph")
    assert (answer.code, answer.out, answer.err) == (0, "flowchart LR\n", "no sessions yet\n")
