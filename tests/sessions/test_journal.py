"""The journal's door: durable before anything is written, held while its writer lives, taken over when it is dead."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from agents import until
from workbench import ROOT

from signet_sync.sessions import journal

KEY, OTHER, THIRD = "0" * 31 + "1", "0" * 31 + "2", "a" * 32
DOCUMENT: dict[str, Any] = {"v": 1, "words": "Straße — 🙂 \ud800 \x01", "none": None, "list": [1, {"a": "b"}]}

# Another process that begins (or takes) a flow, says so, and then waits to be killed.
HOLDER = """
import sys
from signet_sync.sessions import journal
folder, key, how = sys.argv[1:]
held = journal.begin(folder, key, {"v": 1, "by": "holder"}) if how == "begin" else journal.take(folder, key)
print("held" if held is not None else "none", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def folder(tmp_path: Path) -> str:
    return str(tmp_path / "state" / "journal")


@contextmanager
def holder(folder: str, key: str, how: str = "begin") -> Iterator[subprocess.Popen[str]]:
    """A living process that holds a flow."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, folder, key, how],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None and process.stdout.readline() == "held\n"
        yield process
    finally:
        process.kill()
        process.communicate()


def files(folder: str) -> list[str]:
    return sorted(os.listdir(folder))


def test_what_is_begun_comes_back_whole_and_is_gone_when_finished(folder):
    held = journal.begin(folder, KEY, DOCUMENT)
    assert held.path == f"{folder}/{KEY}.json"
    held.release()
    again = journal.take(folder, KEY)
    assert again is not None
    assert again.document == DOCUMENT | {"words": again.document["words"]}
    assert again.document["words"].startswith("Straße — 🙂 ")
    again.finish()
    assert files(folder) == [] and journal.keys(folder) == []
    assert journal.take(folder, KEY) is None
    again.finish()  # somebody else may have dropped it meanwhile


def test_flows_are_listed_oldest_first_and_nothing_else_is(folder):
    for number, key in enumerate((THIRD, KEY, OTHER)):
        held = journal.begin(folder, key, DOCUMENT)
        os.utime(held.path, ns=(number, number))
        held.release()
    for name in ("notes.json", f"{KEY}.json.77.tmp", f"{KEY.upper()}x.json", f"x{KEY}.json"):
        Path(folder, name).write_text("{}")
    assert journal.keys(folder) == [THIRD, KEY, OTHER]
    assert journal.keys(f"{folder}/none") == []


@pytest.mark.parametrize("how", ["begin", "take"])
def test_a_living_holder_is_left_alone_and_a_dead_one_is_taken_over(folder, how):
    if how == "take":
        journal.begin(folder, KEY, {"v": 1, "by": "holder"}).release()
    with holder(folder, KEY, how) as process:
        assert journal.keys(folder) == [KEY]
        assert journal.take(folder, KEY) is None
        with pytest.raises(BlockingIOError, match=KEY):
            journal.begin(folder, KEY, DOCUMENT)
        process.send_signal(signal.SIGSTOP)  # a holder that is only slow
        assert journal.take(folder, KEY) is None
        process.kill()
        process.wait()
        held = journal.take(folder, KEY)
        assert held is not None and held.document == {"v": 1, "by": "holder"}
        held.finish()


def test_a_child_of_the_holder_does_not_hold_on(folder):
    """A program that a flow starts (a model's, git) may outlive it."""
    held = journal.begin(folder, KEY, DOCUMENT)
    child = subprocess.Popen(
        [sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE, close_fds=False
    )
    held.release()
    # The kernel closes the child's copies a moment after it has become another program.
    until(lambda: journal.take(folder, KEY), "free though the child lives").finish()
    child.communicate()


# ── replacing, damage, dropping ──


def test_an_abandoned_flow_is_begun_anew(folder):
    journal.begin(folder, KEY, {"v": 1, "words": "old"}).release()
    held = journal.begin(folder, KEY, {"v": 1, "words": "new"})
    assert journal.take(folder, KEY) is None  # the new one is held, not the old one
    held.release()
    again = journal.take(folder, KEY)
    assert again is not None and again.document["words"] == "new"
    again.finish()
    assert files(folder) == []


DAMAGED = {"empty": b"", "cut off": b'{"v": 1, "words": "a', "no object": b"[1]", "not UTF-8": b'{"v": "\xff"}'}


@pytest.mark.parametrize("what", DAMAGED)
def test_a_damaged_flow_is_named_and_left_until_a_caller_has_the_words_again(folder, what):
    os.makedirs(folder)
    place = Path(folder, f"{KEY}.json")
    place.write_bytes(DAMAGED[what])
    with pytest.raises(ValueError, match=KEY):
        journal.take(folder, KEY)
    assert place.read_bytes() == DAMAGED[what] and journal.keys(folder) == [KEY]
    journal.begin(folder, KEY, {"v": 1}).release()
    held = journal.take(folder, KEY)
    assert held is not None and held.document == {"v": 1}
    held.finish()


def test_dropping_takes_what_is_unwanted_and_what_nobody_can_read(folder):
    for key, token in ((KEY, "a"), (OTHER, "b")):
        journal.begin(folder, key, {"v": 1, "token": token}).release()
    Path(folder, f"{THIRD}.json").write_bytes(b"{")
    journal.drop(folder, lambda document: document["token"] == "a")
    assert files(folder) == [f"{OTHER}.json"]
    journal.drop(folder, lambda document: False)
    journal.drop(f"{folder}/none", lambda document: True)
    assert files(folder) == [f"{OTHER}.json"]
