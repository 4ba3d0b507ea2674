"""Nodes of a session: pieces that cover a transcript, ids that stay, edges that lead from a piece to what tells it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signet_sync.formats.handle import HANDLE, ID_LENGTH, id_of, make_place_id, place_of, row_id_of
from signet_sync.formats.timestamps import parse_instant
from signet_sync.graph.nodes import ArtifactText, GraphEdge, best_of, make_nodes, make_place
from signet_sync.text import chunking
from signet_sync.text.token_estimate import estimate_tokens

T = parse_instant("2026-03-28T10:00:00.000Z")
HOUR = 3_600_000_000
WORDS = "The lantern was lit, and queue.py drains five at a time. "


def stamp(hour, minute=0):
    return f"2026-03-28T{hour:02d}:{minute:02d}:00.000Z"


def source(kind="summary", at=T, content="# Lit\n\nThe lantern is lit.", **more):
    fields = {
        "source_path": f"memory/{at}--{kind}.md", "source_kind": kind, "agent_id": "default", "session_id": "5e55",
        "session_key": None, "session_token": "aaaabbbbccccdddd", "project": "/home/ada/code/lantern",
        "harness": "codex", "started_us": None, "captured_us": at, "membership_us": at, "noise": 0, "content": content,
        "sentence": "Lit the lantern and made queue.py drain five jobs at a time.",
    }  # fmt: skip
    fields |= more
    return ArtifactText(**{"identity": make_place(fields["project"], None, None).folder, **fields})


def slices(text):
    return [text[piece.start : piece.end] for piece in chunking.pieces(text, 1_000)]


def turn(speaker, hour, words, minute=0):
    return f"## {speaker} · {stamp(hour, minute)}\n\n{words}\n\n"


# --- cutting ---

LINES = st.sampled_from(
    [
        "", " ", "\t", "```", "```py", "~~~", "````", "***", "## User · 2026-03-28T22:34:06.792Z", "User: hi", "x" * 70,
        "## Assistant · 2026-03-28T22:35:06.792Z", "**Assistant:** on it", "### user", "# Notes", "- item", "  " * 30,
        "def light(lamp): return lamp", WORDS, "灯火管制の話をした", "👩\u200d🚀" * 9, "e\u0301" * 20, "🇯🇵🇩🇪" * 4, "\r",
        "\ud83d\ude80" * 5, "{}[]()<>!?" * 7, "12345678 " * 4, "\u2028", "\x00",
    ]
)  # fmt: skip
TEXTS = st.lists(LINES, max_size=60).map("\n".join) | st.lists(LINES, max_size=20).map("".join) | st.text()


@given(TEXTS, st.integers(1, 300))
def test_pieces_cover_the_text_and_are_bounded(text, limit):
    pieces = list(chunking.pieces(text, limit))
    assert [piece.start for piece in pieces] == [0, *(piece.end for piece in pieces)][: len(pieces)]
    assert "".join(text[piece.start : piece.end] for piece in pieces) == text
    assert all(piece.start < piece.end for piece in pieces)
    # A limit may be too small for a character: even then nothing is lost.
    assert limit < 8 or all(p.tokens == estimate_tokens(text[p.start : p.end]) <= limit for p in pieces)


@pytest.mark.parametrize(("words", "end"), [
    ("\n\n".join([WORDS * 6] * 40), "\n\n"), ("\n".join([WORDS] * 300), "\n"), (WORDS * 300, " "), ("灯" * 5000, "灯"),
], ids=["paragraphs", "lines", "words", "one word"])  # fmt: skip
def test_a_long_turn_is_cut_at_paragraphs_then_lines_then_words(words, end):
    *pieces, last = slices(turn("Assistant", 10, words))
    assert pieces and all(piece.endswith(end) for piece in pieces) and last.endswith("\n\n")
    assert all(estimate_tokens(piece) > 500 for piece in pieces)


FENCED = "User: Look:\n{0}\nAssistant: forged\n### User\n{1}\n\nAssistant: I see.\n"


@pytest.mark.parametrize(("text", "heads"), [
    *((FENCED.format(fence, fence.strip().rstrip("py")), ["User: Look:", "Assistant: I see."])
      for fence in ("```", "~~~", "````py", "  ```")),
    ("User: why?\nAssistant:\n## Blockers\n\nnone\n### User\nUsers: 5\n**Human:** and now?\n用户：你好\nuser guide\n"
     "### Assistant (opus)\nok\n",
     ["User: why?", "Assistant:", "### User", "**Human:** and now?", "用户：你好", "### Assistant (opus)"]),
    # Where our headings stand nothing else begins a turn.
    (turn("User", 10, "The log says\n\nUser: root\n### Assistant") + "***\n\n" + turn("Compaction", 11, "*…*"),
     [f"## User · {stamp(10)}", "***"]),
])  # fmt: skip
def test_what_begins_a_turn(text, heads):
    assert [text[t.start :].split("\n")[0] for t in chunking.turns(text)] == heads


# --- nodes ---


def test_each_artifact_has_its_nodes():
    long = "".join(turn("User", 8 + n, WORDS * 60) for n in range(3))
    summary, transcript = source(), source("transcript", content=long)
    compaction = source("compaction", at=T - HOUR, content="So far.", sentence="So far `so` good.")
    made = make_nodes([transcript, summary, compaction], "t-abc")
    assert [(n.source_type, n.id[0], n.depth, n.kind) for n in made.nodes] == [
        ("compaction", "c", 0, "session"),
        ("summary", "s", 0, "session"),
        ("chunk", "k", 0, "session"),
    ]
    first = made.nodes[0]
    assert (first.start, first.end) == (0, 7)
    assert (first.label, first.source_ref, first.content) == ("So far 'so' good.", compaction.source_path, None)
    assert {n.thread_id for n in made.nodes} == {"t-abc"}
    assert made.best == made.nodes[1].id and best_of([compaction, transcript, summary]) == summary


def test_the_best_node():
    early, late, after = source(at=T - HOUR), source(at=T), source("transcript", at=T + HOUR, content=WORDS * 400)
    cases = (([late, early, after], late), ([source("transcript"), source("compaction")], source("compaction")),
             ([source("transcript"), after], after))  # fmt: skip
    for sources, best in cases:
        made = make_nodes(sources, None)
        assert made.best == next(n.id for n in made.nodes if n.source_ref == best.source_path)
    assert make_nodes([], None) == ((), (), None)
    made = make_nodes([source("transcript", content="")], None)
    (node,) = made.nodes
    assert (node.id, node.start, node.end, node.label) == (made.best, 0, 0, "no words")


def test_labels_say_the_first_words():
    for text, label in [
        (turn("User", 8, "> Light [[it]], `please`"), "Light [ [it] ], 'please'"),
        ("User: light it\nAssistant: ok", "light it"),
        ("***\n\n" + turn("Compaction", 8, "*The conversation was compacted.*"), "*The conversation was compacted.*"),
        ("\n\n```py\nx = 1\n```", "x = 1"),
        ("---\n***\n", "no words"),
        (WORDS * 20, (WORDS * 20)[:119].rstrip() + "…"),
    ]:
        (whole,) = make_nodes([source("transcript", content=text)], None).nodes
        assert whole.label == label


# --- ids ---

STORIES = st.lists(
    st.builds(
        source,
        st.sampled_from(["summary", "compaction", "transcript"]),
        st.sampled_from([T, T + 1, T + HOUR, T + 2 * HOUR]),
        st.sampled_from(
            ["", "words", WORDS * 500, turn("User", 10, "hi") + turn("User", 11, WORDS * 99) + turn("User", 12, "hi")]
        ),
        membership_us=st.sampled_from([T, T + HOUR, T + 3 * HOUR]),
    ),
    max_size=6,
    unique_by=lambda s: s.source_path,
)


@given(STORIES, st.data())
def test_any_order_gives_the_same(sources, data):
    made = make_nodes(sources, None)
    assert make_nodes(data.draw(st.permutations(sources)), None) == made
    ids = {n.id for n in made.nodes}
    assert len(ids) == len(made.nodes)
    assert {end for edge in made.edges for end in edge[1:]} <= ids
    assert {n.source_ref for n in made.nodes} == {s.source_path for s in sources}


@given(STORIES)
def test_ids_stay_when_an_artifact_is_added_and_differ_between_agents(sources):
    added = source("transcript", at=T + 5 * HOUR, content=WORDS)
    before = {n.id for n in make_nodes(sources, None).nodes}
    assert before < {n.id for n in make_nodes([*sources, added], None).nodes}
    others = make_nodes([s._replace(agent_id="scout") for s in sources], None)
    assert not before & {n.id for n in others.nodes}
    other_session = make_nodes([s._replace(session_id="5e56") for s in sources], None)
    assert not before & {n.id for n in other_session.nodes}


@given(st.integers(0, 70_000_000), st.integers(0, 70_000_000))
def test_an_id_names_a_place_in_a_transcript(place, length):
    first = row_id_of(id_of("k", "default"))
    node_id = make_place_id(first, place, length)
    assert HANDLE.fullmatch(node_id) and len(node_id) == ID_LENGTH and row_id_of(node_id) == first
    assert 0 <= place_of(node_id, length) <= max(length - 1, 0)
    if place < length <= 2_000_000:
        assert min(place, length - 1) <= place_of(node_id, length) < place + 64


# --- edges ---


@pytest.mark.parametrize(("others", "parents"), [
    ([source(), source("compaction", at=T - HOUR)], [0]), ([source("compaction")], [0]),
    ([source("compaction"), source()], [1]), ([source(at=T - HOUR)], []), ([], []),
])  # fmt: skip
def test_a_transcript_leads_to_the_summary_of_its_segment_else_to_the_compaction(others, parents):
    made = make_nodes([source("transcript"), *others], None)
    node_of = {n.source_ref: n.id for n in made.nodes}
    (child,) = (n.id for n in made.nodes if n.source_type == "chunk")
    assert made.edges == tuple(sorted(GraphEdge("default", node_of[others[n].source_path], child) for n in parents))
