"""The log: what a person needs and no more, readable by them alone, and never a forged line."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from loguru import logger

from signet_sync import log

SAID = "what somebody said"  # no form of a secret: nothing redacts it


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """No sink of one test reaches the next."""
    yield
    logger.remove()
    logger.configure(patcher=None)


Look = Callable[[], tuple[str, str]]


@pytest.fixture
def begin(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[[], Look]:
    """Sets the log up; gives a function that returns what the file holds, and what stderr was told since."""

    def start() -> Look:
        log.set_up("DEBUG", folder=str(tmp_path / "logs"))
        return lambda: ((tmp_path / "logs/signet-sync.log").read_text(), capsys.readouterr().err)

    return start


def fail_with_local(text: str = "no good") -> None:
    said = SAID
    raise ValueError(text if said else "")  # loguru's diagnosis shows the values of a line that raises


def test_file_and_stderr_tell_the_same_and_the_files_times_are_utc(
    begin: Callable[[], Look], monkeypatch: pytest.MonkeyPatch
) -> None:
    told = begin()
    with monkeypatch.context() as machine:
        machine.setenv("TZ", "Asia/Kathmandu")
        time.tzset()
        before = time.time()
        logger.info("indexed {} files", 3)
        bounds = [time.strftime("%Y-%m-%dT%H:%M", time.gmtime(at)) for at in (before, time.time())]
    time.tzset()
    kept, shown = told()
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z INFO indexed 3 files\n", kept)
    assert bounds[0] <= kept[:16] <= bounds[1]
    assert re.fullmatch(r"\d\d:\d\d:\d\d INFO    indexed 3 files\n", shown)


FORGED = "a.md\n2026-03-28T10:00:00.000Z INFO all is well\x1b[2J\r\x00\u202e\u2028\x85\udcff"


def test_a_traceback_tells_of_its_cause_and_of_no_local_value_each_line_marked(begin: Callable[[], Look]) -> None:
    told = begin()
    try:
        try:
            fail_with_local(FORGED)
        except ValueError as error:
            raise RuntimeError("later") from error
    except RuntimeError:
        logger.exception("the pass failed")
    for text in told():
        first, *lines = text.splitlines()
        assert first.endswith("the pass failed") and lines
        assert all(line.startswith("    ") and line.isprintable() for line in lines)
        assert all(part in text for part in ("ValueError: a.md", "RuntimeError: later", "in fail_with_local"))
        assert SAID not in text


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        (FORGED, r"a.md\n2026-03-28T10:00:00.000Z INFO all is well\x1b[2J\r\x00\u202e\u2028\x85\xff"),
        ("{time} {0} <red>no</red> %s", "{time} {0} <red>no</red> %s"),
    ],
)
def test_control_characters_braces_and_markup_are_only_text(begin: Callable[[], Look], given: str, shown: str) -> None:
    told = begin()
    logger.warning("cannot read {}", given)
    for text in told():
        assert text.count("\n") == 1 and text[:-1].isprintable() and shown in text


def test_the_log_is_rotated_and_old_files_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "ROTATION_BYTES", 10_000)
    monkeypatch.setattr(log, "KEEP", 2)
    log.set_up("DEBUG", folder=str(tmp_path))
    for number in range(600):
        logger.info("{} {}", number, "x" * 100)
    kept = list(tmp_path.glob("*log*"))
    assert len(kept) == 3 and all(path.stat().st_size <= 10_000 for path in kept)
    assert "\n" in (tmp_path / "signet-sync.log").read_text()
