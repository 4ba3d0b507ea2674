"""The body rule: what is normalised, what is kept, and that the hash is the original program's."""

import pytest

from signet_sync.formats.body import HASH_SCOPE, JS_BLANKS, fix_surrogates, js_trim, normalize, text_sha256, utf8


@pytest.mark.parametrize(
    ("text", "normalized"),
    [
        ("", ""), ("\n\n\n", ""), (" \n\t\n \t ", ""), ("a\r\nb\r\n", "a\nb"), ("a\rb\r", "a\nb"),
        ("a\r\rb", "a\n\nb"), ("a\r\n\rb\n\r", "a\n\nb"), ("a  \nb\t\nc \t ", "a\nb\nc"), ("a \r\nb \rc", "a\nb\nc"),
        ("\n\n  a", "\n\n  a"), ("a\n\n\nb", "a\n\n\nb"), ("a\n   \n", "a"), ("a  b", "a  b"),
        ("a\xa0\nb\u3000", "a\xa0\nb\u3000"), ("a\xa0 \n", "a\xa0"), ("a\n\xa0", "a\n\xa0"),
        ("a\f\nb \f \n\f", "a\f\nb \f\n\f"), ("\ufeffa\ufeff", "\ufeffa\ufeff"), ("---\na\n---\n", "---\na\n---"),
    ],
)  # fmt: skip
def test_newlines_and_trailing_blanks_go_everything_else_stays(text, normalized):
    assert normalize(text) == normalized


def test_lone_surrogates_become_the_replacement_character_and_pairs_become_one_character():
    assert fix_surrogates("a\ud800b\udc00") == "a\ufffdb\ufffd"
    assert fix_surrogates("\ud83d\ude80") == "\U0001f680"
    assert utf8("é\udcff") == "é\ufffd".encode()


def test_trimming_is_that_of_javascript():
    assert js_trim(f"{JS_BLANKS}x{JS_BLANKS}") == "x"
    for kept in "\x85\x1c\x1d\x1e\x1f\u200b\u180e":
        assert js_trim(f"{kept}x{kept}") == f"{kept}x{kept}"


def test_vectors_of_the_original_program(vectors):
    wrong = [
        case["name"]
        for case in vectors["body"]
        if (body := normalize(case["input"])) != case["normalized"]
        or text_sha256(body) != case["sha256"]
        or (normalize(body) == body) != case["idempotent"]
    ]
    assert wrong == []
    assert vectors["const"]["HASH_SCOPE"] == HASH_SCOPE
