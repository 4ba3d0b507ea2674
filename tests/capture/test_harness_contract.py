"""What every harness must do, the invented one too: hooks, parser, import, and that nothing of ours returns."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Callable
from contextlib import chdir
from functools import cache
from pathlib import Path
from typing import Any

import harness_samples
import pytest
from harness_samples import PROJECT, SESSION, Turn, has, require, sample
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from transcripts import assert_sound, hostile, jsonl
from workbench import NOW, Vault, cast, contents

from signet_sync.admin import hooks_install
from signet_sync.capture import transcripts
from signet_sync.capture.harnesses import registry
from signet_sync.capture.harnesses.opencode.transcript import MessageRow
from signet_sync.capture.harnesses.reader import parse_line
from signet_sync.formats.managed_block import BACKGROUND, CLOSING, OPENING
from signet_sync.formats.timestamps import parse_instant
from signet_sync.host.harness_settings.settings_text import Condition
from signet_sync.storage import state_dir

QUESTION = "Which table keeps the pictures of the kestrel index?"
ANSWER = "The kestrel index keeps its pictures in one table."
OWN = ("The retry loop gives up after five tries.", "Answer in British English")
SAID = "We polish the brass of the lamp on Fridays."


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
        with chdir(vault.root):  # in no repository: of every project
            assert vault.call("remember", "--type", "preference", OWN[1]).code == 0

    return cast(tmp_path_factory.mktemp("cast"), make)


@pytest.fixture
def vault(tmp_path: Path, copied: Callable[[Path], Vault]) -> Vault:
    vault = copied(tmp_path)
    state_dir.write_heartbeat(state_dir.locate(str(vault.root)), {"state": "watching"})  # no worker is started
    return vault


def require_hooks(harness: str) -> None:
    if harness not in registry.list_hooked():
        pytest.skip(f"{harness} has no hooks: its sessions are imported")


def fire(vault: Vault, harness: str, transcript: Path, document: dict[str, Any]) -> str:
    """The text that the harness takes from our answer."""
    prompt = {"prompt": document["prompt"].replace("{prompt}", QUESTION)} if "prompt" in document else {}
    path = {"transcript_path": str(transcript)} if has(harness, "path") else {}
    given = {"session_id": SESSION, "cwd": PROJECT, **path, **document, **prompt}
    answer = vault.hook(harness, "--strict", given=json.dumps(given).encode())
    assert (answer.code, answer.err) == (0, ""), answer
    if not answer.out.startswith("{"):
        return answer.out
    answered = json.loads(answer.out)
    return str(answered.get("hookSpecificOutput", answered).get("additionalContext", ""))


def test_what_a_hook_said_of_a_call_is_no_part_of_its_result(tmp_path: Path, harness: str) -> None:
    require(harness, "calls")
    block = f"{OPENING}\n{BACKGROUND}vault.\n- constraint (file), Mar 1: queue.py is generated. ^f-abcdef\n{CLOSING}"
    escaped = block.replace("<", "&lt;").replace(">", "&gt;")
    beside = {"gemini": f"<hook_context>{escaped}</hook_context>", "qwen": escaped}.get(harness, block)
    turns = [*TALK[:2], Turn("call", "bash", {"command": "grep"}, f"7: tries = 5\n\n{beside}"), TALK[3]]
    found = harness_samples.read(harness, harness_samples.write(harness, tmp_path, turns))
    assert [entry.text.strip() for entry in found.entries if entry.kind == "result"] == ["7: tries = 5"]


def test_a_session_gets_what_it_should_and_none_of_it_returns(
    vault: Vault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, harness: str
) -> None:
    require_hooks(harness)
    monkeypatch.setenv("HOME", str(tmp_path))
    said, steps = [Turn("user", SAID)], dict(sample(harness).STEPS)
    path = harness_samples.write(harness, tmp_path, said)
    got: list[str] = []
    _, (end,) = steps.pop("end")
    for step, (expected, documents) in steps.items():
        text = "".join(fire(vault, harness, path, one) for one in documents)
        assert bool(documents) == (expected is not None)
        assert text.strip() == "" or (text.startswith(OPENING) and text.rstrip("\n").endswith(CLOSING)), step
        assert all((one in text) == (expected == "all") for one in OWN), step
        assert ("=== What memory holds on this ===" in text and ANSWER in text) == (expected == "lines"), step
        assert bool(text.strip()) == bool(expected), step
        got += filter(None, [text.rstrip("\n")])

    before = set(vault.memory.iterdir())
    path.unlink()
    harness_samples.write(harness, tmp_path, said, got=got)
    assert fire(vault, harness, path, end).strip() == ""
    assert vault.call("session", "take-spool").code == 0
    new = {found.name: found.read_text() for found in set(vault.memory.iterdir()) - before}
    assert any(SAID in text for text in new.values()), new
    for name, text in new.items():
        assert not any(one in text for one in (*OWN, ANSWER, OPENING, BACKGROUND)), name
    assert not any(BACKGROUND in str(row) or "signet-memory" in str(row) for row in vault.dump())


TALK = [
    Turn("user", "Why does the retry loop give up?\n\nIt should not."),
    Turn("assistant", "I look at the queue first."),
    Turn("call", "bash", {"command": "grep -n tries queue.py"}, "7: tries = 5"),
    Turn("assistant", "It gives up after five tries."),
]


def test_what_was_said_and_done_is_read_in_order(tmp_path: Path, harness: str) -> None:
    found = harness_samples.read(harness, harness_samples.write(harness, tmp_path, TALK))
    said = [(one.kind, one.text) for one in found.entries]
    done = [("tool", "grep -n tries queue.py"), ("result", "7: tries = 5")] if has(harness, "calls") else []
    assert said == [("user", TALK[0].text), ("assistant", TALK[1].text), *done, ("assistant", TALK[3].text)]
    project = PROJECT if has(harness, "folder") else None
    assert (found.harness, found.session_id, found.project, found.parent) == (harness, SESSION, project, None)
    assert found.entries[0].at == harness_samples.START_US, "its own time"
    *_, tool, result, _ = found.entries
    assert not done or (tool.call == result.call != "" and tool.name.lower() == "bash")


@pytest.mark.parametrize(
    ("written", "seen"),
    [
        (r"C:\Users\mira\code\shop", "/mnt/c/Users/mira/code/shop"),
        (r"\\wsl.localhost\Ubuntu\home\mira\shop", "/home/mira/shop"),
        (r"\\server\share\shop", r"\\server\share\shop"),
        ("/srv/c:/shop", "/srv/c:/shop"),
    ],
)
def test_a_folder_of_windows_is_the_one_that_linux_sees(tmp_path: Path, written: str, seen: str) -> None:
    path = harness_samples.write("codex", tmp_path, TALK, cwd=written)
    assert harness_samples.read("codex", path).project == seen


CASES = {f"{one}: {name}": (one, name) for one in registry.names() for name in getattr(sample(one), "CASES", {})}


@pytest.mark.parametrize("case", CASES)
def test_recorded_records_are_read_as_they_were_meant(case: str) -> None:
    harness, name = CASES[case]
    (records, told, facts), own = sample(harness).CASES[name], {}
    if harness == "opencode":
        found = sample(harness).parse(records, **facts.get("session", {}))
    else:
        own = {"file_name": facts["file_name"]} if "file_name" in facts else {}
        found = registry.reader(harness)(jsonl(*records), **own)
    assert [f"{entry.kind} {entry.text}" for entry in found.entries] == list(told)
    for fact, expected in facts.items():
        if fact in ("name", "call", "failed"):
            assert [getattr(entry, fact) for entry in found.entries] == expected, fact
        elif fact in ("at", "at_us"):  # `at` counts from the samples' start
            assert [entry.at for entry in found.entries] == (
                expected if fact == "at_us" else [parse_instant(harness_samples.at(number)) for number in expected]
            )
        elif fact not in ("session", "file_name"):
            assert getattr(found, fact) == expected, fact


@pytest.mark.parametrize("break_", ["", "\n"])
def test_data_in_words_is_told_by_its_size(tmp_path: Path, harness: str, break_: str) -> None:
    data = break_.join(["iVBORw0KGgoAAAANSUhEUgAAB+/xCAYAAAB" * 2] * 70) + "=="
    said = [Turn("user", f"What does data:image/png;base64,{data} show?"), TALK[1]]
    found = harness_samples.read(harness, harness_samples.write(harness, tmp_path, said))
    assert found.entries[0].text == f"What does data:image/png;base64,[base64, {len(data):,} characters] show?"


def test_a_home_is_imported_once(vault: Vault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, harness: str) -> None:
    home = tmp_path / "person"
    monkeypatch.setenv("HOME", str(home))
    edit = Turn("call", getattr(sample(harness), "EDITOR", "edit"), {"path": f"{PROJECT}/src/queue.py"})
    commit = Turn("call", "bash", {"command": "git commit -am Five"}, "[main 1f2e3d4] Five tries\n 1 file changed")
    os.utime(harness_samples.write(harness, home, [*TALK, edit, commit, TALK[-1]]), (1.7e9, 1.7e9))
    assert transcripts.list_installed() == [harness]
    for written in (1, 0):
        assert len(vault.call("import", harness, "--json").json["segments"]) == written
    assert vault.hits("retry", "loop", "give")
    if not (has(harness, "calls") and has(harness, "folder")):
        return
    opened = vault.call("open", SESSION, "--json").json
    assert opened["commits"] == [{"commit": "1f2e3d4", "subject": "Five tries"}]
    assert opened["files"] == [{"path": "src/queue.py", "edits": 1}]
    for asked, found in {
        ("--commit", "1f2e3d4"): "1f2e3d4 Five tries", ("--commit", f"1F2e3d4{33 * 'a'}"): "1f2e3d4 Five tries",
        ("--commit", "1f2e3d5"): "", ("--commit", "1f2e3d4", "--project", "x"): "", ("--file", "other/queue.py"): "",
        ("--file", "src/queue.py"): f"{PROJECT}/src/queue.py: 1 edit", ("--file", "ueue.py"): "",
        ("--file", "./src/../src/queue.py", "--project", Path(PROJECT).name): f"{PROJECT}/src/queue.py: 1 edit",
    }.items():  # fmt: skip
        told = [(one["session_id"], one["snippet"]) for one in vault.call("recall", *asked, "--json").json["files"]]
        assert told == ([(SESSION, found)] if found else []), asked


def test_what_a_harness_tells_its_sessions_itself_is_found_and_kept_nowhere(
    vault: Vault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, harness: str
) -> None:
    require(harness, "folder")
    home, code = tmp_path / "person", tmp_path / "code"
    monkeypatch.setenv("HOME", str(home))
    transcript = harness_samples.write(harness, home, TALK, cwd=str(code))
    os.utime(transcript, (1.7e9, 1.7e9))
    facts = registry.facts(harness)
    own = [Path(facts.homes({"HOME": str(home)})[0], one.replace("*", "notes")) for one in facts.memory]
    places = [
        code / facts.instructions[0],
        *own,
        *(Path(os.path.normpath(transcript.parent / one.replace("*", "a"))) for one in facts.memory_beside),
    ]
    secret = "ghp_7kQ2mX9vB4nR8tW3yZ6cF1hJ5pL0sD2gA8eK"
    for number, place in enumerate(places):
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(f"# Rules\n\nBe kind.\n\n- Moor zeppelin{number} at pier nine, with {secret}.\n- Sing.\n")
    (tmp_path / "private").mkdir()
    (tmp_path / "private/CLAUDE.md").write_text("Wave the heliograph.")
    (code / "SOUL.md").symlink_to(tmp_path / "private/CLAUDE.md")
    before = contents(home), contents(code)
    vault.session(3, project=str(tmp_path / "private"), session_id=SESSION)  # a file says so
    assert vault.call("import", harness).code == 0
    for number, place in enumerate(places):
        (hit,) = vault.call("recall", f"moor zeppelin{number} pier nine", "--json").json["hits"][:1]
        assert (hit["tier"], hit["speaker"], hit["id"]) == ("file", "file", str(place)), hit
        assert hit["text"].startswith(f"- Moor zeppelin{number} at pier nine") and secret not in hit["text"]
    found = vault.call("recall", "moor at pier nine", "--json").json["hits"]
    assert sum(hit["tier"] == "file" for hit in found) == min(len(places), 3)
    for line in (["recall", "heliograph"], ["recall", "zeppelin0", "--agent", "scout"],
                 ["--db", str(vault.db), "recall", "zeppelin0"]):  # fmt: skip
        told = vault.call(*line)
        assert (told.out > "") == (line[0] == "--db"), told
    copy = tmp_path / "vault-copy.db"
    shutil.copyfile(vault.db, copy)
    assert "zeppelin" not in vault.call("--db", str(copy), "recall", "zeppelin0").out
    for document in [one for _, some in sample(harness).STEPS.values() for one in some][:2]:
        assert "zeppelin" not in fire(vault, harness, transcript, {**document, "cwd": str(code)})
    for name in ("AGENTS.md", "SOUL.md"):
        (vault / name).write_text(f"Tie {name} to the bollard.")
    for document in [one for _, some in sample(harness).STEPS.values() for one in some][:2]:
        text = fire(vault, harness, transcript, {**document, "cwd": str(vault.root), "session_id": f"w{document}"[:9]})
        assert not any(f"Tie {name}" in text for name in facts.instructions)
    vault.reindex("--full")
    kept = (vault.root, vault.state)
    assert not [
        path for place in kept for path in place.rglob("*") if path.is_file() and b"zeppelin0" in path.read_bytes()
    ]
    assert (contents(home), contents(code)) == before


def test_what_claude_code_keeps_of_a_repository_is_found_by_sessions_below_it(
    vault: Vault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, code = tmp_path / "person", tmp_path / "code"
    monkeypatch.setenv("HOME", str(home))
    (code / ".git").mkdir(parents=True)
    (code / ".git/HEAD").write_text("ref: refs/heads/main\n")
    (code / "deck").mkdir()
    transcript = harness_samples.write("claude-code", home, TALK, cwd=str(code / "deck"))
    folder = home / ".claude/projects" / re.sub("[^A-Za-z0-9]", "-", str(code))
    transcript.parent.rename(f"{folder}-deck")
    (folder / "memory").mkdir(parents=True)
    (folder / "memory/berths.md").write_text("Moor the dinghy at pier nine.\n")
    (moved,) = home.rglob("*.jsonl")
    os.utime(moved, (1.7e9, 1.7e9))
    assert vault.call("import", "claude-code").code == 0
    (hit,) = vault.call("recall", "moor the dinghy pier nine", "--json").json["hits"][:1]
    assert (hit["tier"], hit["id"]) == ("file", str(folder / "memory/berths.md"))


# One of each kind: with a file of its own, with several, in a gateway, and the invented one.
@pytest.mark.parametrize("harness", ["gemini", "qwen", "openclaw", "quill"], indirect=True)
def test_a_file_that_the_harness_gives_is_not_given_again(
    vault: Vault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, harness: str
) -> None:
    home, code = tmp_path / "person", tmp_path / "code"
    monkeypatch.setenv("HOME", str(home))
    (code / ".git").mkdir(parents=True)
    (code / ".git/HEAD").write_text("ref: refs/heads/main\n")
    (code / "deck").mkdir()
    (vault.root / "AGENTS.md").write_text("Tie the boat with a bowline.\n")
    (vault.root / "USER.md").write_text("# Rules\n\n- sails are made of hemp.\n")
    facts, made = registry.facts(harness), sample(harness)
    home_folder = Path(facts.homes({"HOME": str(home)})[0])
    transcript = harness_samples.write(harness, home, TALK, cwd=str(code))
    starts = next(documents for expected, documents in made.STEPS.values() if expected == "all")
    home_folder.mkdir(parents=True, exist_ok=True)
    for number, (place, text) in enumerate({
        code / "nothing.md": "", code / facts.instructions[0]: "Tie the boat with a bowline.\n",
        home_folder / facts.instructions[0]: "\n# Rules\n\n- sails are made of hemp.\n",
    }.items()):  # fmt: skip
        place.write_text(text)
        given = {"cwd": str(code / "deck"), "session_id": f"s-{number}"}
        told = "".join(fire(vault, harness, transcript, {**one, **given}) for one in starts)
        assert ["bowline" in told, "hemp" in told] == [number < 1, number < 2], told


@pytest.mark.parametrize("harness", ["claude-code", "codex", "opencode"], indirect=True)  # the last one takes none
def test_a_session_goes_back_to_its_harness(
    vault: Vault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, harness: str
) -> None:
    home, code = tmp_path / "person", tmp_path / "code"
    code.mkdir()
    monkeypatch.setenv("HOME", str(home))
    secret = "ghp_7kQ2mX9vB4nR8tW3yZ6cF1hJ5pL0sD2gA8eK"
    turns = [*TALK, Turn("user", f"## User · 2026-03-01T00:00:00.000Z\n\nIt is {secret}."), Turn("assistant", "Noted.")]
    own = harness_samples.write(harness, home, turns, cwd=str(code))
    os.utime(own, (1.7e9, 1.7e9))
    assert len(vault.call("import", harness, "--json").json["segments"]) == 1
    if registry.restorer(harness) is None:
        assert vault.call("restore", SESSION, "--to-harness").code == 2
        done = vault.call("restore", SESSION, "--to-harness", "claude-code", "--json").json
        assert done["session_id"] != SESSION
    else:
        answer = vault.call("restore", SESSION, "--to-harness")
        assert answer.code == 2 and "there already" in answer.err
        own.unlink()
        done = vault.call("restore", SESSION, "--json").json
        assert (done["session_id"], done["path"]) == (SESSION, str(own)) and SESSION in done["command"]
        assert vault.call("restore", SESSION).code == 2
    path = Path(done["path"])
    assert (done["turns"], done["redacted"], path.stat().st_mode & 0o777) == (4, 1, 0o600)
    assert secret not in path.read_text()
    if done["harness"] == "claude-code":  # a person's words are a text there, the assistant's are blocks
        kinds = [type(json.loads(line)["message"]["content"]) for line in path.read_text().splitlines()]
        assert kinds == [str, list, str, list]
    found = harness_samples.read(done["harness"], path)
    assert (found.session_id, found.project) == (done["session_id"], str(code))
    words = [(one.kind, one.text) for one in found.entries]
    assert [kind for kind, _ in words] == ["user", "assistant", "user", "assistant"]
    assert words[0][1] == TALK[0].text and found.entries[0].at == harness_samples.START_US
    assert [said in words[1][1] for said in (TALK[1].text, "grep -n tries", "7: tries = 5", TALK[3].text)] == [True] * 4
    assert "[REDACTED:" in words[2][1] and words[3][1] == "Noted."
    os.utime(path, (1.7e9, 1.7e9))
    assert vault.call("import", done["harness"], "--json").json["segments"] == [], "all of it is there"


@cache
def hostile_lines(harness: str, written: Path) -> st.SearchStrategy[list[bytes]]:
    """Lines of the words that the parser knows, wherever they do not belong, and spoiled ones of a session."""
    read = registry.reader(harness)
    kinds = getattr(read, "__self__", None)
    modules = {one.__module__ for one in kinds.__mro__} if kinds is not None else {read.__module__}
    sources = [
        Path(str(sys.modules[one].__file__)) for one in modules if not one.endswith((".reader", "abc", "builtins"))
    ]
    words = {word for path in sources for word in re.findall(r'"([^"\\\n]{1,40})"', path.read_text())}
    records = [one for line in written.read_bytes().splitlines() if (one := parse_line(line)) is not None]
    return hostile(sorted(words), sorted(words), records)


@settings(
    max_examples=max(4, settings.default.max_examples // 3), suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data(), name=st.sampled_from(["", f"{SESSION}.jsonl", "agent-1.jsonl", "rollout-x.jsonl", "/"]))
def test_no_input_raises(harness: str, tmp_path: Path, data: st.DataObject, name: str) -> None:
    lines = data.draw(hostile_lines(harness, harness_samples.write(harness, tmp_path, TALK)))
    if harness != "opencode":
        assert_sound(registry.reader(harness)(lines, file_name=name))
        return
    parts = [(str(number), line.decode("utf-8", "replace")) for number, line in enumerate(lines)]
    rows = [MessageRow(number, text, parts[:3]) for number, text in parts]
    session = next((found for line in lines if (found := parse_line(line)) is not None), {})
    assert_sound(registry.reader(harness)(session, rows))


def test_hooks_go_in_and_out(vault: Vault, harness: str) -> None:
    require_hooks(harness)
    root, place = str(vault.root), registry.settings(harness).path(os.environ)

    def condition() -> Condition:
        return hooks_install.conditions(root, [harness])[0]

    assert not condition().is_installed
    (done,) = hooks_install.install(root, [harness], now=NOW)
    assert done.error is None and condition().is_installed
    assert (condition().missing, condition().problems) == ((), ())
    assert "signet_sync" in Path(place).read_text()
    hooks_install.uninstall(root, [harness])
    assert not Path(place).exists() and not condition().is_installed
