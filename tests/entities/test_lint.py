"""The linter of entity files: what is not as the schema has it is named, with a hint, and nothing else."""

import pytest
from test_document import put_body

from signet_sync.entities.document import EntityDocument, blank, parse, render
from signet_sync.entities.sections import lint
from signet_sync.formats.entity_paths import KINDS, shapes

PART = shapes("part")


def new(kind: str, file: str = "profile") -> EntityDocument:
    named = {"title": "Inner Critic", "entity_id": f"{kind[0]}-abcdefghijkl", "agent_id": "default"}
    people = ["p-a", "p-b"] if kind == "relationship" else []
    return blank(kind, file=file, participants=people, created_at="2026-03-28T22:34:06.792Z", **named)


FULL = put_body(put_body(new("part"), "highlights", "\n- one\n- two\n\n"), "extensions", "\n### Tone\n\nDry.\n")


def found(document: EntityDocument) -> list[tuple[str | None, str]]:
    findings = lint(document, PART)
    assert all(one.message and one.hint for one in findings)
    return [(one.anchor, one.code) for one in findings]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("file", ["profile", "notes"])
def test_a_new_file_is_read_as_it_was_made_and_is_tidy(kind: str, file: str) -> None:
    document = new(kind, file)
    assert parse(render(document)) == document
    assert [section.heading for section in document.sections] == [shape.heading for shape in shapes(kind, file)]
    assert lint(document, shapes(kind, file)) == []


@pytest.mark.parametrize(
    ("old", "new_text", "expected"),
    [
        ("Dry.\n", "Dry.\n\n## Mine\n\nx\n", []),
        ("## Needs\n<!-- section needs -->\n\n", "", [("needs", "section-missing")]),
        ("## Role\n<!-- section role -->\n", "## Role\n", [("role", "anchor-wrong")]),
        ("## Role\n", "", [("role", "section-missing")]),
        ("<!-- section role -->", "<!-- section rule -->", [("role", "anchor-wrong")]),
        ("## Role\n", "## Function\n", [("role", "heading-wrong")]),
        ("Dry.", "long words " * 600, [("extensions", "too-long")]),
        ("- two", "- item\n" * 13, [("highlights", "too-long")]),
    ],
)  # fmt: skip
def test_findings(old: str, new_text: str, expected: list[tuple[str | None, str]]) -> None:
    text = render(FULL)
    assert old in text and found(parse(text.replace(old, new_text, 1))) == expected
