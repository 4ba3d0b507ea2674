"""Differences: what a person may do to a file, what is healed once, and what nobody may write over."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signet_sync.entities.documents import drift
from signet_sync.entities.documents.document import blank, parse, render
from signet_sync.entities.documents.drift import SIMILARITY, Differences, reanchor
from signet_sync.entities.documents.edits import append_item, replace
from signet_sync.entities.documents.escaping import fit, fit_item
from signet_sync.entities.documents.patch import apply
from signet_sync.formats.entity_paths import shapes


def profile():
    document = blank(
        "part",
        title="Inner Critic",
        entity_id="p-aaaaaaaaaaaa",
        agent_id="default",
        created_at="2026-03-28T09:00:00.000Z",
    )
    document = replace(document, "role", fit("Keeps the bar high, and says so before anybody else can.")[0])
    return append_item(document, "highlights", fit_item("Spoke up on Monday"))


def judge(text, known, file="profile", **given):
    return drift.judge_against_events(text, known, shapes("part", file), **given)


KNOWN = profile()
TEXT = render(KNOWN)
ANCHORS = [shape.anchor for shape in shapes("part")]


def edited(old, new):
    assert TEXT.count(old) == 1, old
    return TEXT.replace(old, new)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (edited("Keeps the bar high", "Lowers the bar"), Differences(changed=("role",))),
        (edited("can.\n", "can.  \n"), Differences(changed=("role",))),
        (edited("# Inner Critic", "# The Judge"), Differences(title=True)),
        (edited("## Role", "## What it does"), Differences(retitled=("role",))),
        (edited('status: "active"', "status: quiet"), Differences(fields=("status",))),
        (edited('status: "active"', "status: active"), Differences(layout=True)),
        (edited('status: "active"\n', ""), Differences(fields=("status",))),
        (edited("locks:\n", 'locks:\n  - "role"\n'), Differences(fields=("locks",))),
        (edited("locks:\n", "locks:\nmood: calm\n"), Differences(fields=("mood",))),
        (TEXT + "\n## Aside\n\nMy own.\n", Differences(changed=("extensions",), added=("#Aside",))),
        (TEXT.replace("\n", "\r\n"), None),
    ],
)
def test_what_a_person_may_do_is_a_human_edit(text, expected):
    judged = judge(text, KNOWN)
    assert judged.verdict == "human_edit" and judged.healed is None
    assert expected is None or judged.drift == expected
    # Recorded, the event leads to the very bytes that stand there.
    assert apply(TEXT, judged.payload) == text


def test_the_payload_names_what_was_changed():
    text = edited('status: "active"', "status: quiet").replace("Monday", "Tuesday")
    payload = judge(text, KNOWN).payload
    assert payload["sections"] == ["highlights"] and payload["fields"] == ["status"]
    assert [edit["text"] for edit in payload["edits"]] == ["status: quiet\n", "- Spoke up on Tuesday\n"]


def test_a_section_may_be_moved():
    role = TEXT[TEXT.index("## Role") : TEXT.index("## Concerns")]
    moved = TEXT.replace(role, "").replace("## Highlights", f"{role}## Highlights")
    judged = judge(moved, KNOWN)
    assert judged.verdict == "human_edit" and judged.drift == Differences(moved=("role",))
    assert apply(TEXT, judged.payload) == moved


def test_what_was_moved_is_the_least_that_explains_the_order():
    blocks = {section.anchor: section.opening + section.body + "\n" for section in KNOWN.sections}
    for order, moved in [
        ("identity needs concerns role", 2),
        ("needs identity role concerns", 1),
        ("role identity needs concerns", 2),
    ]:
        names = [*order.split(), *ANCHORS[4:]]
        text = KNOWN.head + KNOWN.lead + "".join(blocks[name] for name in names)
        assert len(judge(text, KNOWN).drift.moved) == moved, order


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (None, "file-missing"),
        ("", "frontmatter-missing"),
        (edited("# Inner Critic\n", ""), "title-missing"),
        (TEXT[TEXT.index("# Inner") :], "frontmatter-missing"),
        (edited('id: "p-aaaaaaaaaaaa"', 'id: "p-bbbbbbbbbbbb"'), "identity-changed"),
        (edited('id: "p-aaaaaaaaaaaa"\n', ""), "identity-changed"),
        (edited('kind: "part"', 'kind: "user"'), "identity-changed"),
        (edited('agent_id: "default"', 'agent_id: "other"'), "identity-changed"),
        (edited("schema_version: 1", "schema_version: 2"), "identity-changed"),
        (TEXT[: TEXT.index("## Needs")], "section-missing"),
        (edited("## Needs\n<!-- section needs -->\n", ""), "section-missing"),
        (edited("## Role\n", "```\n## Role\n"), "section-missing"),
        (edited("<!-- section needs -->", "").replace("<!-- section role -->", ""), "section-missing"),
        (edited("<!-- section needs -->", "<!-- section role -->"), "section-twice"),
    ],
)
def test_what_is_no_file_of_this_entity_any_more_is_drift(text, code):
    judged = judge(text, KNOWN)
    assert (judged.verdict, judged.code) == ("drift", code)
    assert judged.payload is None and judged.healed is None
    assert judged.message and judged.hint


@pytest.mark.parametrize(
    "text",
    [
        edited("<!-- section role -->\n", ""),
        edited("<!-- section role -->", "<!-- section roles -->"),
        edited("## Role\n<!-- section role -->", "## ROLE\n"),
        edited("## Concerns\n<!-- section concerns -->", "## Concern\n"),
        # Under another name, the same words.
        edited("## Role\n<!-- section role -->", "## What it is here for\n"),
        edited("<!-- section role -->\n", "").replace("bar high", "bar low"),
    ],
)
def test_one_lost_anchor_is_found_again(text):
    judged = judge(text, KNOWN)
    assert judged.verdict == "reanchored"
    assert apply(TEXT, judged.payload) == text
    healed = judged.healed
    assert [section.anchor for section in healed.sections] == ANCHORS
    # Only heading and anchor are put back: what the person wrote stands.
    assert [section.body for section in healed.sections] == [section.body for section in parse(text).sections]
    assert judge(render(healed), healed).verdict == "same"


@pytest.mark.parametrize(
    "text",
    [
        # A heading that is not like it, over no words that are.
        edited("## Concerns\n<!-- section concerns -->", "## Weather"),
        # Too far away: at the end of the file.
        edited("## Identity\n<!-- section identity -->\n", "") + "\n## Identity\n\nAnew.\n",
        # Two that it may be.
        edited("## Role\n<!-- section role -->", "## Role\n\nA\n\n## Role\n"),
    ],
)
def test_an_anchor_that_is_not_surely_found_stays_lost(text):
    assert judge(text, KNOWN).code == "section-missing"


def test_how_alike_is_a_setting():
    text = edited("## Concerns\n<!-- section concerns -->", "## Conerns\n")
    assert judge(text, KNOWN).verdict == "reanchored"
    assert judge(text, KNOWN, similarity=0.99).verdict == "drift"
    document, names = parse(text), frozenset(ANCHORS)
    concerns = KNOWN.sections[2]
    assert reanchor(document, concerns, 2, names, SIMILARITY) == 2
    assert reanchor(document, concerns, 5, names, SIMILARITY) is None
    assert reanchor(KNOWN, concerns, 2, names, 0.0) is None


def test_a_section_that_was_taken_out_and_accepted_is_not_missed_for_ever():
    text = edited("## Needs\n<!-- section needs -->\n\n", "")
    assert judge(text, parse(text)).verdict == "same"
    assert judge(text.replace("Monday", "Friday"), parse(text)).verdict == "human_edit"


def test_notes_have_sections_of_their_own():
    notes = blank("part", title="Notes", entity_id="p-aaaaaaaaaaaa", agent_id="default", created_at="x", file="notes")
    text = render(notes)
    assert judge(text.replace("## Inbox\n", "## Inbox\n"), notes, file="notes").verdict == "same"
    assert judge(text.replace("<!-- section inbox -->\n", ""), notes, file="notes").verdict == "reanchored"
    assert judge(text[: text.index("## Focus")], notes, file="notes").code == "section-missing"


@given(st.data())
def test_every_file_is_the_same_an_edit_that_can_be_recorded_or_flagged(data):
    at = data.draw(st.integers(0, len(TEXT)))
    end = data.draw(st.integers(at, min(len(TEXT), at + 120)))
    text = TEXT[:at] + data.draw(st.text(max_size=30)) + TEXT[end:]
    judged = judge(text, KNOWN)
    assert (judged.verdict == "same") == (text == TEXT)
    assert (judged.payload is not None) == (judged.verdict in ("human_edit", "reanchored"))
    assert (judged.code != "") == (judged.verdict == "drift")
    if judged.payload is not None:
        assert apply(TEXT, judged.payload) == text
        assert parse(text).fields["id"] == KNOWN.fields["id"]
    if judged.healed is not None:
        assert set(ANCHORS) <= {section.anchor for section in judged.healed.sections}
