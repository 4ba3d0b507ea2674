"""The page of problems: what changed in sealed files, what heals them, what else is left out, for one agent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import artifacts_fixture as made
import pytest
from workbench import Vault, cast

pytest.importorskip("starlette", reason="the extra `ui` is not installed")

from ui_pages import HOSTILE, asked, harmless, visitor

from signet_sync.sync.store.texts import keep
from signet_sync.web import overview
from signet_sync.web.formatting import ROWS, WIDE, difference

OTHER = {"agent_id": "scout", "session_id": "5e5510aa-0000-4000-8000-000000000001"}
SECRET, OTHER_SECRET = "ghp_" + "a1B2" * 9, "ghp_" + "c3D4" * 9


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Of two sessions the summaries changed in one save, of a third the transcript went; another agent has one, too."""

    def make(vault: Vault) -> None:
        paths = [vault.session(number) for number in (1, 2, 3)]
        others = vault.session(4, **OTHER, body=f"# Four\n\nThe key is {SECRET}.\n")
        vault.reindex()
        for session in paths[:2]:
            summary = vault / session["summary"]
            summary.write_text(summary.read_text("utf-8").replace("keeps its word", f"breaks {HOSTILE}"), "utf-8")
        (vault / paths[2]["transcript"]).unlink()
        spoilt = vault / others["summary"]
        spoilt.write_text(spoilt.read_text("utf-8").replace(SECRET, OTHER_SECRET), "utf-8")
        vault.put(made.summary(session_id="5e5510bb-0000-4000-8000-000000000009", content_sha256="0" * 64))
        vault.put({f"<b onclick=x>{number}.md": b"mine" for number in range(30)})
        vault.reindex()
        (vault.root / "paths.json").write_text(json.dumps([*paths, others]))

    return cast(tmp_path_factory.mktemp("violations"), make)


@pytest.fixture
def vault(filled: Any, tmp_path: Path) -> Vault:
    found: Vault = filled(tmp_path)
    return found


def paths(vault: Vault) -> list[dict[str, str]]:
    found: list[dict[str, str]] = json.loads((vault.root / "paths.json").read_text())
    return found


def shown(vault: Vault, agent: str = "default", **query: str) -> dict[str, Any]:
    return overview.problems(asked(vault.root, agent, **query)).data


def test_each_sealed_file_has_what_heals_it_for_its_agent_alone(vault: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    sealed = shown(vault)["sealed"]
    assert [one["code"] for one in sealed.rows] == ["vanished", "mutated", "mutated"] and sealed.total == 3
    assert [one["path"] for one in shown(vault, "scout")["sealed"].rows] == [paths(vault)[3]["summary"]]
    answer = vault.call("violations", "list", paths(vault)[3]["summary"])
    assert answer.code == 0 and not answer.out and "never shown" in answer.err
    page = harmless(visitor(vault.root).get("/violations").text)
    ways = [link.partition("?")[0] for link in page.links if link.startswith("/do/")]
    assert ways == [f"/do/{one}" for one in ("restore", "accept") * 3]
    gone = sealed.rows[0]["path"]
    with vault.database(readonly=False) as database:
        keep(database, [gone])
        database.execute("update seals set packed = null where path = ?", (gone,))
    assert not shown(vault)["sealed"].rows[0]["restorable"]
    assert "Its sealed bytes no longer exist" in visitor(vault.root).get("/violations").text
    monkeypatch.setattr(overview, "SEALED", 2)
    first, second = (shown(vault, page=page)["sealed"] for page in ("1", "2"))
    assert (first.before, first.after, first.label) == (None, 2, "1–2 of 3")
    assert (len(second.rows), second.before, second.after) == (1, 1, None)


def test_other_files_are_told_by_code_with_what_to_do_and_how_many_more(vault: Vault) -> None:
    groups = shown(vault)["groups"]
    assert [(group["code"], group["total"], group["tone"]) for group in groups] == [
        ("hash-mismatch", 1, "bad"),
        ("foreign-name", 30, "quiet"),
    ]
    assert "restore the file" in groups[0]["hint"] and not groups[1]["hint"]
    assert len(groups[1]["files"]) == overview.SHOWN
    assert "And 10 more." in visitor(vault.root).get("/violations").text


def test_a_copy_that_only_the_disk_knows_of_is_in_the_group_of_all_copies(vault: Vault) -> None:
    copy = paths(vault)[0]["transcript"].replace(".md", " (conflicted copy laptop).md")
    vault.put({copy.removeprefix("memory/"): b"another text"})
    vault.reindex()
    # A page of ours that two machines wrote: no row has it.
    beside = "MEMORY (conflicted copy laptop).md"
    (vault.root / beside).write_text("# Memory\n\nTwo machines wrote this.\n", "utf-8")
    (files,) = [group["files"] for group in shown(vault)["groups"] if group["code"] == "conflict-copy"]
    assert [path for path, _ in files] == [copy, beside]


def test_lines_that_are_alike_are_left_out_but_for_a_few_around_a_change() -> None:
    before = "\n".join(f"line {number}" for number in range(1, 31))
    after = before.replace("line 8\n", "line eight\n").replace("line 20\n", "") + "\nmore"
    told = [line for line in difference(before, after) if line[:1] != " "]
    assert told == [
        "@@ -5,7 +5,7 @@", "-line 8", "+line eight", "@@ -17,7 +17,6 @@", "-line 20", "@@ -28,3 +27,4 @@", "+more",
    ]  # fmt: skip
    assert difference(before, before) == [] and difference("", "x") == ["@@ -1 +1 @@", "-", "+x"]


def test_however_long_texts_and_lines_are_what_is_shown_stays_short() -> None:
    lines = difference("a\n" + "x\n" * 300_000, "a\n" + "y\n" * 300_000)
    assert lines == ["@@ from line 2 on 300000 lines became 300000 lines, too many to compare"]
    assert difference("x\n" * 300_000 + "a", "x\n" * 300_000 + "b")[-2:] == ["-a", "+b"]
    # Of these nearly every line could be nearly every other one: what costs a comparison most.
    mixed = difference(*("\n".join(str(step * number % 100) for number in range(990)) for step in (1, 37)))
    assert len(mixed) == ROWS + 1 and mixed[-1].endswith(" lines more")
    assert all(len(line) <= WIDE + 1 for line in difference("z" * 2_000_000, "q" * 2_000_000))
