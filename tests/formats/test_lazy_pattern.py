"""Regular expressions that are compiled late, and those that are looked for in lower case."""

from __future__ import annotations

import re

import pytest
from signet_sync.text.digest.cues import Cue, any_of, table

from signet_sync.formats import lazy_pattern
from signet_sync.formats.lazy_pattern import Caseless, Late, late


def test_a_pattern_is_compiled_when_it_is_first_used(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = []
    monkeypatch.setattr(lazy_pattern.re, "compile", lambda *said: compiled.append(said) or re._compiler.compile(*said))
    number = late(r"[0-9]+", re.ASCII)
    assert compiled == []
    assert number.search("a 12")[0] == "12" and number.pattern == r"[0-9]+" and number.sub("n", "1 2") == "n n"
    assert compiled == [(r"[0-9]+", re.ASCII)]


def test_a_pattern_that_is_none_says_so_at_its_first_use() -> None:
    with pytest.raises(re.error):
        late("(").search("")
    with pytest.raises(AttributeError):
        _ = late("a").matches  # type: ignore[attr-defined]
    assert isinstance(late("a"), Late)


@pytest.mark.parametrize(
    "pattern", [r"\bI(?:['’]D| Would)\W\S*\B.", r"(?P<Name>[A-D])X(?P=Name)", r"a\s+b$", "ß|é|K\\w"]
)
@pytest.mark.parametrize(
    "text", ["I'd go", "AXa cxc", "a \t b", "A\x1cB", "a b\n", "Straße É k", "kx", "I\u2019D x y", "\u212ax", ""]
)
def test_any_case_is_found_in_every_text(pattern: str, text: str) -> None:
    found, expected = Caseless(pattern).search(text), re.search(pattern, text, re.IGNORECASE)
    assert (found and found.span()) == (expected and expected.span())


@pytest.mark.parametrize("kind", sorted({cue.kind for cue in table()}))
def test_cues_as_one_are_found_where_one_of_them_is(kind: str) -> None:
    cues: list[Cue] = [cue for cue in table() if cue.kind == kind]
    whole = any_of([cue.pattern for cue in cues])
    for text in (form for cue in table() for form in (cue.example, cue.example.upper(), cue.example + "\t.")):
        places = [found.start() for cue in cues if (found := re.search(cue.pattern, text, re.IGNORECASE))]
        found = whole.search(text)
        assert (found and found.start()) == min(places, default=None), text
