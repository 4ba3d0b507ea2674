"""Regular expressions that are compiled when they are first used."""

from __future__ import annotations

import re

import pytest

from signet_sync.formats import lazy_pattern
from signet_sync.formats.lazy_pattern import late


def test_a_pattern_is_compiled_when_it_is_first_used(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = []
    monkeypatch.setattr(lazy_pattern.re, "compile", lambda *said: compiled.append(said) or re._compiler.compile(*said))
    number = late(r"[0-9]+", re.ASCII)
    assert compiled == []
    assert number.search("a 12")[0] == "12" and number.pattern == r"[0-9]+" and number.sub("n", "1 2") == "n n"
    assert compiled == [(r"[0-9]+", re.ASCII)]
