"""Four weeks of one repository in two harnesses: the page and the context after each session, as they must read.

`WRITE_GOLDEN=1 pytest -n 0 tests/pages/test_golden_story.py` writes them; read what changed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from workbench import Vault

from signet_sync.app.workspace import open_to_write
from signet_sync.formats.timestamps import parse_instant
from signet_sync.pages.prompt_context import choose_hits
from signet_sync.sessions import operations
from signet_sync.sessions.input import SessionInput
from signet_sync.settings.model import Settings

GOLDEN = Path(__file__).parent / "golden" / "story"
ROOT, DOCS = "/home/ada/code/windmill", "/home/ada/code/tern-docs"

Said = Sequence[tuple[str, str]]


def read_story() -> Iterator[tuple[int, str, str, str, Said]]:
    """Number of each session, day and hour of its end, harness, folder, what was said. One number twice: resumed.

    Said by the user or the agent, an edit, a tool that asks with what was picked, or a command with what it printed.
    """
    for part in (GOLDEN / "story.txt").read_text("utf-8").split("=== ")[1:]:
        head, _, body = part.partition("\n")
        said = re.split(r"^([uaepb]): ", body, flags=re.MULTILINE)[1:]
        number, hour, harness, folder = head.split()
        turns = [(kind, text.strip()) for kind, text in zip(said[::2], said[1::2], strict=True)]
        yield int(number), hour, harness, folder, turns


STORY = [*read_story()]


def shown(kind: str, at: str, text: str) -> str:
    """Something said, edited, run or picked, as transcripts have it."""
    if kind in "ua":
        return f"## {'User' if kind == 'u' else 'Assistant'} · {at}\n\n{text}"
    if kind == "e":
        return f"- `Edit` · {at} · `{text}`"
    tool, detail, printed = "Bash", *text.partition("\n")[::2]
    if kind == "p":
        asked, picked = text.split("=")
        tool, detail, printed = "AskUserQuestion", asked, f'User has answered: "{asked}"="{picked}"'
    return f"- `{tool}` · {at} · `{detail}`\n  ```\n  {printed}\n  ```"


def ending(number: int, hour: str, harness: str, project: str, said: Said) -> SessionInput:
    """A session as a capture tells of its end."""
    turns = [shown(kind, f"{hour}:{5 + minute:02d}:00.000Z", text) for minute, (kind, text) in enumerate(said)]
    return SessionInput(
        session_id=f"5e551{number:03d}-0000-4000-8000-0000000000{number:02d}",
        harness=harness,
        project=project,
        repository_root=DOCS if project == DOCS else ROOT,
        repository_path=project.removeprefix(ROOT).lstrip("/") if project != DOCS else "",
        captured_at=f"{hour}:40:00.000Z",
        started_at=f"{hour}:05:00.000Z",
        ended_at=f"{hour}:40:00.000Z",
        transcript="\n\n".join(turns) + "\n",
    )


def after(vault: Vault, number: int) -> tuple[str, str]:
    """The page and the context after so many endings."""
    hour = STORY[number - 1][1]
    now = f"{hour}:45:00.000Z"
    vault.reindex(now=now)
    context = vault.call("context", "--project", ROOT, "--now", now)
    assert context.code == 0, context
    return vault.page(), context.out


Told = list[tuple[str, str]]
Story = tuple[Told, list[str], list[list[str]]]
ASKED = "why does the load test of the upload queue need a fake archive?"


@pytest.fixture(scope="module")
def told_and_dead(tmp_path_factory: pytest.TempPathFactory) -> Story:
    """Page and context after each ending and a rebuild; dead handles; what a prompt gets, and again."""
    folder = tmp_path_factory.mktemp("story")
    found = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(folder))
        patch.setenv("SIGNET_STATE", str(folder / "state"))
        patch.setenv("SIGNET_CONFIG", str(folder / "settings.toml"))
        patch.setattr("signet_sync.text.digest_mark.SINCE_US", 0)  # the story is quoted, whenever it is told
        vault = Vault(folder / "vault")
        for number, one in enumerate(STORY, 1):
            with open_to_write(str(vault.root), Settings()) as workspace:
                operations.write(workspace, ending(*one), now_us=parse_instant(f"{one[1]}:45:00.000Z") or 0)
            found.append(after(vault, number))
        vault.reindex("--full", now=f"{STORY[-1][1]}:45:00.000Z")
        found.append(after(vault, len(STORY)))
        handles = set(re.findall(r"\^[a-z]-[a-z2-7]{6,12}\b", "".join(map("".join, found))))
        dead = [one for one in sorted(handles) if vault.call("expand", one).code != 0]
        with vault.database() as database:
            given = {one for (one,) in database.execute("select thread_id from memory_thread_heads")}
            given |= {one for (one,) in database.execute("select id from session_summaries")}
            injected = [
                [one.text for one in choose_hits(database, "default", ASKED, lambda _: True, given=some)]
                for some in (set[str](), given)
            ]
        return found, dead, injected


@pytest.fixture
def told(told_and_dead: Story) -> Told:
    """Page and context after each ending."""
    return told_and_dead[0][:-1]


def test_every_line_of_every_page_and_context_can_be_expanded(told_and_dead: Story) -> None:
    told, dead, _ = told_and_dead
    assert dead == []
    for text in (text for both in told for text in both):
        lines = [line for line in without_log(text).split("\n") if line.startswith("- ")]
        assert lines and all(re.search(r" \^[a-z]-[a-z2-7]{6,12}$", line) for line in lines)


def test_at_a_prompt_a_session_is_told_by_what_it_came_to_and_what_was_said(told_and_dead: Story) -> None:
    first, again = told_and_dead[2]
    assert any("it needs a fake archive that is slow on purpose; " in text and " … " in text for text in first)
    assert all("slow on purpose; " not in text for text in again), "the start gave what it came to"


def test_a_rebuild_changes_neither_page_nor_context(told_and_dead: Story) -> None:
    *_, last, rebuilt = told_and_dead[0]
    assert last == rebuilt


@pytest.mark.parametrize("number", range(1, len(STORY) + 1))
def test_the_page_and_the_context_read_as_they_must(told: list[tuple[str, str]], number: int) -> None:
    for kind, text in zip(("page.md", "context.txt"), told[number - 1], strict=True):
        path = GOLDEN / f"{number}-{kind}"
        if os.environ.get("WRITE_GOLDEN"):
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, "utf-8")
        assert text == path.read_text("utf-8"), f"after ending {number}"


def without_earlier(context: str) -> str:
    """A context without what earlier sessions of the project came to, which a page has in its session log."""
    return context.partition("\n=== Earlier sessions here")[0]


def without_log(page: str) -> str:
    """The page above its session log, which keeps what was said then."""
    return page.partition("## Session Ledger")[0]


def test_page_and_context_have_the_same_lines(told: list[tuple[str, str]]) -> None:
    """One board: of the project at hand, the context leaves out the project's name only."""
    for page, context in told:
        lines = [line.replace("windmill, ", "") for line in without_log(page).splitlines() if line.startswith("- ")]
        assert [line for line in lines if "tern-docs" not in line and "sentences" not in line] == [
            line for line in without_earlier(context).splitlines() if line.startswith("- ") and "sentences" not in line
        ]
