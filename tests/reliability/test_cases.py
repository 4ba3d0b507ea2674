"""Every case of the fault matrix is on its page with tests that exist; the pages are what their sources say."""

from __future__ import annotations

import os
from collections import Counter
from fnmatch import fnmatchcase

import pytest

from benchmarks import reliability

CASES = reliability.cases()
PROMISES = reliability.read(f"{reliability.FOLDER}/promises.toml")["promise"]
TOLD = reliability.figures()["told"]


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
    assert [promise["promise"] for promise in PROMISES if reliability.missing(promise["tests"])] == []


def test_every_promise_has_figures_that_its_tests_count() -> None:
    wrong = []
    for promise in PROMISES:
        told = [figure for test in promise["tests"] for figure in reliability.of_test(TOLD, test)]
        for name in reliability.NAME.findall(" ".join(promise["figures"])):
            if told and not any(fnmatchcase(figure["what"], name) for figure in told):
                wrong.append(f"{promise['promise']}: {name}")
    assert wrong == [] and all(promise["figures"] for promise in PROMISES)


@pytest.mark.parametrize("path", reliability.PAGES, ids=os.path.basename)
def test_a_page_is_what_its_sources_say(path: str) -> None:
    with open(path, encoding="utf-8") as file:
        assert file.read() == reliability.PAGES[path](), "`python -m benchmarks.reliability` brings it up to date"


def test_the_pages_link_to_every_test_of_a_promise_or_case() -> None:
    for path, given in (
        (reliability.PAGE, [test for promise in PROMISES for test in promise["tests"]]),
        (reliability.TABLES, [test for case in CASES.values() for test in case.tests]),
    ):
        with open(path, encoding="utf-8") as file:
            page = file.read()
        assert [test for test in given if reliability.link(test) not in page] == []
