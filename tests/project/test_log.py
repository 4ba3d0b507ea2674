"""The log: what a person needs and no more, readable by them alone, and never a forged line."""

import io
import itertools
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from loguru import logger

from signet_sync import log

PROJECT = str(Path(log.__file__).parents[1])
SECRET = "sk-ant-1234567890"


@pytest.fixture(autouse=True)
def fresh():
    """No sink of one test reaches the next."""
    yield
    logger.remove()
    logger.configure(patcher=None)


@pytest.fixture
def stderr(capsys):
    """Gives a function that returns what stderr was told so far."""
    told = []

    def text():
        told.append(capsys.readouterr().err)
        return "".join(told)

    return text


@pytest.fixture
def set_up(tmp_path, stderr):
    """Sets the log up; gives a function that returns what the file holds."""

    def start(level="DEBUG", rotation_bytes=1_000_000, keep=3, **options):
        path = log.set_up(
            level, folder=str(tmp_path / "state/logs"), rotation_bytes=rotation_bytes, keep=keep, **options
        )
        return Path(path).read_text

    return start


def fail_with_local(text="no good"):
    password = SECRET
    if password:
        raise ValueError(text)


def test_the_file_and_stderr_tell_the_same(set_up, stderr):
    read = set_up()
    logger.info("indexed {} files", 3)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z INFO indexed 3 files\n", read())
    assert re.fullmatch(r"\d\d:\d\d:\d\d INFO    indexed 3 files\n", stderr())


def test_times_in_the_file_are_utc(set_up, monkeypatch):
    import time

    monkeypatch.setenv("TZ", "Asia/Kathmandu")
    time.tzset()
    try:
        read = set_up()
        before = time.time()
        logger.info("now")
        written, *bounds = (
            read()[:16],
            *(time.strftime("%Y-%m-%dT%H:%M", time.gmtime(at)) for at in (before, time.time())),
        )
        assert bounds[0] <= written <= bounds[1]
    finally:
        monkeypatch.undo()
        time.tzset()


def test_a_traceback_shows_no_local_values(set_up, stderr):
    read = set_up()
    try:
        fail_with_local()
    except ValueError:
        logger.exception("the pass failed")
    for text in (read(), stderr()):
        assert "the pass failed" in text and "ValueError: no good" in text and "in fail_with_local" in text
        assert "password = SECRET" not in text and SECRET not in text


def test_the_cause_of_an_error_is_told_too(set_up):
    read = set_up()
    try:
        try:
            fail_with_local()
        except ValueError as error:
            raise RuntimeError("later") from error
    except RuntimeError:
        logger.exception("failed")
    assert "ValueError: no good" in read() and "RuntimeError: later" in read() and SECRET not in read()


FORGED = "a.md\n2026-03-28T10:00:00.000Z INFO all is well\x1b[2J\r\x00\u202e\u2028\x85\udcff"


def test_control_characters_of_a_message_are_escaped(set_up, stderr):
    read = set_up()
    logger.warning("cannot read {}", FORGED)
    for text in (read(), stderr()):
        assert text.count("\n") == 1 and text[:-1].isprintable()
        assert r"a.md\n2026-03-28T10:00:00.000Z INFO all is well\x1b[2J\r\x00\u202e\u2028\x85\xff" in text


def test_control_characters_of_an_exception_are_escaped(set_up, stderr):
    read = set_up()
    try:
        fail_with_local(FORGED)
    except ValueError:
        logger.exception("failed")
    for text in (read(), stderr()):
        first, *lines = text.splitlines()
        assert (
            first.endswith("failed") and lines and all(line.startswith("    ") and line.isprintable() for line in lines)
        )


def test_braces_and_markup_in_a_message_are_only_text(set_up, stderr):
    read = set_up()
    logger.info("{}", "{time} {0} <red>no</red> %s")
    assert "{time} {0} <red>no</red> %s" in read() and "{time} {0} <red>no</red> %s" in stderr()


def test_the_log_is_rotated_and_old_files_go(set_up, tmp_path):
    set_up(rotation_bytes=10_000, keep=2)
    for number in range(600):
        logger.info("{} {}", number, "x" * 100)
    kept = list((tmp_path / "state/logs").iterdir())
    assert len(kept) == 3 and all(path.stat().st_size <= 10_000 for path in kept)
    assert "\n" in (tmp_path / "state/logs/signet-sync.log").read_text()


def test_a_permanent_error_is_told_a_few_times(set_up, stderr):
    set_up()
    read = set_up()  # once more: the sinks are replaced
    for _ in range(50):
        logger.error("the disk is full")
        logger.info("still running")
    assert read().count("the disk is full") == stderr().count("the disk is full") == 3
    assert read().count("still running") == 50


def record(message, number=40):
    class Level:
        no = number

    return {"level": Level, "name": "x", "line": 1, "message": message}


def test_the_limit_ends_with_its_time():
    now = [0.0]
    limited = log._Limited(every=600, burst=3, clock=lambda: now[0])
    assert [limited(record("a")) for _ in range(5)] == [True, True, True, False, False]
    now[0] = 600.0
    assert limited(record("a")) is False
    now[0] = 600.1
    assert [limited(record("a")) for _ in range(4)] == [True, True, True, False]
    assert all(limited(record("a", 20)) for _ in range(10))


def test_the_limit_forgets_rather_than_grows():
    limited = log._Limited(clock=itertools.count(step=60.0).__next__)
    for number in range(10_000):
        assert limited(record(f"error {number}"))
    assert len(limited._seen) <= 2002


JOURNAL = """if True:
    import os, sys
    from loguru import logger
    from signet_sync import log
    status = os.fstat(2)
    environ = {"JOURNAL_STREAM": f"{status.st_dev}:{status.st_ino}" if sys.argv[1] == "ours" else "1:2"}
    log.set_up("DEBUG", folder=None, rotation_bytes=10_000, keep=1, environ=environ)
    logger.debug("d")
    logger.info("i")
    logger.success("s")
    logger.warning("w")
    logger.error("e")
    logger.critical("c")
    logger.info("two\\nlines")
    try:
        1 / 0
    except ZeroDivisionError:
        logger.exception("failed")
"""


def journal(whose):
    command = [sys.executable, "-c", JOURNAL, whose]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": PROJECT}
    )
    return done.stderr.splitlines()


def test_the_journal_gets_levels_and_no_time():
    lines = journal("ours")
    assert lines[:7] == ["<7>d", "<6>i", "<5>s", "<4>w", "<3>e", "<2>c", r"<6>two\nlines"]
    assert lines[7] == "<3>failed" and lines[-1] == "<3>    ZeroDivisionError: division by zero"
    assert all(line.startswith("<3>") for line in lines[7:])


def test_an_inherited_journal_variable_does_not_count():
    """A terminal that a desktop's service started has the variable, but shows stderr to a person."""
    assert re.fullmatch(r"\d\d:\d\d:\d\d DEBUG   d", journal("another's")[0])


def test_colours_are_for_terminals_that_want_them(monkeypatch, tmp_path):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    for environ, coloured in (({}, True), ({"NO_COLOR": "1"}, False)):
        stream = Terminal()
        monkeypatch.setattr(sys, "stderr", stream)
        log.set_up("INFO", folder=None, rotation_bytes=10_000, keep=1, environ=environ)
        logger.error("here")
        assert "here" in stream.getvalue() and "\x1b[31m" not in stream.getvalue()
        assert coloured or "\x1b" not in stream.getvalue()
