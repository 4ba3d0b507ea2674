"""A transcript becomes artifacts: what is new since the last segment, each compaction once, on every machine alike."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from session_inputs import everything, fields, segments, sound, written
from transcript_builder import TranscriptBuilder, micros, turns_of
from workbench import Vault

from signet_sync.app.workspace import open_to_write
from signet_sync.capture import capture
from signet_sync.capture import transcripts as stores_transcripts
from signet_sync.capture.capture import CaptureResult
from signet_sync.capture.harnesses.markdown import render
from signet_sync.settings.model import Settings
from signet_sync.sync.workspace import Workspace
from signet_sync.text.sanitizer import sanitize_transcript_v2

NOW = micros(86_400)


class Desk:
    """A vault whose workspace is open, and the transcripts that are captured into it."""

    def __init__(self, vault: Vault, workspace: Workspace) -> None:
        self.vault = vault
        self.workspace = workspace

    def take(self, talk: TranscriptBuilder | Path, harness: str = "claude-code", **given: Any) -> CaptureResult:
        path = talk.path if isinstance(talk, TranscriptBuilder) else talk
        (source,) = stores_transcripts.sources(harness, where=str(path))
        return capture.capture(self.workspace, source, **{"now_us": NOW, "agent_id": None, "propose": None, **given})

    def whole(self, talk: TranscriptBuilder) -> str:
        """What the transcript says, all of it, as it would be written."""
        (source,) = stores_transcripts.sources(talk.harness, where=str(talk.path))
        return sanitize_transcript_v2(render(capture.read(source).entries))


@pytest.fixture
def desk(vault: Vault) -> Iterator[Desk]:
    with open_to_write(str(vault.root), Settings()) as workspace:
        yield Desk(vault, workspace)


@pytest.fixture
def talk(tmp_path: Path) -> TranscriptBuilder:
    return TranscriptBuilder(tmp_path / "transcripts")


def transcripts(vault: Vault) -> list[str]:
    return written(vault, "transcript")


def kept(vault: Vault) -> dict[str, Any]:
    """All that stands on disk but the database, where it is noted that a transcript was read."""
    return {path: found for path, found in everything(vault).items() if "/signet-sync.db" not in path}


def told_once(desk: Desk, talk: TranscriptBuilder) -> None:
    """The segments, one after the other, say what the whole transcript says: no overlap, no gap."""
    said = [line for text in segments(desk.vault) for line in turns_of(text)]
    assert said == list(turns_of(desk.whole(talk)))


def test_a_rewind_between_two_captures_keeps_what_was_written(desk, talk, vault):
    talk.exchange(1)
    fork = talk.tip
    talk.user("A path that is left again: abandonedword.", 20)
    talk.assistant("I went along it: abandonedanswer.", 21)
    desk.take(talk)
    talk.tip = fork
    talk.user("The other path: chosenword.", 40)
    talk.assistant("This one holds: chosenanswer.", 41)
    desk.take(talk)
    first, second = segments(vault)
    assert "abandonedword" in first and "question1word" in first
    assert list(turns_of(second)) == ["The other path: chosenword.", "This one holds: chosenanswer."]
    assert not desk.take(talk).has_written
    sound(vault)


@settings(max_examples=max(5, settings.default.max_examples // 3))
@given(steps=st.lists(st.tuples(st.integers(0, 2), st.sampled_from("uacr"), st.booleans()), min_size=1, max_size=12))
def test_wherever_it_was_captured_the_segments_are_the_whole(tmp_path_factory, steps):
    folder = tmp_path_factory.mktemp("grown")
    vault, talk = Vault(folder / "vault"), TranscriptBuilder(folder / "transcripts")
    talk.user("Begin.", 0)
    with open_to_write(str(vault.root), Settings()) as workspace:
        desk = Desk(vault, workspace)
        second = 0
        for number, (later, kind, captured) in enumerate(steps):
            second += later
            if kind == "u":
                talk.user(f"Said {number}.", second)
            elif kind == "a":
                talk.assistant(f"Answered {number}.", second)
            elif kind == "c":
                talk.call(f"run {number}", second, f"c{number}")
            else:
                talk.result(f"got {number}", second, f"c{number - 1}")
            if captured:
                desk.take(talk)
        desk.take(talk)
        assert not desk.take(talk).has_written
        text = "\n".join(segments(vault))
        for number, (_, kind, _) in enumerate(steps):
            word = {
                "u": f"Said {number}.", "a": f"Answered {number}.", "c": f"`run {number}`", "r": f"got {number}",
            }  # fmt: skip
            assert [line.rpartition(" · ")[2].strip() for line in text.splitlines()].count(word[kind]) == 1, (
                word[kind],
                text,
            )


def test_several_compactions_are_as_many_artifacts_and_no_segment(desk, talk, vault):
    for number in range(1, 4):
        talk.exchange(number, 1000 * number)
        talk.compacted(f"Summary {number}.", 1000 * number + 500)
    done = desk.take(talk, end=False)
    assert len(done.compactions) == 3 and not desk.take(talk, end=False).has_written
    assert transcripts(vault) == [] and written(vault, "summary") == []
    assert segments(vault, "compaction") == ["Summary 1.", "Summary 2.", "Summary 3."]
    talk.path.write_text(talk.path.read_text().replace("Summary 3.", "In other words."))  # as a later parser has it
    assert desk.take(talk).compactions == []
    told_once(desk, talk)
    sound(vault)


def long_talk(talk: TranscriptBuilder, count: int, words: int = 400) -> None:
    for number in range(count):
        text = " ".join(f"w{number}x{word}" for word in range(words))
        (talk.assistant if number % 2 else talk.user)(text, number / 2 // 1)


# Fewer words in as many segments show the same.
@pytest.mark.parametrize(("turns", "limit"), [(20, 10_000), pytest.param(400, 100_000, marks=pytest.mark.slow)])
def test_a_long_session_becomes_several_segments_each_below_the_limit(vault, talk, turns, limit):
    long_talk(talk, turns, limit // 40 if limit < 20_000 else 400)
    assert talk.path.stat().st_size > 4 * limit
    with open_to_write(str(vault.root), Settings(max_file_bytes=limit)) as workspace:
        desk = Desk(vault, workspace)
        done = desk.take(talk)
        assert 4 < len(done.segments) < 40
        told_once(desk, talk)
        assert not desk.take(talk).has_written
    sizes = [(vault / path).stat().st_size for path in transcripts(vault)]
    assert max(sizes) <= limit
    ends = [fields(vault, path)["ended_at"] for path in transcripts(vault)]
    starts = [fields(vault, path)["started_at"] for path in transcripts(vault)]
    assert all(end < start for end, start in zip(ends, starts[1:], strict=False))
    assert [fields(vault, path)["captured_at"] for path in transcripts(vault)] == ends


def test_a_crash_between_two_segments_loses_nothing(vault, talk, monkeypatch):
    long_talk(talk, 70, 60)
    real, calls = capture.sessions_operations.write, []

    def dying(*arguments: Any, **given: Any) -> Any:
        if len(calls) == 2:
            raise MemoryError
        calls.append(1)
        return real(*arguments, **given)

    with open_to_write(str(vault.root), Settings(max_file_bytes=15_000)) as workspace:
        desk = Desk(vault, workspace)
        with monkeypatch.context() as patch, pytest.raises(MemoryError):
            patch.setattr(capture.sessions_operations, "write", dying)
            desk.take(talk)
        assert len(transcripts(vault)) == 2
        # The session went on meanwhile.
        talk.exchange(1, 500)
        desk.take(talk)
        told_once(desk, talk)
