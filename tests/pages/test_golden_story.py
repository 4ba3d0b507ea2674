"""Four weeks of one repository in two harnesses: the page and the context after each session, as they must read.

`WRITE_GOLDEN=1 pytest -n 0 tests/pages/test_golden_story.py` writes them; read what changed.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from workbench import Vault

from signet_sync.pages.prompt_context import worth_injecting

GOLDEN = Path(__file__).parent / "golden" / "story"
ROOT, DOCS = "/home/ada/code/windmill", "/home/ada/code/tern-docs"

Said = Sequence[tuple[str, str]]

START: Said = (
    ("u", "The nightly upload of windmill loses reports when the archive is slow. Please make uploads retry."),
    ("a", "src/upload.py gives up after the first timeout, so a slow archive loses the report."),
    ("p", "How often is an upload tried?=3 times"),
    ("u", "And never delete a report before the archive has confirmed it."),
    ("e", "src/upload.py"),
    ("a", "I added the retries to src/upload.py: uploads are retried 3 times, with a pause of 2 s between them, and the"
          " local report is kept until the archive has confirmed it. All 41 tests pass.\n\n"
          "Decided: Never delete a report before the archive has confirmed it\n"
          "Next: write a load test for the upload queue"),
)  # fmt: skip
MORE_RETRIES: Said = (
    ("u", "3 was not enough, last night the archive was away for ten minutes. Make it 5, and send the reports to the"
          " new archive bucket."),
    ("e", "src/upload.py"),
    ("a", "Uploads are retried 5 times now, the pause doubles each time (src/upload.py). For the bucket I need write"
          " access: the upload fails with AccessDenied."),
    ("u", "Right, Priya has to grant that. Leave it there until she has."),
    ("a", "The bucket code is on the branch archive-bucket.\n\n"
          "Outcome: Uploads are retried 5 times instead of 3, with a doubling pause; reports still go to the old"
          " archive\n"
          "Blocked: Priya has to grant write access to the archive bucket"),
)  # fmt: skip
TABLE: Said = (
    ("u", "The table of reports in web/ shows the newest report last, turn it around."),
    ("a", "web/src/ReportTable.tsx sorts by name; I sort it by date instead, newest first. Shall I run npm test?"),
    ("u", "Always use pnpm in this repository, please, never npm."),
    ("e", "web/src/ReportTable.tsx"),
    ("a", "The table of reports in web/src/ReportTable.tsx lists the newest report first. pnpm test: 18 tests pass.\n\n"
          "Decided: Always use pnpm in this repository, never npm"),
)  # fmt: skip
ELSEWHERE: Said = (
    ("u", "The search page of tern-docs is empty in Safari, can you look?"),
    ("e", "assets/search.js"),
    ("a", "I made the index's URL absolute in assets/search.js, so the search page of tern-docs shows results in Safari"
          " 17. It was relative, and Safari resolves that against the wrong base."),
    ("u", "thanks. And please answer me in short sentences from now on."),
    ("a", "I will."),
)  # fmt: skip
GRANTED: Said = (
    ("u", "Priya granted write access to the archive bucket this morning. Please finish the bucket upload."),
    ("e", "src/upload.py"),
    ("b", "git commit -am 'Send reports to the archive bucket'\n[archive-bucket 6d1f0a2] Send reports to the archive"
          " bucket"),
    ("a", "The write access works: src/upload.py sends reports to the new archive bucket, and last night's 12 reports"
          " were uploaded there.\n\n"
          "Outcome: Last night's 12 reports are in the new archive bucket, and the branch archive-bucket is merged"),
)  # fmt: skip
AGAIN: Said = (
    ("u", "The archive's maintenance window takes half an hour now, 5 retries are over too soon."),
    ("a", "With the doubling pause, 5 retries cover two minutes and 7 cover eight; only a longer first pause covers"
          " half an hour. I would take 7 retries and a first pause of 15 s."),
    ("u", "ok, do that. We also no longer use CSV for the reports, use Parquet: the archive charges by size."),
    ("e", "src/report.py"),
    ("a", "Uploads are retried 7 times, the first pause is 15 s, and reports are written as Parquet by src/report.py."
          " All 47 tests pass.\n\n"
          "Decided: 7 retries and a first pause of 15 s, which cover half an hour\n"
          "Decided: Reports are Parquet, no longer CSV, because the archive charges by size\n"
          "Next: convert the CSV reports of February to Parquet"),
)  # fmt: skip
LOAD: Said = (
    ("u", "Let's do the load test for the upload queue that we planned."),
    ("e", "tests/load/test_queue.py"),
    ("a", "I have a first version in tests/load/test_queue.py, but it needs a fake archive that is slow on purpose."),
)  # fmt: skip
RESUMED: Said = (
    *LOAD,
    ("u", "go on with it, a fake archive is fine"),
    ("e", "src/queue.py"),
    ("a", "The load test for the upload queue is done: tests/load/test_queue.py sends 10,000 reports through a slow"
          " fake archive, and none is lost. It found one bug, the queue dropped reports over 64 MB, which I fixed in"
          " src/queue.py."),
)  # fmt: skip
LAST: Said = (
    ("u", "Add the size of each report to the nightly mail."),
    ("e", "src/mail.py"),
    ("a", "The nightly mail of windmill lists the size of each report now (src/mail.py), in MB with one decimal."
          " All 49 tests pass.\n\n## Next steps\n\n- ask Priya which reports may be left out of the mail"),
)  # fmt: skip

# Number of the session, day and hour of its end, harness, folder, what was said. One number twice: it was resumed.
STORY: tuple[tuple[int, str, str, str, Said], ...] = (
    (1, "2026-03-02T10", "claude-code", ROOT, START), (2, "2026-03-05T15", "codex", ROOT, MORE_RETRIES),
    (3, "2026-03-09T09", "claude-code", f"{ROOT}/web", TABLE), (4, "2026-03-12T17", "claude-code", DOCS, ELSEWHERE),
    (5, "2026-03-16T11", "codex", ROOT, GRANTED), (6, "2026-03-19T14", "claude-code", ROOT, AGAIN),
    (7, "2026-03-23T16", "claude-code", ROOT, LOAD), (7, "2026-03-24T10", "claude-code", ROOT, RESUMED),
    (8, "2026-03-27T09", "codex", ROOT, LAST),
)  # fmt: skip


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


def document(number: int, hour: str, harness: str, project: str, said: Said) -> Mapping[str, Any]:
    """The input of `session end`."""
    turns = [shown(kind, f"{hour}:{5 + minute:02d}:00.000Z", text) for minute, (kind, text) in enumerate(said)]
    return {
        "session_id": f"5e551{number:03d}-0000-4000-8000-0000000000{number:02d}",
        "harness": harness,
        "project": project,
        "repository_root": DOCS if project == DOCS else ROOT,
        "repository_path": project.removeprefix(ROOT).lstrip("/") if project != DOCS else "",
        "captured_at": f"{hour}:40:00.000Z",
        "started_at": f"{hour}:05:00.000Z",
        "ended_at": f"{hour}:40:00.000Z",
        "transcript": "\n\n".join(turns) + "\n",
    }


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
            (folder / "input.json").write_text(json.dumps(document(*one)), "utf-8")
            answer = vault.call("session", "end", "--json", "--input", str(folder / "input.json"))
            assert answer.code == 0, answer
            found.append(after(vault, number))
        vault.reindex("--full", now=f"{STORY[-1][1]}:45:00.000Z")
        found.append(after(vault, len(STORY)))
        handles = set(re.findall(r"\^[a-z]-[a-z2-7]{6,12}\b", "".join(map("".join, found))))
        dead = [one for one in sorted(handles) if vault.call("expand", one).code != 0]
        with vault.database() as database:
            given = {one for (one,) in database.execute("select thread_id from memory_thread_heads")}
            given |= {one for (one,) in database.execute("select id from session_summaries")}
            injected = [
                [one.text for one in worth_injecting(database, "default", ASKED, lambda _: True, given=some)]
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


@pytest.mark.parametrize(
    "words, first, last",
    [
        # Decisions stay, with their days and speakers; a blocker stays until a session comes to it.
        ("an upload tried? — 3 times", 1, 9),
        ("7 retries and a first pause of 15 s, which cover half an hour (agent)", 6, 9),
        ("Priya has to grant write access", 2, 4),
        ("load test for the upload queue is done", 8, 8),
        ("Last night's 12 reports", 5, 5),
        ("Always use pnpm", 3, 9),
        # A next step stays until a session has done it.
        ("write a load test", 1, 6),
        ("convert the", 6, 9),
    ],
)  # fmt: skip
def test_what_holds_is_shown_as_long_as_it_does(told: list[tuple[str, str]], words: str, first: int, last: int) -> None:
    shown = [number for number, (_, context) in enumerate(told, 1) if words in without_earlier(context)]
    assert shown == list(range(first, last + 1))
    pages = [number for number, (page, _) in enumerate(told, 1) if words in without_log(page)]
    assert pages == shown


def test_page_and_context_have_the_same_lines(told: list[tuple[str, str]]) -> None:
    """One board: of the project at hand, the context leaves out the project's name only."""
    for page, context in told:
        lines = [line.replace("windmill, ", "") for line in without_log(page).splitlines() if line.startswith("- ")]
        assert [line for line in lines if "tern-docs" not in line and "sentences" not in line] == [
            line for line in without_earlier(context).splitlines() if line.startswith("- ") and "sentences" not in line
        ]
