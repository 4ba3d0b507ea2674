"""Event tokens, curated items and the rationale for more of them than seven."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signet_sync.entities.agent_text import (
    QUOTE_LENGTH,
    Evidence,
    item_text,
    read_item,
    read_rationale,
)
from signet_sync.entities.events import token_of, tokens_in, ulid_at
from signet_sync.errors import UsageError
from signet_sync.formats.timestamps import iso, parse_instant

AT = parse_instant("2026-03-28T22:34:06.792Z")
ULID = ulid_at(AT, bytes(range(10)))
TOKEN = token_of(ULID)
INSTANTS = st.integers(0, parse_instant("9999-12-31T23:59:59.999999Z"))
HOSTILE = st.text(max_size=60) | st.text(alphabet='a"—[]|<>!-`\n\t :;ev\u2028 .', max_size=60)


def refusal(call, *arguments):
    with pytest.raises(UsageError) as caught:
        call(*arguments)
    return caught.value


# --- tokens ---


@given(INSTANTS, st.binary(min_size=10, max_size=10))
def test_a_token_is_read_as_it_was_made(instant, entropy):
    ulid = ulid_at(instant, entropy)
    token = token_of(ulid)
    assert tokens_in(token) == (ulid,) and token[3:7] == iso(instant)[:4]
    assert instant < 1000 or ulid_at(instant - 1000, b"\xff" * 10) < ulid


@pytest.mark.parametrize(
    "text",
    ["", "ev:", TOKEN[3:], TOKEN[:-1], TOKEN + "0", TOKEN.lower(), TOKEN.replace("223406", "223407"),
     TOKEN.replace("Z-0", "Z-8"), TOKEN[:-1] + "U", TOKEN.replace("2026", "٢٠٢٦")],
)  # fmt: skip
def test_what_only_looks_like_a_token_is_none(text):
    assert tokens_in(text) == ()


@pytest.mark.parametrize(("instant", "entropy"), [(-1000, bytes(10)), (1 << 62, bytes(10)), (AT, bytes(9))])
def test_ulids_are_of_the_years_that_can_be_written(instant, entropy):
    with pytest.raises(ValueError):
        ulid_at(instant, entropy)


def test_tokens_are_found_in_a_text():
    assert TOKEN == "ev:20260328T223406Z-01KMV9AJJ8000G40R40M30E209"
    other = token_of(ulid_at(AT + 5_000_000, bytes(10)))
    text = f"see {TOKEN}, ({other}) not x{TOKEN} nor {TOKEN}x nor ev:2026"
    assert [token_of(one) for one in tokens_in(text)] == [TOKEN, other]


# --- items ---


def test_an_item_as_it_is_written():
    path = "memory/2026-03-28T22-34-06.792Z--abcdefghijklmnop--summary.md"
    evidence = Evidence("never  good\nenough", "speaks first under pressure", path, TOKEN)
    text = item_text(evidence)
    assert text == f'"never good enough" — speaks first under pressure [[{path}|summary]] {TOKEN}'
    assert read_item(text) == evidence._replace(quote="never good enough")
    assert item_text(Evidence("q", "w", None, None)) == '"q" — w'
    long = read_item(item_text(Evidence("word " * 100, "why", None, TOKEN)))
    assert long is not None and len(long.quote) <= QUOTE_LENGTH and long.quote.endswith("…")
    for other in ("", "no quote", '"open — why', "“curly” — why", '"q" - why'):
        assert read_item(other) is None
    assert item_text(Evidence("q", "w", "notes/a.md", None)) == '"q" — w [[notes/a.md|source]]'


@given(HOSTILE, HOSTILE, st.sampled_from([None, "memory/a.md"]), st.sampled_from([None, TOKEN]))
def test_an_item_is_read_as_it_was_written_and_forges_nothing(quote, why, path, token):
    try:
        text = item_text(Evidence(quote, why, path, token))
    except UsageError as refused:
        assert refused.code == "text-empty"
        return
    assert "\n" not in text and "<!--" not in text and text.count("[[") == (path is not None)
    read = read_item(text)
    assert read is not None and (read.path, read.token) == (path, token)
    assert len(read.quote) <= QUOTE_LENGTH
    assert item_text(read) == text


@pytest.mark.parametrize(
    ("evidence", "code"),
    [
        (Evidence(" \n", "why", None, None), "text-empty"),
        (Evidence("quote", "", None, None), "text-empty"),
        (Evidence("quote", "why", "../x.md", None), "path-escape"),
        (Evidence("quote", "why", "/etc/passwd", None), "path-escape"),
        (Evidence("quote", "why", "a]] [[b", None), "path-escape"),
        (Evidence("quote", "why", "", None), "path-escape"),
    ],
)
def test_what_is_no_evidence_is_refused(evidence, code):
    assert refusal(item_text, evidence).code == code


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
    assert read_rationale("why: one; two; until: May; plan: p").why == "one; two"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "`why` and `until` and `plan`"),
        ("because I want to", "`why` and `until` and `plan`"),
        ("why: x; until: y", "`plan`"),
        ("why: x; until: ; plan: z", "`until`"),
        ("why: …; until: …; plan: …", "`why` and `until` and `plan`"),
        ("why: x; why: y; until: z; plan: p", "`why` twice"),
        ("so: x; why: a; until: b; plan: c", "has to begin"),
    ],
)
def test_a_rationale_that_lacks_a_part_is_refused_and_says_which(text, said):
    refused = refusal(read_rationale, text)
    assert refused.code == "rationale-invalid" and refused.exit_code == 2
    assert said in refused.message and "until: …" in refused.hint


@given(HOSTILE, HOSTILE, HOSTILE)
def test_any_rationale_is_read_or_refused(why, until, plan):
    try:
        rationale = read_rationale(f"why: {why}; until: {until}; plan: {plan}")
    except UsageError as refused:
        assert refused.code == "rationale-invalid"
    else:
        assert all(part and "\n" not in part and "<!--" not in part for part in rationale)
