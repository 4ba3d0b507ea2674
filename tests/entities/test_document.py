"""The grammar of entity files: read and written back alike, edited in one place, forged in none."""

import re
from dataclasses import replace as but

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from signet_sync.entities.agent_text import SafeText, fit, fit_item
from signet_sync.entities.document import (
    SIZE_LIMIT,
    DocumentProblem,
    append,
    append_item,
    blank,
    body_sha,
    find,
    items,
    parse,
    prune_item,
    render,
    replace,
    reread,
    text_of,
    with_fields,
)
from signet_sync.entities.sections import lint
from signet_sync.errors import UsageError
from signet_sync.formats.body import fix_surrogates, normalize
from signet_sync.formats.entity_paths import shapes

PART = shapes("part")


def put_body(document, name, body):
    """The document with the exact body of a section, as a person wrote it."""
    section = find(document, name)
    return but(document, sections=tuple(but(one, body=body) if one is section else one for one in document.sections))


# What opens, closes or forges something for a reader of Markdown or for Obsidian, and plain words between.
PIECES = [
    "word", "two words", "", "", " ", "# One", "## Role", "##", "### Three", "## Evil ##", "   ## in", "    ## code",
    "===", "---", "- ", "- item", "* star", "1. one", "  - deeper", "  more", "> quote", "> ## quoted", "- ## listed",
    "```", "````", "~~~", "```py", "  ```", "<!-- section role -->", "<!-- section evil -->", "<!--", "-->", "<!-->",
    "<!-- a --> b", "text <!-- section role -->", "<div>", "</div>", "<pre>", "</pre>", "<script>", "</script>", "<?",
    "?>", "<!DOCTYPE", "<![CDATA[", "]]>", "%%", "%% hidden %%", "$$", "$$ x $$", "[a]: /b", "[[memory/a.md|x]]",
    "| a | b |", "\\", "\t", "\tx", "a\\", "kind: x", "---\nid: x\n---", "\x0c", "\xa0", "\u2028## Role", "\x85",
    "😀 会話", "^id", "\x00",
]  # fmt: skip
LINES = st.lists(st.sampled_from(PIECES), max_size=8)
HOSTILE = LINES.map("\n".join) | st.text(max_size=40)
# What an agent may leave untidy; everything else is about structure, which is not in its hands.
UNTIDY = {"too-long"}
ENDS = st.sampled_from(["\n", "\n", "\n", "\r\n", "\r"])


def new(kind="part", **more):
    named = {"title": "Inner Critic", "entity_id": f"{kind[0]}-abcdefghijkl", "agent_id": "default"}
    return blank(kind, **{**named, "created_at": "2026-03-28T22:34:06.792Z", **more})


def refusal(call, *arguments):
    with pytest.raises(UsageError) as caught:
        call(*arguments)
    return caught.value


def letters(text):
    return [c for c in text if c.isalnum()]


FULL = put_body(new(), "identity", "\nIt speaks first.\n\n### When\n\nUnder pressure.\n\n")
FULL = append_item(append_item(FULL, "highlights", SafeText("one")), "highlights", SafeText("two"))


# --- the file ---


def test_a_new_profile_as_it_is_written():
    headings = ("Participants", "Dynamics", "Tensions", "Highlights", "Evidence", "Open Questions", "Change Log")
    bodies = "".join(f"## {one}\n<!-- section {one.lower().replace(' ', '-')} -->\n\n" for one in headings)
    document = new("relationship", title="Ada & Grace", relation="ally", participants=["p-a", "p-b"])
    assert render(document) == (
        '---\nkind: "relationship"\nid: "r-abcdefghijkl"\nagent_id: "default"\nschema_version: 1\ntype: "ally"\n'
        'participants:\n  - "p-a"\n  - "p-b"\ncreated_at: "2026-03-28T22:34:06.792Z"\n'
        'updated_at: "2026-03-28T22:34:06.792Z"\nstatus: "active"\npins:\nlocks:\n'
        'aliases:\n  - "Ada & Grace"\ntags:\n  - "entity/relationship"\n'
        'cssclasses:\n  - "signet-entity"\n---\n# Ada & Grace\n\n'
        f"{bodies}## Extensions\n<!-- section extensions -->\n"
    )


@st.composite
def files(draw):
    """Files as people leave them: lines of all kinds in the sections, line ends and head as others save them."""
    heads = [
        'kind: "part"\nid: "p-a"',
        "kind: part\n# mine\ntags: [a, b]\n\nid: 'p-a'",
        "id: p-a\nnotes: |\n  ---x\n  # y",
    ]
    known = [f"## {shape.heading}\n<!-- section {shape.anchor} -->" for shape in (PART[0], PART[2])]
    known += ["## Role", "## Mine", "Set\n---", "## Odd\n\n<!--  section odd-1  -->\n"]
    sections = draw(st.lists(st.tuples(st.sampled_from(known), LINES), unique_by=lambda drawn: drawn[0], max_size=4))
    sections.insert(0, ("## Role\n<!-- section role -->", draw(LINES)))
    lead = draw(st.sampled_from([[], ["word", ""], ["<!-- x -->"], ["> ## a", ""], ["```", "# no", "```"]]))
    lines = [*lead, "# Title", *(line for opening, body in sections for line in (opening, *body))]
    text = f"---\n{draw(st.sampled_from(heads))}\n---\n" + "\n".join(lines) + draw(st.sampled_from(["", "\n", "\n\n"]))
    end = draw(ENDS)
    return draw(st.sampled_from(["", "", "\ufeff"])) + text.replace("\n", end)


def taken(text):
    try:
        return parse(text)
    except DocumentProblem as refused:
        assert refused.code in {"title-missing", "section-twice", "frontmatter-missing", "frontmatter-invalid"}
        assume(False)


@given(files())
@example("---\nkind: part\n---\n# T\n## A\n<!-- section a -->")
@example("---\nkind: part\n---  \n\n# T\r## A\r\n<!-- section a -->\n\r\n\nx\n## B\n---\n")
def test_what_is_read_is_written_back_to_the_byte(text):
    document = taken(text)
    assert render(document) == text
    assert reread(document) is document


@given(st.text(max_size=60) | LINES.map("\n".join))
def test_any_text_is_read_or_refused(text):
    for whole in (text, f"---\nid: x\n---\n{text}", f"---\nid: x\n---\n# T\n{text}"):
        try:
            assert render(parse(whole)) == whole
        except DocumentProblem as refused:
            assert refused.code and refused.message and refused.hint


@given(files(), st.data(), HOSTILE)
@example("---\nid: x\n---\n# T\n## Role\n<pre>\nx", None, "```\n</pre>\n\n## Evil\n```")
@example("---\nid: x\n---\r\n# T\n## Role\n<!-- section role -->", None, "word")
def test_an_edit_changes_one_section_and_no_byte_outside(text, data, words):
    document = taken(text)
    named = [section for section in document.sections if section.anchor is not None]
    assume(named)
    name = data.draw(st.sampled_from(named)).anchor if data is not None else named[0].anchor
    try:
        fitted = fit(words)
    except UsageError:
        return
    after = replace(document, name, fitted)
    # A list takes in a heading behind it that somebody has indented.
    if not any(section.opening.startswith(" ") for section in document.sections):
        reread(after)
    assert text_of(find(after, name)) == normalize(fitted)
    assert (after.head, after.lead) == (document.head, document.lead)
    for old, now in zip(document.sections, after.sections, strict=True):
        assert old == now or (old.anchor == name and now.opening.rstrip("\r\n") == old.opening.rstrip("\r\n"))


@given(LINES, LINES, LINES, st.sampled_from(PART))
@example(["<div>"], [], ["x"], PART[1])
@example(["word", "---"], ["```", "## Role"], ["- a", "    ## Role"], PART[0])
@example(["- item"], ["\tx", "<pre>"], ["  <!-- section role -->"], PART[0])
def test_hostile_text_forges_nothing(first, second, third, shape):
    document, said = new(), []
    for text in ("\n".join(first), "\n".join(second), "\n".join(third)):
        try:
            fitted = fit(text)
        except UsageError:
            continue
        said.append(fitted)
        document = append(document, shape.anchor, fitted)
    reread(document)
    assert [section.anchor for section in document.sections] == [known.anchor for known in PART]
    assert text_of(find(document, shape.anchor)) == normalize("\n\n".join(said))
    assert {finding.code for finding in lint(document, PART)} <= UNTIDY


@given(HOSTILE)
@example("a\n---\n===\n# b\n---")
@example("    # x\n# y")
@example("<pre\n<!-- -->\n<?\n$$")
def test_fitting_happens_once_and_loses_no_word(text):
    try:
        fitted = fit(text)
    except UsageError as refused:
        assert refused.code == "text-empty" and letters(text) == []
        return
    assert fit(fitted) == fitted
    assert letters(fitted) == letters(fix_surrogates(text))


@given(HOSTILE)
@example("[[a|]] - - -")
@example("[[a]]" * 300)
def test_an_item_is_one_item_and_stays_what_it_is(text):
    try:
        item = fit_item(text)
    except UsageError as refused:
        assert refused.code == "text-empty" and letters(text) == []
        return
    assert fit_item(item) == item
    document = reread(append_item(append_item(FULL, "highlights", item), "evidence", item))
    assert [item.text for item in items(find(document, "highlights"))] == ["one", "two", item]
    assert [item.text for item in items(find(document, "evidence"))] == [item]


# --- editing ---


@pytest.mark.parametrize(
    ("body", "then"),
    [
        ("\n", "\n- new\n\n"),
        ("\n- a\n- b\n\n", "\n- a\n- b\n- new\n\n"),
        ("\n- a\nlazy\n\n", "\n- a\nlazy\n\n- new\n\n"),
        ("\nProse.\n\n", "\nProse.\n\n- new\n\n"),
        ("\n* star\n\n", "\n* star\n- new\n\n"),
    ],
)
def test_an_item_follows_on_the_next_line_of_a_list_and_else_after_a_blank_one(body, then):
    document = reread(append_item(put_body(FULL, "evidence", body), "evidence", SafeText("new")))
    assert find(document, "evidence").body == then
    assert items(find(document, "evidence"))[-1].text == "new"


def test_lines_end_as_in_the_file():
    text = render(FULL).replace("\n", "\r\n")
    document = put_body(append(parse(text), "identity", SafeText("a\nb")), "role", "tight\r\n")
    document = replace(document, "role", SafeText("new"))
    document = with_fields(append_item(document, "evidence", SafeText("c")), {"status": "resting", "pins": ["role"]})
    reread(document)
    assert re.search(r"(?<!\r)\n|\r(?!\n)", render(document)) is None
    assert text_of(find(document, "identity")).endswith("pressure.\n\na\nb")
    assert body_sha(find(parse(text), "identity")) == body_sha(find(FULL, "identity"))


LISTS = (
    "- one\n* two\n  more\n\n  and more\n3. three\n- [ ] four\n\n> - quoted\n\n```\n- code\n```\n\n-\n- five\n\n\n- one"
)


def test_an_item_is_pruned_by_key_or_number_and_its_neighbours_stay():
    document = put_body(FULL, "highlights", f"\n{LISTS}\n\n")
    second = items(find(document, "highlights"))[1]
    for name in (second.key, "2", " #2 "):
        pruned, gone = prune_item(document, "highlights", name)
        assert gone == "two\nmore\n\nand more"
        assert find(reread(pruned), "highlights").body == f"\n{LISTS}\n\n".replace("* two\n  more\n\n  and more", "")
    assert (
        refusal(prune_item, document, "highlights", items(find(document, "highlights"))[0].key).code == "item-ambiguous"
    )
    for name in ("9", "0", "", "nothing", "١"):
        assert refusal(prune_item, document, "highlights", name).code == "item-unknown"


@pytest.mark.parametrize(
    ("body", "number", "then"),
    [
        ("\nProse.\n1. one\n2. two\n\n", "1", "\nProse.\n\n2. two\n\n"),
        ("\nProse\n- one\n---\nmore\n\n", "1", "\nProse\n\n---\nmore\n\n"),
        ("\n- one\n- two\n- three\n\n", "2", "\n- one\n- three\n\n"),
        ("\n- one\n\n- two\n\n- three\n\n", "3", "\n- one\n\n- two\n\n"),
    ],
)
def test_what_stood_around_an_item_stays_what_it_was(body, number, then):
    document, _ = prune_item(put_body(FULL, "highlights", body), "highlights", number)
    assert find(reread(document), "highlights").body == then


@pytest.mark.parametrize(
    "body", ["\n```\n", "\n<!--\n", "\n## Evil\n", "\n<!-- section role -->\n\n## Role\n<!-- section role -->\n"]
)
def test_an_edit_that_would_swallow_the_rest_is_seen(body):
    assert refusal(reread, put_body(FULL, "identity", body)).code == "edit-unclean"


def test_sections_are_named_by_anchor_or_heading():
    document = parse(render(FULL).replace("## Extensions", "## Mine\n\n## mine\n\n## Extensions"))
    assert find(document, "open-questions") is find(document, "Open Questions") is find(document, " OPEN  questions ")
    assert find(document, "Identity") is find(document, "IDENTITY") is find(document, "identity")
    assert refusal(find, document, "Mine").code == "section-ambiguous"
    unknown = refusal(find, document, "nobody")
    assert unknown.code == "section-unknown" and unknown.exit_code == 2 and "open-questions" in unknown.hint


# --- frontmatter ---

MANY = {"updated_at": "2027", "pins": [], "status": "active"}
GONE = ("until", "since")


@pytest.mark.parametrize(
    ("head", "changes", "gone", "then"),
    [
        ("kind: part\npins: [a, b]\n# mine\nmood: 'calm'  # today\nupdated_at: 2026-01-01\n\naliases:\n- a\n- b",
         MANY, (), "kind: part\npins:\n# mine\nmood: 'calm'  # today\n"
         'updated_at: "2027"\n\naliases:\n- a\n- b\nstatus: "active"'),
        ("pins:\n- a\n- b\n# mine\nmood: 'x'", {"pins": ["c"]}, (), "pins:\n  - \"c\"\n# mine\nmood: 'x'"),
        ("mood: 'a\n\npins: b'\n\"pins\": []", {"pins": ["c"]}, (), '"mood": "a\\npins: b"\npins:\n  - "c"'),
        ("kind: part\n# mine\nuntil: 'x'\nm: 'c'  # x", {"s": "a"}, GONE, "kind: part\n# mine\nm: 'c'  # x\ns: \"a\""),
        ("kind: part\n\"until\": 'x'\nm: 'c'  # x", {"s": "a"}, GONE, "kind: part\nm: 'c'  # x\ns: \"a\""),
    ],
)  # fmt: skip
@pytest.mark.parametrize(("mark", "end"), [("", "\n"), ("\ufeff", "\r\n")])
def test_lines_of_other_fields_stay_to_the_byte(head, changes, gone, then, mark, end):
    document = parse((f"{mark}---\n{head}\n---\n# T\n").replace("\n", end))
    assert reread(with_fields(document, changes, gone)).head == f"{mark}---\n{then}\n---\n".replace("\n", end)


# --- refusals ---


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        ("", "frontmatter-missing", 1),
        ("---\na: &x 1\n---\n# T\n", "frontmatter-invalid", 1),
        ("---\na: 1\n---\n", "title-missing", 0),
        ("---\na: 1\n---\n\n## Role\n# T\n", "title-missing", 5),
        ("---\na: 1\n---\n# T\n## A\n<!-- section a -->\n## B\n<!-- section a -->\n", "section-twice", 7),
        ("---\na: 1\n---\n# T\n" + "x" * SIZE_LIMIT, "too-large", 0),
    ],
)
def test_what_is_no_entity_file_is_refused_with_a_place_and_a_hint(text, code, line):
    with pytest.raises(DocumentProblem) as caught:
        parse(text)
    found = caught.value
    assert (found.code, found.line) == (code, line) and found.message == str(found) and found.hint


HEADINGS_THAT_ARE_NONE = (
    "```\n## F\n```\n> ## Q\n\n- ## L\n\n<!--\n## C\n-->\n\n<pre>\n## P\n</pre>\n\n    ## I\n\n\\## E\n#### H"
)


def test_only_headings_at_the_top_make_sections():
    document = parse(f"---\na: 1\n---\n# T\n\n## A\n{HEADINGS_THAT_ARE_NONE}\n\nB\n---\n   ## C ##\nx\n")
    assert [section.heading for section in document.sections] == ["A", "B", "C"]
    assert [section.anchor for section in document.sections] == [None, None, None]


@pytest.mark.parametrize(
    ("below", "anchor"),
    [
        ("<!-- section a -->", "a"),
        ("\n\n  <!--section   a-->  ", "a"),
        ("<!-- section a --> words", None),
        ("words\n<!-- section a -->", None),
        ("<!-- section A -->", None),
        ("<!--\nsection a -->", None),
        ("    <!-- section a -->", None),
        ("- <!-- section a -->", None),
        ("```\n<!-- section a -->\n```", None),
    ],
)
def test_an_anchor_is_a_comment_alone_under_the_heading(below, anchor):
    assert parse(f"---\na: 1\n---\n# T\n## A\n{below}\n").sections[0].anchor == anchor
