"""Every case of the fault matrix stands in the page, with tests that exist; the page is what its sources say."""

from __future__ import annotations

from collections import Counter

import pytest

from benchmarks import reliability

CASES = reliability.cases()


def test_no_case_is_forgotten() -> None:
    assert list(CASES) == reliability.ids() and len(CASES) == 184
    assert all(case.what and (case.tests or case.reason) for case in CASES.values())


def test_every_case_that_blocks_a_release_is_covered() -> None:
    assert len(reliability.FIRST) == 65
    assert sorted(name for name in reliability.FIRST if CASES[name].verdict != "covered") == []


@pytest.mark.parametrize("kind", reliability.KINDS)
def test_the_tests_that_a_case_names_are_there(kind: str) -> None:
    named = [test for name, case in CASES.items() if name.startswith(kind) for test in case.tests]
    assert reliability.missing(named) == []


def test_no_case_of_a_kind_is_told_twice_in_the_same_words() -> None:
    assert [what for what, count in Counter(case.what for case in CASES.values()).items() if count > 1] == []


def test_every_promise_names_tests_that_are_there() -> None:
    promises = reliability.read(f"{reliability.FOLDER}/promises.toml")["promise"]
    assert [promise["promise"] for promise in promises if reliability.missing(promise["tests"])] == []


def test_the_page_is_what_its_sources_say() -> None:
    with open(reliability.PAGE, encoding="utf-8") as file:
        page = file.read()
    assert page == reliability.rendered(page), "`python -m benchmarks.reliability` brings it up to date"
