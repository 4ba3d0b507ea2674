"""The frontmatter codec: what is written, that both readers agree, and that no head can hurt.

Heads re-saved by Obsidian are held against the typed models in `test_artifacts`.
"""

import json

import frontmatter as library
import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from signet_sync.formats.body import fix_surrogates, normalize
from signet_sync.formats.frontmatter import (
    HEAD_LIMIT,
    MAX_DEPTH,
    FrontmatterProblem,
    handler,
    parse,
    read,
    read_written,
    read_yaml,
    scalar_text,
    serialize,
    split,
    unknown_entries,
    write,
)

SPECIAL = (
    "\x00\x07\x1b\t\n\r\x7f\x80\x85\x9f\u2028\u2029\ufeff\ufffd\ufffe\uffff\ud83d\ude80\udcff\"'\\/#:-[]{}&*!|>%@`, é会"
)
TEXTS = st.text(max_size=30) | st.text(alphabet=SPECIAL, max_size=12)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS
KEYS = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,15}", fullmatch=True) | st.sampled_from(["null", "NULL", "y", "true"])
FIELDS = st.dictionaries(KEYS, SCALARS | st.lists(SCALARS, max_size=4), min_size=1, max_size=6)


@pytest.fixture(params=["C", "Python"])
def loader(request, monkeypatch):
    """Both parsers of PyYAML: the wheel's own in C, and the one in Python where that is missing."""
    if request.param == "Python":
        monkeypatch.delattr(yaml, "CSafeLoader")
    elif not hasattr(yaml, "CSafeLoader"):
        pytest.skip("this PyYAML is without its C parser")
    return request.param


def head_of(fields):
    return serialize(fields).removeprefix("---\n").removesuffix("\n---")


def as_read(value):
    """What a written value is when read: numbers and booleans are text as written, an empty list is nothing."""
    if isinstance(value, list):
        return [as_read(item) for item in value] or None
    if value is None or isinstance(value, str):
        return value if value is None else fix_surrogates(value)
    return scalar_text(value)


def problem(head):
    with pytest.raises(FrontmatterProblem) as caught:
        read(head)
    return caught.value.code, str(caught.value)


# --- the written form ---


def test_the_written_form():
    fields = {
        "a": "x", "none": None, "yes": True, "no": False, "n": -1, "half": 1.5, "list": ["p", 1, None], "empty": [],
    }  # fmt: skip
    assert serialize(fields) == (
        '---\na: "x"\nnone: null\nyes: true\nno: false\nn: -1\nhalf: 1.5\nlist:\n  - "p"\n  - 1\n  - null\nempty:\n---'
    )
    assert write(fields, "body") == f"{serialize(fields)}\nbody\n".encode()
    assert write({"a": 1}, "") == b"---\na: 1\n---\n\n"


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("", '""'), ("12", '"12"'), ("null", '"null"'), ('a"b\\c/d', '"a\\"b\\\\c/d"'),
        ("line\nbreak\ttab\r", '"line\\nbreak\\ttab\\r"'), ("\x00\x1b\x1f", '"\\u0000\\u001b\\u001f"'),
        ("é 会話 \U0001f680 \xa0\u200b", '"é 会話 \U0001f680 \xa0\u200b"'),
        ("\x7f\x85\u2028\u2029\ufeff\ufffe\uffff", '"\\u007f\\u0085\\u2028\\u2029\\ufeff\\ufffe\\uffff"'),
        ("\ud800", '"\\ud800"'),
    ],
)  # fmt: skip
def test_texts_are_json_on_one_line_with_what_yaml_cannot_hold_escaped(text, written):
    assert scalar_text(text) == written
    assert json.loads(written) == text


def test_writing_agrees_with_the_original_but_for_escapes_and_nested_values(vectors):
    wrong = []
    for case in vectors["frontmatter_serialize"]:
        value, theirs = case["value"], case["serialized"]
        if isinstance(value, dict) or value == "__undefined__":
            continue
        ours = serialize({"key": value})
        same = json.loads(ours.split(": ", 1)[1][:-4]) == value if isinstance(value, str) else ours == theirs
        if not same or (ours != theirs and not any(c in value for c in "\x7f\x85\u2028\u2029\ufeff")):
            wrong.append((value, ours, theirs))
    assert wrong == []


@given(FIELDS, st.text(max_size=40))
@example({"a": "\ud83d", "b": ["\ude80"]}, "x\ud800")
def test_what_is_written_is_read_and_written_again_alike(fields, body):
    raw = write(fields, body)
    document = parse(raw)
    assert document.fields == {key: as_read(value) for key, value in fields.items()}
    assert normalize(document.body) == normalize(fix_surrogates(body))
    assert (document.bom, document.crlf) == (False, "\r" in body)
    texts = {key: value for key, value in fields.items() if value is None or isinstance(value, str)}
    if texts and texts == {key: as_read(value) for key, value in texts.items()}:
        assert write(parse(write(texts, "")).fields, "") == write(texts, "")


@given(FIELDS)
@example({"a": ["\x7f", "\ud800", "\ud83d\ude80"], "b": "\ud800"})
@example({"null": None, "NULL": [None], "y": True})
def test_the_fast_reader_and_yaml_agree_on_everything_written(fields):
    head = head_of(fields)
    fast = read_written(head)
    assert fast == {key: as_read(value) for key, value in fields.items()}
    assert read_yaml(head) == fast
    with pytest.MonkeyPatch.context() as patch:
        patch.delattr(yaml, "CSafeLoader", raising=False)
        assert read_yaml(head) == fast


# --- documents ---


@pytest.mark.parametrize(
    ("text", "head", "body"),
    [
        ("---\na: 1\n---\nbody\n", "a: 1", "body\n"), ("---\na: 1\n---\n", "a: 1", ""),
        ("---\na: 1\n---", "a: 1", ""), ("--- \t\na: 1\n---  \nb", "a: 1", "b"),
        ("---\n\na: 1\n\n---\n\nb", "\na: 1\n", "\nb"),
        ("---\na: 1\n---\n---\nb: 2\n---\nc", "a: 1", "---\nb: 2\n---\nc"),
        ("---\na: 1\n----\n--- x\n---\nb", "a: 1\n----\n--- x", "b"), ("---\n---\nb", "", "b"),
        ('---\na: "x\n---\ny"\n---\nz', 'a: "x', 'y"\n---\nz'),
    ],
)  # fmt: skip
def test_documents_are_split_at_the_first_closing_fence(text, head, body):
    assert split(text) == (head, body)


@pytest.mark.parametrize(
    "between",
    [
        "A thought between two rules.", "# heading: one", "[[link]]: x", "http://example.org/x", "{a: 1}",
        "%YAML 1.2", "", " \t\n",
    ],
)  # fmt: skip
def test_prose_between_two_rules_is_no_frontmatter(between):
    with pytest.raises(FrontmatterProblem) as caught:
        parse(f"---\n{between}\n---\n\nMore prose.\n".encode())
    assert caught.value.code == "frontmatter-missing"


def test_byte_order_marks_and_carriage_returns_are_read_and_told():
    for raw, bom, crlf in [
        (b"---\na: 1\n---\nb\n", False, False),
        (b"\xef\xbb\xbf---\na: 1\n---\nb\n", True, False),
        (b"---\r\na: 1\r\n---\r\nb\r\n", False, True),
        (b"\xef\xbb\xbf---\ra: 1\r---\rb\r", True, True),
    ]:
        document = parse(raw)
        assert (document.fields, document.body, document.bom, document.crlf) == ({"a": "1"}, "b\n", bom, crlf)


@pytest.mark.parametrize("raw", [b"\xff\xfe-\0-\0", b"---\na: \xff\n---\n", b"---\na: 1\n---\n\xed\xa0\x80", b"\x80"])
def test_bytes_that_are_not_utf8(raw):
    with pytest.raises(FrontmatterProblem) as caught:
        parse(raw)
    assert caught.value.code == "not-utf8"


def test_document_vectors(vectors):
    """Where the original finds frontmatter we split alike; where it finds none we read only these forms more."""
    more = []
    for case in vectors["document_split"]:
        text = case["document"]
        try:
            document = parse(text.encode())
        except FrontmatterProblem as refused:
            # Of a value that is torn at a fence the original keeps nothing; a blank head it takes for an empty one.
            torn = refused.code == "frontmatter-invalid" and case["frontmatter"] == {"a": ""}
            assert torn or case["frontmatter"] == {}, text
            continue
        if case["frontmatter"]:
            assert {k: str(v) for k, v in case["frontmatter"].items()} == document.fields, text
            assert case["body"] == document.body
        else:
            more.append(text)
    assert sorted(more) == ["---\na: 1\n---", "---\na: 1\n--- \nb", "--- \na: 1\n---\nb", "\ufeff---\na: 1\n---\nb"]


# --- YAML that others write: on the left the head, in the middle what we read, on the right why where we refuse ---

INVALID, MISSING = "frontmatter-invalid", "frontmatter-missing"
READ = {
    # scalars are text as written; the models type them
    "a: 1": "1", "a: -5": "-5", "a: 1.50": "1.50", "a: 1e5": "1e5", "a: 0x1F": "0x1F", "a: 007": "007",
    "a: 123456789012345678901": "123456789012345678901", "a: true": "true", "a: True": "True", "a: yes": "yes",
    "a: .5": ".5", "a: 5.": "5.", "a: +5": "+5",
    "a: 0o17": "0o17", "a: 12:30:45": "12:30:45", "a: .inf": ".inf",
    "a: 2026-03-28T22:34:06.792Z": "2026-03-28T22:34:06.792Z",
    "a: 2026-03-28 22:34:06.792 Z": "2026-03-28 22:34:06.792 Z", "a: \xa0nbsp\xa0": "\xa0nbsp\xa0",
    # nothing, in the five ways of YAML
    "a: null": None, "a: NULL": None, "a: ~": None, "a:": None, "a: \nb: x": None,
    # quotes
    'a: ""': "", "a: ''": "", "a: 'single'": "single", "a: 'it''s'": "it's", "a: 'x: y'": "x: y", "a: '~'": "~",
    'a: "null"': "null", 'a: "dq \\"esc\\" \\u00e9"': 'dq "esc" é', 'a: "multi\\nline"': "multi\nline",
    'a: "\\/slash"': "/slash", 'a: "tab\\t"': "tab\t", 'a: "\\x41\\e\\_"': "A\x1b\xa0",
    # comments
    'a: "x" # c': "x", "a: plain # c": "plain", "a: no#comment": "no#comment",
    # several lines
    "a: >-\n  folded\n  text": "folded text", "a: |\n  lit: eral\n  two": "lit: eral\ntwo\n",
    "a: |\n  lit: eral\n  two\nb: x": "lit: eral\ntwo\n", "a: |-\n  lit: eral\n  two": "lit: eral\ntwo",
    "a: plain\n  folded": "plain folded", "a: 'single\n  folded'": "single folded",
    'a: "double\\\n  \\ folded"': "double folded",
    # lists
    "a: []": [], "a: [x, y]": ["x", "y"], "a: [x, 'y', null]": ["x", "y", None], 'a:\n  - x\n  - "y"': ["x", "y"],
    "a:\n- x\n- y": ["x", "y"], "a:\n    - x": ["x"], "a:\n  -  spaced": ["spaced"], "a:\n  -\n  - x": [None, "x"],
    "a: {}": {},
    "a: {b: [c, {d: e}]}": {"b": ["c", {"d": "e"}]},
    # keys
    "  a: indented": "indented", '"a": quoted key': "quoted key", "'a' : x": "x", "a : space": "space",
    "\n\na: x": "x", "a: x\n...": "x",
}  # fmt: skip
REFUSED = {
    'a: "bad \\q"': INVALID, "a: plain long\n  continued: here": INVALID, "a: b: c": INVALID, "a: - 5": INVALID,
    "a: @x": INVALID, "a: `x`": INVALID, "a: 'open": INVALID, "a: [x": INVALID, "a: x\n\tb: y": INVALID,
    "a: x\nprose": INVALID, "a: &anc v\nb: *anc": INVALID, "a: !!str 5": INVALID, "a: x\na: y": INVALID,
    "a:nospace": MISSING, "# comment: x": MISSING, "? a\n: b": MISSING,
}  # fmt: skip


@pytest.mark.parametrize("head", READ, ids=repr)
def test_heads_of_others_are_read(head, loader):
    assert read(head)["a"] == READ[head]


@pytest.mark.parametrize("head", REFUSED, ids=repr)
def test_heads_that_are_refused(head):
    assert problem(head)[0] == REFUSED[head]


def test_every_head_of_the_vectors_has_its_place_in_these_tables(vectors):
    untold = [case["yaml"] for case in vectors["frontmatter_parse"] if case["yaml"] not in READ.keys() | REFUSED.keys()]
    assert untold == []


# --- heads that are made to hurt ---

BOMB = "a0: &a0 [x, x]\n" + "\n".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}, *a{n - 1}]" for n in range(1, 30))
HURTFUL = {
    "alias bomb": BOMB, "alias": "b: x\na: *b", "anchor": "a: &b x",
    "tag": "a: !!python/object/apply:os.system ['true']", "merge key": "a: x\n<<: {b: y}",
    "twice the same key": 'a: "x"\na: "y"', "twice, deeper": "a: {b: x, b: y}", "a list for a key": "a: x\n[b]: y",
    "no key": "a: x\n: y", "several documents": "a: x\n--- {}",
    "a directive between documents": "a: x\n...\n%YAML 1.2\n--- b", "60,000 brackets": "a: " + "[" * 60_000,
    "60,000 braces": "a: " + "{" * 60_000, "60,000 dashes": "a:\n " + "- " * 30_000 + "x",
    "60,000 question marks": "a:\n " + "? " * 30_000 + "x",
    "330 block levels": "\n".join(" " * n + f"k{n}:" for n in range(330)),
    "five levels": "a: {b: {c: {d: {e: f}}}}", "100,000 brackets": "a: " + "[" * 100_000,
    "64 KiB and a byte": 'a: "' + "x" * (HEAD_LIMIT - 4) + '"',
    "10,000 keys": "\n".join(f"k{n}: 1" for n in range(10_000)),
    "4,000 keys, the last one twice": "\n".join(f"k{n}: 1" for n in (*range(4_000), 3_999)),
    "a key of 60,000 letters": "k" * 60_000 + ": x", "a NUL": "a: x\0", "U+FFFE": "a: x\ufffe",
    "60,000 spaces and no end": "a: '" + " " * 60_000,
}  # fmt: skip


@pytest.mark.parametrize("name", HURTFUL)
def test_hurtful_heads_are_refused_at_once(name):
    code, message = problem(HURTFUL[name])
    assert code == INVALID
    assert len(message) < 300


def test_nesting_is_read_down_to_the_documented_depth(loader):
    assert MAX_DEPTH == 4
    assert read("a: {b: {c: [x]}}") == {"a": {"b": {"c": ["x"]}}}
    assert problem("a: {b: {c: [[x]]}}") == (INVALID, "line 2: it is nested deeper than 4 levels")


@pytest.mark.parametrize(
    ("head", "line"),
    [
        ("a: 1\nb: [x\nc: 1", 3), ("a: 1\nb: &x 1", 3), ("a: 1\nb: {c: 1,\n  c: 2}", 4),
    ],
)  # fmt: skip
def test_a_refusal_names_the_line_of_the_file(loader, head, line):
    assert problem(head)[1].startswith(f"line {line}: ")


def test_the_largest_head_is_one_of_64_kib_in_bytes(loader):
    for letter, quote in [("x", '"'), ("x", "'"), ("会", '"'), ("会", "'")]:
        room = (HEAD_LIMIT - len(f"a: {quote}{quote}")) // len(letter.encode())
        assert read(f"a: {quote}{letter * room}{quote}") == {"a": letter * room}
        assert problem(f"a: {quote}{letter * (room + 1)}{quote}") == (INVALID, "the frontmatter is larger than 64 KiB")


def test_escapes_of_lone_surrogates_never_reach_a_value(loader):
    assert read('a: "\\ud800"') == {"a": "\ufffd"}
    assert read("a:\n  - \"\\udcff\"\nb: 'x'") == {"a": ["\ufffd"], "b": "x"}
    # Elsewhere the C parser refuses them, and the one in Python lets them through.
    try:
        assert read('a: x\nb: ["\\ud83d"]') == {"a": "x", "b": ["\ufffd"]}
    except FrontmatterProblem as refused:
        assert refused.code == INVALID


@given(st.text(alphabet="ab:-? \n\t'\"[]{}#|>&*!%@`~,.\\\x00\x7f\x85\u2028\ufeff", max_size=40), st.booleans())
def test_any_head_is_read_or_refused_and_nothing_else(text, keyed):
    try:
        fields = read(f"a: {text}" if keyed else text)
    except FrontmatterProblem as refused:
        assert refused.code in {INVALID, MISSING}
    else:
        assert all(isinstance(key, str) for key in fields)


# --- what is kept when a file is written again ---

ENTRIES = [
    "{k}: x", "{k}: 'x\u2028y'", "{k}: 'x\x85'", '{k}: "x\u2028y\\u2028"', '"{k}": "x" # comment',
    "{k}: # comment\n{i}  x", "{k}: x\n{i}# comment: y", "{k}: x\n\n",
    "{k}: |\n{i}  literal: x\n{i}    deeper\n\n{i}  end", "{k}: |+\n{i}  kept\n\n", "{k}: >-\n{i}  folded\n{i}  text",
    "{k}: plain\n{i}  folded", "{k}: 'x\n\n{i}  y'", '{k}:\n{i}  - x\n{i}  - "\\u2028"',
    "{k}:\n{i}- x\n{i}- - y\n{i}  - z", "{k}:\n{i}  {k}: y\n{i}  other: [z, {{a: b}}]", "{k}: {{b: c}}", "{k}:",
    "{k}: ~", "? {k}\n{i}: y", "? 'x {k}'\n{i}:\n{i}  - y",
]  # fmt: skip


@st.composite
def heads_of_others(draw):
    indent = draw(st.sampled_from(["", "  ", "    "]))
    keys = draw(st.permutations(["a", "b", "c", "d", "e"]))[: draw(st.integers(1, 5))]
    entries = [draw(st.sampled_from(ENTRIES)) for _ in keys]
    head = "\n".join(f"{indent}{entry.format(k=key, i=indent)}" for key, entry in zip(keys, entries, strict=True))
    return head + draw(st.sampled_from(["", "", "\n", "\n...", "\n...\n"]))


@given(heads_of_others())
def test_unknown_entries_mean_the_same_wherever_they_are_written_again(head):
    try:
        fields = read(head)
    except FrontmatterProblem as refused:
        assert refused.code == MISSING and head.lstrip().startswith("?"), refused
        return
    known = frozenset({"a", "b"})
    kept = unknown_entries(head, known)
    assert [key for key, _ in kept] == [key for key in fields if key not in known]
    once = head_of({"a": "new", **dict(kept), "last": None})
    assert read(once) == {"a": "new", **{key: fields[key] for key, _ in kept}, "last": None}
    again = dict(unknown_entries(once, known | {"last"}))
    twice = head_of({"a": "new", **again, "last": None})
    assert read(twice) == read(once)
    assert dict(unknown_entries(twice, known | {"last"})) == again, "it does not grow"


# --- python-frontmatter ---


def test_the_library_reads_and_writes_through_our_handler(tmp_path):
    file = tmp_path / "note.md"
    file.write_bytes(write({"kind": "summary", "refs": ["x"], "id": "007"}, "# Body\n\ntext"))
    post = library.load(str(file), handler=handler())
    assert post.metadata == {"kind": "summary", "refs": ["x"], "id": "007"}
    assert post.content == "# Body\n\ntext"
    assert library.dumps(post, handler=handler()).encode() == file.read_bytes()
    assert handler().export({"a": 1}) == "a: 1"
    plain = library.loads("no frontmatter\n", handler=handler())
    assert (plain.metadata, plain.content) == ({}, "no frontmatter")
