"""What each harness sends in a session's life, as recorded from it: what it gets, and that none of that returns."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest
from artifacts_fixture import PROJECT
from workbench import Vault, cast

from signet_sync.capture.harnesses import registry
from signet_sync.formats.injected_block import BACKGROUND, CLOSING, OPENING
from signet_sync.storage import state_dir

TIME = "2026-03-29T10:00:00.000Z"
SESSION = "7a1b0c00-0000-4000-8000-00000000000b"
QUESTION = "Which table keeps the pictures of the kestrel index?"
ANSWER = "The kestrel index keeps its pictures in one table."
OWN = ("The retry loop gives up after five tries.", "Answer in British English")
SAID = "We polish the brass of the lamp on Fridays."

# What was injected at each step: "all" of the start's context, "lines" on the prompt, "" nothing; None: no such event.
GIVEN: dict[str, dict[str, str | None]] = {
    "claude-code": {"start": "all", "prompt": "lines", "resume": "", "compaction": "all"},
    "codex": {"start": "all", "prompt": "lines", "resume": "", "compaction": "all"},
    # Behind the words of the next prompt; it reports no compaction.
    "gemini": {"start": "all", "prompt": "lines", "resume": "", "compaction": None},
    # Into the system prompt of each request, which a compaction does not touch.
    "opencode": {"start": "all", "prompt": "lines", "resume": "all", "compaction": ""},
    # Into the files that each run begins with; no hook of ours is called at a prompt.
    "openclaw": {"start": "all", "prompt": None, "resume": "all", "compaction": ""},
}


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], Vault]:
    """Puts a vault of two projects and a preference into the folder of a test."""

    def make(vault: Vault) -> None:
        vault.session(
            1, body=f"# One\n\n## Decisions\n\n- {OWN[0]}\n", memory_sentence="A dead broker of lantern is borne."
        )
        kestrel = {"project": "/home/ada/code/kestrel", "memory_sentence": "Kestrel got its index."}
        vault.session(2, body=f"# Two\n\n## Decisions\n\n- {ANSWER}\n", **kestrel)
        vault.reindex()
        assert vault.call("remember", "--type", "preference", OWN[1]).code == 0

    return cast(tmp_path_factory.mktemp("cast"), make)


@pytest.fixture
def vault(tmp_path: Path, copied: Callable[[Path], Vault]) -> Vault:
    vault = copied(tmp_path)
    state_dir.write_heartbeat(state_dir.locate(str(vault.root)), {"state": "watching"})  # no worker is started
    return vault


def events(harness: str, step: str) -> list[dict[str, Any]]:
    """The documents that a harness sends at a step, without what all of them have."""
    return {
        "claude-code": {
            "start": [{"hook_event_name": "SessionStart", "source": "startup", "model": "m"}],
            "prompt": [
                {"hook_event_name": "UserPromptSubmit", "prompt_id": "p-1", "permission_mode": "default",
                 "prompt": QUESTION},
            ],
            "resume": [
                {"hook_event_name": "SessionStart", "source": "resume", "seconds_since_last_response": 2,
                 "context_tokens": 1020, "prompt_cache_likely_expired": False, "estimated_cache_write_usd": 0.006},
            ],
            "compaction": [
                {"hook_event_name": "SessionStart", "source": "compact", "prompt_id": "p-2", "model": "m"},
                {"hook_event_name": "PostCompact", "prompt_id": "p-2", "trigger": "manual",
                 "compact_summary": "<summary>A lamp.</summary>"},
            ],
            "end": [{"hook_event_name": "SessionEnd", "prompt_id": "p-2", "reason": "other"}],
        },
        "codex": {
            "start": [{"hook_event_name": "SessionStart", "model": "m", "permission_mode": "p", "source": "startup"}],
            "prompt": [
                {"hook_event_name": "UserPromptSubmit", "turn_id": "t-1", "model": "m", "permission_mode": "p",
                 "prompt": QUESTION},
            ],
            "resume": [{"hook_event_name": "SessionStart", "model": "m", "permission_mode": "p", "source": "resume"}],
            "compaction": [
                {"hook_event_name": "PostCompact", "turn_id": "t-2", "model": "m", "trigger": "auto"},
                {"hook_event_name": "SessionStart", "model": "m", "permission_mode": "p", "source": "compact"},
            ],
            "end": [{"hook_event_name": "SessionEnd", "reason": "other"}],
        },
        "gemini": {
            "start": [
                {"hook_event_name": "SessionStart", "timestamp": TIME, "source": "startup"},
                {"hook_event_name": "BeforeAgent", "timestamp": TIME, "prompt": "Hello"},
            ],
            "prompt": [{"hook_event_name": "BeforeAgent", "timestamp": TIME, "prompt": QUESTION}],
            "resume": [
                {"hook_event_name": "SessionStart", "timestamp": TIME, "source": "resume"},
                {"hook_event_name": "BeforeAgent", "timestamp": TIME, "prompt": "Hello again"},
            ],
            "compaction": [],
            "end": [{"hook_event_name": "SessionEnd", "timestamp": TIME, "reason": "exit"}],
        },
        "opencode": {
            "start": [{"hook_event_name": "SessionStart", "source": "startup"}],
            "prompt": [{"hook_event_name": "UserPromptSubmit", "prompt": f'"{QUESTION}"'}],
            "resume": [{"hook_event_name": "SessionStart", "source": "startup"}],
            "compaction": [{"hook_event_name": "PostCompact"}],
            "end": [{"hook_event_name": "SessionEnd"}],
        },
        "openclaw": {
            "start": [{"hook_event_name": "SessionStart", "session_key": "agent:main:main"}],
            "prompt": [],
            "resume": [{"hook_event_name": "SessionStart", "session_key": "agent:main:main"}],
            "compaction": [{"hook_event_name": "PostCompact", "session_key": "agent:main:main"}],
            "end": [{"hook_event_name": "SessionEnd", "session_key": "agent:main:main"}],
        },
    }[harness][step]  # fmt: skip


def fire(vault: Vault, harness: str, transcript: Path, document: dict[str, Any]) -> str:
    """The text that the harness takes from our answer."""
    given = {"session_id": SESSION, "transcript_path": str(transcript), "cwd": PROJECT, **document}
    answer = vault.hook(harness, "--strict", given=json.dumps(given).encode())
    assert (answer.code, answer.err) == (0, ""), answer
    if harness not in ("claude-code", "codex", "gemini"):
        return answer.out
    hooked = json.loads(answer.out or "{}").get("hookSpecificOutput", {"additionalContext": ""})
    return str(hooked["additionalContext"])


def written(harness: str, folder: Path, texts: list[str]) -> Path:
    """The transcript as the harness writes it, with what it got."""
    path = folder / ("opencode.db" if harness == "opencode" else f"{SESSION}.jsonl")
    if harness == "opencode":
        stored(path)
    else:
        lines = (json.dumps({"timestamp": TIME} | one) + "\n" for one in records(harness, texts))
        path.write_text("".join(lines))
    return path


def records(harness: str, texts: list[str]) -> Iterator[dict[str, Any]]:
    if harness == "claude-code":
        shared = {"sessionId": SESSION, "cwd": PROJECT, "isSidechain": False}
        for text in texts:
            output = json.dumps({"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": text}})
            for kind, more in (("hook_success", {"stdout": output}), ("hook_additional_context", {"content": [text]})):
                yield {"type": "attachment", "attachment": {"type": kind, "hookEvent": "SessionStart", **more}} | shared
            block = {"type": "text", "text": f"SessionStart hook additional context: {text}"}
            yield {"type": "api-request-blob", "hash": "0", "message": {"role": "system", "content": [block]}} | shared
        yield {"type": "user", "uuid": "u-1", "message": {"role": "user", "content": SAID}} | shared
    elif harness == "codex":
        yield {"type": "session_meta", "payload": {"id": SESSION, "cwd": PROJECT}}
        for role, text in (*(("developer", text) for text in texts), ("user", SAID)):
            content = [{"type": "input_text", "text": text}]
            yield {"type": "response_item", "payload": {"type": "message", "role": role, "content": content}}
    elif harness == "gemini":
        yield {"sessionId": SESSION, "projectHash": "0", "startTime": TIME, "lastUpdated": TIME, "kind": "main"}
        for number, text in enumerate(texts):
            escaped = text.replace("<", "&lt;").replace(">", "&gt;")
            parts = [{"text": SAID if not number else "More."}, {"text": f"<hook_context>{escaped}</hook_context>"}]
            yield {"id": f"m-{number}", "type": "user", "content": parts}
    else:
        yield {"type": "session", "version": 3, "id": SESSION, "cwd": PROJECT}
        yield {"type": "message", "id": "m-1", "message": {"role": "user", "content": f"{texts[0]}\n{SAID}"}}


def stored(path: Path) -> None:
    """OpenCode's store; what a session got is in no row of it."""
    with apsw.Connection(str(path)) as rows:
        rows.execute(
            "create table session (id, parent_id, directory, title, revert, time_created, time_updated);"
            "create table message (id, session_id, time_created, time_updated, data);"
            "create table part (id, message_id, session_id, time_created, time_updated, data);"
        )
        rows.execute(
            "insert into session values (?, null, ?, 'x', null, 1774778400000, 1774778400000)", (SESSION, PROJECT)
        )
        data = json.dumps({"role": "user", "time": {"created": 1_774_778_400_000}})
        rows.execute("insert into message values ('m', ?, 1774778400000, 1774778400000, ?)", (SESSION, data))
        part = json.dumps({"type": "text", "text": SAID})
        rows.execute("insert into part values ('p', 'm', ?, 1774778400000, 1774778400000, ?)", (SESSION, part))


def test_every_harness_is_here() -> None:
    assert tuple(sorted(GIVEN)) == registry.names()


@pytest.mark.parametrize("harness", GIVEN)
def test_a_session_gets_what_it_should_and_none_of_it_returns(vault: Vault, tmp_path: Path, harness: str) -> None:
    path = written(harness, tmp_path, ["not yet"])
    got: list[str] = []
    for step, expected in GIVEN[harness].items():
        text = "".join(fire(vault, harness, path, one) for one in events(harness, step))
        assert bool(events(harness, step)) == (expected is not None)
        assert text.strip() == "" or (text.startswith(OPENING) and text.rstrip("\n").endswith(CLOSING)), step
        assert all((one in text) == (expected == "all") for one in OWN), step
        assert ("=== What memory holds on this ===" in text and ANSWER in text) == (expected == "lines"), step
        assert bool(text.strip()) == bool(expected), step
        got += filter(None, [text.rstrip("\n")])

    before = set(vault.memory.iterdir())
    path.unlink()
    written(harness, tmp_path, got)
    (end,) = events(harness, "end")
    assert fire(vault, harness, path, end).strip() == ""
    assert vault.call("session", "take-spool").code == 0
    new = {found.name: found.read_text() for found in set(vault.memory.iterdir()) - before}
    assert any(SAID in text for text in new.values()), new
    for name, text in new.items():
        assert not any(one in text for one in (*OWN, ANSWER, OPENING, BACKGROUND)), name
    assert not any(BACKGROUND in str(row) or "signet-memory" in str(row) for row in vault.dump())
