"""Transcripts for tests: lines out of records, and records as hostile as JSON allows."""

import json

from hypothesis import strategies as st

from signet_sync.capture.harnesses.markdown import render


def jsonl(*records):
    """The records as lines of bytes; bytes stay as they are."""
    return [r if isinstance(r, bytes) else json.dumps(r).encode() + b"\n" for r in records]


def assert_sound(conversation):
    """Checks what holds for every transcript, whatever is in it: times in order, words in a user's turn, a reason."""
    times = [entry.at for entry in conversation.entries]
    assert times == sorted(times) and all(at >= 0 for at in times)
    assert all(entry.text or entry.kind != "user" for entry in conversation.entries)
    render(conversation.entries)
    assert bool(conversation.entries) != bool(conversation.remark)


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.just(10**400)
    | st.floats()
    | st.text(max_size=30)
    | st.sampled_from(
        ["\ud800", "2026-03-28T22:34:06.792Z", "9999-12-31T23:59:59Z", "<signet-memory>", "```", "## User · x"]
    )
)


@st.composite
def spoiled(draw, records, values):
    """A record with some of its values replaced, wherever they stand in it."""

    def walk(value):
        if draw(st.integers(0, 9)) == 0:
            return draw(SCALARS | st.sampled_from(values) | st.lists(SCALARS, max_size=2))
        if isinstance(value, dict):
            return {name: walk(inner) for name, inner in value.items()}
        return [*map(walk, value)] if isinstance(value, list) else value

    return json.dumps(walk(draw(st.sampled_from(records)))).encode()


def hostile(names, values, records=()):
    """Lines of JSON: objects nested at will whose keys are the harness's own names, whose values are anything.

    With `records`, also these, spoiled.
    """
    value = st.recursive(
        SCALARS | st.sampled_from(values),
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.dictionaries(st.sampled_from(names) | st.text(max_size=5), inner, max_size=7)
        ),
        max_leaves=25,
    )
    record = st.dictionaries(st.sampled_from(names), value, max_size=8)
    line = (
        record.map(lambda r: json.dumps(r).encode())
        | st.binary(max_size=30)
        | value.map(lambda v: json.dumps(v).encode())
    )
    return st.lists(line | spoiled(records, values) if records else line, max_size=8)
