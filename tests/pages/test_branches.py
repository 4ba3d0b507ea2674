"""Where was I: each branch and worktree of a repository has its own last outcome and steps; decisions are shared."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest
from test_found_repository import git, needs_git
from test_intake import take
from transcript_builder import START, TranscriptBuilder, store
from workbench import Vault

from signet_sync.storage import state_dir

pytestmark = needs_git


class Story:
    """A repository with a worktree, and sessions in it that hooks capture."""

    def __init__(self, folder: Path, vault: Vault) -> None:
        self.vault, self.count = vault, 0
        self.main, self.parser = folder / "tidepool", folder / "tidepool-parser"
        self.main.mkdir()
        git(self.main, "init")
        git(self.main, "commit", "--allow-empty", "-m", "one")
        git(self.main, "worktree", "add", "-b", "parser", str(self.parser))
        vault.reindex()
        state_dir.write_heartbeat(state_dir.locate(str(vault.root)), {"state": "watching"})  # no worker is started

    def session(self, where: Path, asked: str, report: str, *commands: str) -> str:
        """A session that runs some commands of git, and its end as the harness reports it."""
        self.count += 1
        name = f"7a1b0c00-0000-4000-8000-{self.count:012d}"
        talk = TranscriptBuilder(store(Path(os.environ["HOME"])), name, str(where))
        second = time.time() - START.timestamp() - 10 * 86_400 + 3_600 * self.count
        talk.user(asked, second)
        edit = {"type": "tool_use", "id": "e", "name": "Edit", "input": {"file_path": f"{where}/src/a{self.count}.py"}}
        talk.record("assistant", second + 1, message={"role": "assistant", "content": [edit]})
        talk.result("done", second + 2, "e")
        for number, command in enumerate(commands):
            if command.startswith("git "):
                git(where, *command.split()[1:])
            talk.call(command, second + 3 + number, f"c{number}")
            talk.result("done", second + 3.5 + number, f"c{number}")
        talk.assistant(report, second + 60)
        answer = self.vault.hook("claude-code", "--strict", given=talk.payload())
        assert (answer.code, answer.err) == (0, ""), answer
        take(self.vault)
        return name

    def told(self, where: Path, harness: str = "claude-code", session: str = "new") -> str:
        """What a session gets at its start in a folder."""
        given = {"session_id": session, "cwd": str(where), "hook_event_name": "SessionStart", "source": "startup"}
        given["transcript_path"] = "/nowhere/s.jsonl"
        answer = self.vault.hook(harness, "--strict", given=json.dumps(given).encode())
        assert (answer.code, answer.err) == (0, ""), answer
        return str(json.loads(answer.out)["hookSpecificOutput"]["additionalContext"])


DECIDED = ("readings_quarantine", "without regular expressions", "UTF-8")
# Of each branch: what came out, what is next, what blocks.
MAIN = ("reads the gauge files", "next: write the daily report", "")
PARSER = ("checks the CRC", "next: handle frames that are cut", "blocker: waits for Ada")
EXPORT = ("exports the gauges of one day", "next: stream exports", "")


@pytest.fixture
def story(tmp_path: Path, vault: Vault) -> Story:
    made = Story(tmp_path, vault)
    made.session(
        made.main,
        "Set up the ingest of gauge files.",
        "The ingest keeps every row.\n\nOutcome: the ingest of tidepool reads the gauge files of the harbour\n"
        "Decided: doubtful readings are moved to readings_quarantine\nNext: write the daily report of the gauges",
    )
    made.session(
        made.parser,
        "Write the parser of the sensor frames.",
        "It refuses others.\n\nOutcome: the frame parser of tidepool checks the CRC of each frame\n"
        "Decided: frames are parsed without regular expressions\nNext: handle frames that are cut at the end\n"
        "Blocked: waits for Ada, who has to send the sensor manual",
    )
    made.session(
        made.main,
        "Export the gauges as CSV.",
        "The export writes one file a day.\n\nOutcome: tidepool exports the gauges of one day as CSV\n"
        "Decided: exports are UTF-8 without a byte order mark\nNext: stream exports that are larger than memory",
        "git checkout -b export",
    )
    return made


def heads(text: str) -> list[str]:
    """The lines on where things stand, before the decisions and quotes."""
    own = text.split("=== Project tidepool ===\n")[1].split("\n\n")[0]
    return [line.removeprefix("- ") for line in own.split("\n")]


def stands(text: str, name: str, own: tuple[str, str, str]) -> None:
    """Holds a start to its branch's outcome and steps, and to all decisions, once."""
    (came, step, blocker), lines = own, heads(text)
    assert lines[0].startswith(f"**tidepool** ({name}") and came in lines[0], text
    assert lines[1].startswith(step) and len(lines) == 2, text
    assert not any(left in text for _, left, _ in (MAIN, PARSER, EXPORT) if left != step), text
    assert ("- blocker: " in text) == bool(blocker) and blocker in text, text
    assert all(text.count(one) == 1 for one in DECIDED), text


def test_each_branch_and_worktree_is_told_where_it_was(story: Story) -> None:
    text = story.told(story.main)
    stands(text, "on branch export", EXPORT)
    assert MAIN[0] in text, "what a trunk had before is the past of its branches"
    stands(story.told(story.parser), "on branch parser", PARSER)
    (story.parser / "src").mkdir()
    for harness in ("claude-code", "codex"):
        stands(story.told(story.parser / "src", harness, "deeper"), "on branch parser", PARSER)
    git(story.main, "checkout", "main")
    stands(story.told(story.main), "on branch main", MAIN)
    for where, told in ((story.parser, PARSER), (story.main, MAIN)):
        stands(story.vault.call("context", "--project", str(where)).out, "on branch", told)
        handed = story.vault.call("handoff", "--project", str(where), "--json").json["text"]
        assert told[0] in handed.split("\n")[3] and told[1] in handed and f"- {EXPORT[1]}" not in handed, handed
    story.session(story.main, "Go on.", "Outcome: tidepool goes on\nNext: handle frames that are cut at the end")
    for where in (story.main, story.parser):
        assert PARSER[1] in story.told(where), "a step that two branches have"
    assert story.vault.dump() == story.vault.dump_from_scratch(), "update equals rebuild"


def test_what_is_not_known_or_not_there_any_more_is_as_before(story: Story) -> None:
    def everything(text: str) -> bool:
        steps = [line for line in heads(text)[1:] if line.startswith("next: ")]
        return len(steps) == 3 and len(heads(text)) == 4 and "Earlier sessions here" in text and "- blocker: " in text

    git(story.main, "checkout", "-b", "fresh")
    assert everything(story.told(story.main)), "a branch that no session has"
    git(story.main, "checkout", "--detach", "main")
    assert everything(story.told(story.main)), "none is checked out"
    git(story.main, "checkout", "main")
    for branch in ("export", "parser"):
        if branch == "parser":
            git(story.main, "worktree", "remove", "--force", str(story.parser))
        git(story.main, "branch", "-D", branch)
        if branch == "export":
            assert PARSER[0] in heads(story.told(story.parser))[0], "its own, though what is gone is newer"
    text = story.told(story.main)
    assert everything(text) and heads(text)[0].startswith("**tidepool** (done"), "they are gone: merged or given up"


def test_worktrees_without_a_branch_are_told_apart(story: Story, tmp_path: Path) -> None:
    first, second = tmp_path / "one", tmp_path / "two"
    for number, place in enumerate((first, second)):
        git(story.main, "worktree", "add", "--detach", str(place))
        report = f"Outcome: try {number} of tidepool reads the tides\nNext: finish the table number {number} of tides"
        story.session(place, f"Try number {number}.", report)
    for number, place in enumerate((first, second)):
        text = story.told(place)
        assert heads(text)[0].startswith(f"**tidepool** (in worktree {place.name}"), text
        assert f"ry {number} of" in heads(text)[0] and f"- next: finish the table number {number}" in text
        assert f"- next: finish the table number {1 - number}" not in text, text
