"""What an agent writes, made fit for a file: narratives, items, evidence with its token, the rationale for more."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signet_sync.entities.agent_text import (
    QUOTE_LENGTH,
    TEXT_LIMIT,
    Evidence,
    fit,
    fit_item,
    fit_title,
    item_text,
    log_item,
    read_item,
    read_rationale,
)
from signet_sync.entities.events import token_of, tokens_in
from signet_sync.entities.repository import new_ulid
from signet_sync.errors import UsageError
from signet_sync.formats.timestamps import iso, parse_instant

AT = parse_instant("2026-03-28T22:34:06.792Z")
TOKEN = token_of("01KMV9AJJ8000G40R40M30E209")
INSTANTS = st.integers(0, parse_instant("9999-12-31T23:59:59.999999Z"))
HOSTILE = st.text(max_size=60) | st.text(alphabet='a"—[]|<>!-`\n\t :;ev\u2028 .', max_size=60)


def refusal(call, *arguments):
    with pytest.raises(UsageError) as caught:
        call(*arguments)
    return caught.value


@pytest.mark.parametrize(
    ("text", "fitted"),
    [
        ("# One\n## Two\n### Three", "### One\n### Two\n### Three"),
        ("One\n===\n\nTwo\nlines\n---", "### One\n\n### Two lines"),
        ("x\n\n  ## in\n\n    ## code", "x\n\n  ### in\n\n    ## code"),
        ("> ## quoted\n\n- ## listed", "> ## quoted\n\n- ## listed"),
        ("```py\n## code <!-- x -->\n%%time", "```py\n## code <!-- x -->\n%%time\n```"),
        ("~~~~\n```", "~~~~\n```\n~~~~"),
        ("a <!-- section role --> b", "a < !-- section role --> b"),
        ("a --> b", "a --> b"),
        ("%% hidden %%", "% % hidden % %"),
        ("<pre>\n\nx", "\\<pre>\n\nx"),
        ("<div>\n\nx</div>", "\\<div>\n\nx\\</div>"),
        ("List<int> `<b>` <https://a.example> 1 < 2", "List\\<int> `<b>` <https://a.example> 1 < 2"),
        ("[[memory/a.md|a]] **b** `c`", "[[memory/a.md|a]] **b** `c`"),
        ("\n\n   a  \r\nb\u202e\x07\n\n", "a\nb"),
    ],
)
def test_narratives_are_made_to_fit(text, fitted):
    assert fit(text) == fitted


@pytest.mark.parametrize(
    ("text", "item"),
    [
        ("a\nb  c", "a b c"),
        ("- [x] done", "done"),
        ("## Evil", "Evil"),
        ("> 1. * quoted", "quoted"),
        ("~~~ code", "code"),
        ("see [[memory/a.md|a]] and [[b]]", "see [[memory/a.md|a]] and [[b]]"),
        ("not [[../a.md]] nor [[/b|c]]", "not [ [../a.md] ] nor [ [/b|c] ]"),
        ("a <!-- section role --> b", "a <! -- section role -- > b"),
        ("[ref]: /url", "[ref] : /url"),
        ("`code` <b>", "'code' \\<b>"),
    ],
)
def test_items_are_one_line_that_opens_nothing(text, item):
    assert fit_item(text) == item
    assert log_item("2026-03-28T22:34:06Z", f"{text}\n## x").startswith("2026-03-28T22:34:06Z — ")


@pytest.mark.parametrize("call", [fit, fit_item, fit_title])
def test_nothing_is_not_written(call):
    assert refusal(call, " \n\t\n").code == "text-empty"
    if call is not fit_title:
        assert refusal(call, "x" * (TEXT_LIMIT + 1)).code == "text-too-long"


# --- tokens ---


@given(INSTANTS)
def test_a_token_is_read_as_it_was_made(instant):
    ulid = new_ulid(instant)
    token = token_of(ulid)
    assert tokens_in(token) == (ulid,) and token[3:7] == iso(instant)[:4]
    assert instant < 1000 or new_ulid(instant - 1000) < ulid != new_ulid(instant)


@pytest.mark.parametrize(
    "text",
    ["", "ev:", TOKEN[3:], TOKEN[:-1], TOKEN + "0", TOKEN.lower(), TOKEN.replace("223406", "223407"), f"x{TOKEN}",
     TOKEN.replace("Z-0", "Z-8"), TOKEN[:-1] + "U", TOKEN.replace("2026", "٢٠٢٦")],
)  # fmt: skip
def test_what_only_looks_like_a_token_is_none(text):
    assert TOKEN == "ev:20260328T223406Z-01KMV9AJJ8000G40R40M30E209"
    assert tokens_in(text) == () and tokens_in(f"{text} see ({TOKEN}), {TOKEN}") == (TOKEN[20:],) * 2


# --- evidence ---


def test_an_item_as_it_is_written():
    path = "memory/2026-03-28T22-34-06.792Z--abcdefghijklmnop--summary.md"
    text = item_text("never  good\nenough", "speaks first under pressure", path, TOKEN)
    assert text == f'"never good enough" — speaks first under pressure [[{path}|summary]] {TOKEN}'
    assert read_item(text) == Evidence("never good enough", "speaks first under pressure", path, TOKEN)
    assert read_item('"q" — w') == Evidence("q", "w", None, None)
    long = read_item(item_text("word " * 100, "why", path, TOKEN))
    assert long is not None and len(long.quote) <= QUOTE_LENGTH and long.quote.endswith("…")
    for other in ("", "no quote", '"open — why', "“curly” — why", '"q" - why'):
        assert read_item(other) is None


@given(HOSTILE, HOSTILE)
def test_an_item_is_read_as_it_was_written_and_forges_nothing(quote, why):
    try:
        text = item_text(quote, why, "memory/a.md", TOKEN)
    except UsageError as refused:
        assert refused.code == "text-empty"
        return
    assert "\n" not in text and "<!--" not in text and text.count("[[") == 1
    read = read_item(text)
    assert read is not None and (read.path, read.token) == ("memory/a.md", TOKEN) and len(read.quote) <= QUOTE_LENGTH
    assert item_text(*read) == text


@pytest.mark.parametrize(("quote", "why"), [(" \n", "why"), ("quote", "")])
def test_what_is_no_evidence_is_refused(quote, why):
    assert refusal(item_text, quote, why, "memory/a.md", TOKEN).code == "text-empty"


# --- the rationale ---


@pytest.mark.parametrize(
    "text",
    [
        "why: a case is open; until: 2026-05-01; plan: keep the best three",
        "until: 2026-05-01;why:a case is open  ;\n Plan: keep the best three;",
        "  WHY: a case is open; plan: keep the best three; until: 2026-05-01",
    ],
)
def test_a_rationale_is_read_in_any_order(text):
    rationale = read_rationale(text)
    assert rationale == ("a case is open", "2026-05-01", "keep the best three")
    assert read_rationale(rationale.text()) == rationale
    assert (rationale.is_over("2026-05-01"), rationale.is_over("2026-05-02")) == (False, True)
    other = read_rationale("why: one; two; until: May; plan: p")
    assert other.why == "one; two" and not other.is_over("2099-01-01")


@pytest.mark.parametrize(
    "text",
    ["", "because I want to", "why: x; until: y", "why: x; until: ; plan: z", "why: …; until: …; plan: …",
     "why: x; why: y; until: z; plan: p", "so: x; why: a; until: b; plan: c"],
)  # fmt: skip
def test_a_rationale_that_lacks_a_part_is_refused(text):
    refused = refusal(read_rationale, text)
    assert refused.code == "rationale-invalid" and refused.exit_code == 2 and "until: …" in refused.hint
