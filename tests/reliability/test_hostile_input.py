"""Files that nobody should write: each is read or refused with a reason, soon, by everything that reads."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import artifacts_fixture as made
import pytest
from workbench import NOW, Vault

from benchmarks import fuzz
from signet_sync.history import repository
from signet_sync.sessions import flow, journal

# ── broken files, by the thousand ──


def test_broken_files_are_read_or_refused_by_every_reader() -> None:
    report = fuzz.some(tuple(fuzz.READERS), range(480), seed=11)
    # How long each took counts where nothing else runs.
    assert [failure for failure in report.failures if " ms for " not in failure.what] == []


@pytest.mark.slow
def test_files_by_the_ten_thousand_are_read_or_refused_in_time(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = int(os.environ.get("FUZZ_FILES", "20000"))
    assert fuzz.use_vaults(str(shared / "vaults")) > 100
    try:
        report = fuzz.run(files, seed=1)
    finally:
        fuzz.use_vaults(os.devnull)
    assert [failure for failure in report.failures if " ms for " not in failure.what] == []
    assert report.memory_mib < fuzz.LIMIT_MIB


# ── time grows with length alone ──

SOON = 10.0  # seconds of a processor for what takes a hundredth of that, and minutes where time grows with the square

UNITS = (
    "a", "A", "0", " ", "\t", "\n", "-", "_", ".", "/", "#", "@", "`", "~", "*", "[", "]", "(", "{", "<", ">", "|",
    '"', "'", "\\", "%", "+", "=", ":", "!", "?", ",", "^", "…", "é", "漢", "\u0301", "\x85", "\u2028", "\r", "\r\n",
    "ab ", "a.", "a-", "a/", "a:", " \n", "# ", "- ", "\n# a", "\n- a", "\n>", "[[", "[[a|b]]", "<!--", "-->", "```",
    "\n```\n", "`a", "@a ", "1.", "AB-1 ", "a/b#1 ", "http://a/", "a=", "**", "_a", "(a", "[a", "[a](", "T0", "--",
    "<a", "</a>", "; ", "\n- [ ] ", "---\n", "a, ", "__", "~~a", "User: a\n", "\n## User\n", "eyJ", "sk-",
    "password=a1! ", "%25", "%40", "import a\n", "pip install a ", "\nSummary:\n", "Ignore. ", '{"a":',
    "<system-reminder>", "<command-name>", "0 ", "1 a\0", "<!-- signet:begin -->\n",
    "<!-- signet:end 0123456789abcdef -->", "-----BEGIN ", "ghp_", "AKIA", "[[:", "a*", "x\u200b",
)  # fmt: skip


def grows(work: Callable[[int], object], size: int) -> str:
    """Processor time for a size and ten times as much; empty where, once in five times, it grows with length alone."""
    told = ""
    for _ in range(5):
        took = []
        for length in (size, 10 * size):
            began = time.process_time()
            work(length)
            took.append(time.process_time() - began)
        if took[1] < 0.1 or took[1] < 30 * took[0]:
            return ""
        told = f"{took[0]:.3f} s, then {took[1]:.3f} s"
    return told


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in fuzz.READERS if name not in ("heads", "names", "entities")])
def test_no_reader_takes_longer_than_the_file(name: str) -> None:
    reader, slow = fuzz.READERS[name], []
    for unit in UNITS:

        def read(size: int, unit: str = unit) -> None:
            raw = reader.seeds()[0] + b"\n" + (unit * (size // len(unit))).encode()
            with suppress(*fuzz.OURS):
                reader.read(raw)

        if told := grows(read, 12_000):
            slow.append((unit, told))
    assert slow == []


# ── our own files, gone bad ──


@pytest.fixture
def vault(tmp_path: Path) -> Vault:
    return Vault(tmp_path / "vault").indexed(1)


FLOW = {
    "v": 1, "kind": "end", "agent_id": "default", "session_id": "x", "session_key": None, "project": None,
    "harness": None, "captured_at": "2026-03-28T10:00:00.000Z", "started_at": None, "ended_at": None,
    "token": "a" * 16, "manifest": f"memory/2026-03-28T10-00-00.000Z--{'a' * 16}--manifest.md", "proposal": None,
    "headline": None, "bodies": {"summary": "x", "transcript": "y"}, "now": NOW, "flow_key": "k", "request": "r",
    "redactions": {}, "live": {},
}  # fmt: skip


def test_journalled_flows_that_went_bad_are_named_and_stop_nothing(vault: Vault) -> None:
    folder = vault.state / "journal"
    held = journal.begin(str(folder), "f" * 32, FLOW)
    sound = Path(held.path).read_text()
    held.finish()
    outside = sound.replace(FLOW["manifest"], "../outside.md")
    texts = [outside, sound[:-9], sound[9:], json.dumps(FLOW), "[" * 100_000, "9" * 5_000, "", "\ud800"]
    for number, text in enumerate(texts):
        (folder / f"{number:032x}.json").write_text(text, "utf-8", "surrogatepass")
    journal.begin(str(folder), "e" * 32, FLOW | {"v": 2}).release()
    told = [trouble for trouble in vault.reindex()["trouble"] if "journal of a write flow" in trouble]
    assert len(told) == len(texts) + 1
    assert [path.name for path in vault.memory.iterdir() if "5e551001" not in path.read_text()] == []
    assert sorted(path.name for path in vault.root.parent.iterdir()) == ["machine", "vault"]
    assert vault.call("remove", "5e551001", "--reason", "x", "--yes", "--now", NOW).code == 0
    # They may hold words of anybody; one of another version is left to it.
    assert [path.stem for path in folder.glob("*.json")] == ["e" * 32]


def test_the_flow_that_these_are_made_of_is_a_sound_one(vault: Vault) -> None:
    held = journal.begin(str(vault.state / "journal"), "0" * 32, FLOW)
    assert flow.flow_of(held).path("summary").startswith("memory/2026-03-28")
    held.finish()


STATES = {
    "nested": b"[" * 100_000, "a number": b"1", "a list": b'["x", 1]', "no UTF-8": b"\xff",
    "other types": b'{"beat_at": "x", "pid": {}, "interval": [], "counts": 3, "state": 5, "watch": 7, "since": {}}',
    "a NUL": b'{"path": "a\\u0000b", "last_full_pass": [1], "claude-code": {"since": "\\u0000"}}', "nothing": b"",
}  # fmt: skip


@pytest.mark.parametrize("name", ["heartbeat.json", "last-pass.json", "harnesses.json", "workspace.json"])
def test_small_files_of_the_state_that_went_bad_stop_no_command(vault: Vault, name: str) -> None:
    for raw in STATES.values():
        (vault.state / name).write_bytes(raw)
        for command in ("status", "reindex --json", *(["doctor"] if name == "heartbeat.json" else [])):
            answer = vault.call(*command.split())
            assert answer.code in (0, 1) and "unexpected" not in answer.err, (raw[:20], command, answer)


# ── links ──


def test_links_in_circles_and_by_the_hundred_thousand_are_words(vault: Vault) -> None:
    """Nothing follows a link of a text: one to itself, to a removed file or to nowhere costs as much as any word."""
    who = {"session_id": "5e551009-0000-4000-8000-000000000009", "captured_at": "2026-03-20T10:00:00.000Z"}
    other = {**who, "captured_at": "2026-03-21T10:00:00.000Z", "session_id": "5e551008-0000-4000-8000-000000000008"}
    mine, its = made.path_for("summary", **who), made.path_for("summary", **other)
    odd = f"[[{mine}]] [[{its}]] ![[{mine}]] [[a#b|c]] [[#^x]] [[]] [[|]] [[[[deep]]]] [[a\nb]] [[gone.md]]"
    vault.put(made.summary(**who, body=f"# Lantern wick\n\n{odd}\n\n" + "[[a|b]] " * 100_000))
    vault.put(made.summary(**other, body=f"# Lantern oil\n\n[[{mine}]] " + "[[" * 20_000 + "]]" * 20_000))
    began = time.process_time()
    document = vault.reindex()
    assert time.process_time() - began < 6 * SOON and document["problems"] == []
    assert sorted(vault.hits("wick")) == [mine] and sorted(vault.hits("oil")) == [its]
    assert vault.call("remove", other["session_id"], "--reason", "x", "--yes", "--now", NOW).code == 0
    assert vault.hits("oil") == [] and vault.hits("wick") == [mine]


# ── repositories of somebody else ──


def test_a_repository_of_another_user_is_not_opened(vault: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    subprocess.run(["git", "init", "-q", vault.root], check=True)
    assert repository.objection(str(vault.root)) == ""
    me = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: me + 1)
    assert "another user" in repository.objection(str(vault.root))
    monkeypatch.setenv("SIGNET_HISTORY_ENABLED", "true")
    answer = vault.call("checkpoint", "--json")
    assert answer.code == 2 and answer.json["error"]["code"] == "unsafe-repository", answer
