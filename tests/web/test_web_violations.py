"""The page of problems: what changed in sealed files, what heals them, what else is left out, for one agent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import artifacts_fixture as made
import pytest
from markupsafe import escape
from workbench import Vault, cast, contents

pytest.importorskip("starlette", reason="the extra `ui` is not installed")

from ui_pages import BESIDE, HOSTILE, asked, harmless, run, visitor

from signet_sync.errors import UsageError
from signet_sync.integrity import store as integrity_store
from signet_sync.sync.planner import HINTS
from signet_sync.web.diff import ROWS, WIDE, differing
from signet_sync.web.views import violations
from signet_sync.web.words import CAUSES

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


def test_what_one_save_changed_stands_together_and_its_commands_heal_it(vault: Vault) -> None:
    data = violations.violations(asked(vault.root)).data
    (save,) = data["saves"]
    assert [one.violation.code for one in save.files] == ["vanished", "mutated", "mutated"]
    assert [[way.command.split(" ")[3:5] for way in one.repairs] for one in save.files] == [
        [["violations", "restore"], ["violations", "accept"], ["remove", save.files[0].violation.session_id]],
        [["violations", "restore"], ["violations", "accept"]],
        [["violations", "restore"], ["violations", "accept"]],
    ]
    assert run(vault, save.files[0].repairs[0].command).code == 0
    assert run(vault, save.files[1].repairs[1].command, words="it is right so").code == 0
    (left,) = violations.violations(asked(vault.root)).data["saves"][0].files
    assert left.violation.path == save.files[2].violation.path


def test_a_batch_is_one_card_whose_commands_settle_all_of_it(vault: Vault) -> None:
    (save,) = violations.violations(asked(vault.root)).data["saves"]
    # One of another agent was found with them, which the commands would settle, too, and the actions do not.
    assert save.in_all == 3 and [one.command for one in save.repairs] == ["", ""]
    assert (
        run(vault, violations.violations(asked(vault.root, "scout")).data["saves"][0].files[0].repairs[0].command).code
        == 0
    )
    (save,) = violations.violations(asked(vault.root)).data["saves"]
    page = visitor(vault.root).get("/violations").text
    assert page.count('class="card bad"') - page.count("hash-mismatch") == 1 and "--batch" in page
    restore, accept = save.repairs
    assert "--batch" in restore.command and "--batch" in accept.command
    assert run(vault, f"{accept.command} --yes", words="all is well").code == 0
    assert violations.violations(asked(vault.root)).data["saves"] == []


def test_other_files_are_told_by_code_with_what_to_do_and_the_rest_page_by_page(vault: Vault) -> None:
    data = violations.violations(asked(vault.root)).data
    assert [(group.code, group.files.total, group.tone) for group in data["groups"]] == [
        ("hash-mismatch", 1, "bad"),
        ("foreign-name", 30, "quiet"),
    ]
    assert all(one.cause == CAUSES[one.code] for one in data["groups"])
    assert "restore the file" in data["groups"][0].hint and len(data["groups"][1].files.rows) == violations.SHOWN
    (group,) = violations.violations(asked(vault.root, code="foreign-name", page="99")).data["groups"]
    assert len(group.files.rows) == 30
    assert violations.violations(asked(vault.root, code="no such code")).data["groups"] == []


def test_every_code_of_a_problem_is_explained_in_plain_words_once_for_all_its_files(vault: Vault) -> None:
    assert set(CAUSES) == set(HINTS)
    page = visitor(vault.root).get("/violations").text
    for code in ("foreign-name", "hash-mismatch", "vanished", "mutated"):
        assert page.count(str(escape(CAUSES[code].meaning))) == 1, code


def test_a_copy_that_only_the_disk_knows_of_is_in_the_group_of_all_copies(
    vault: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = paths(vault)[0]["transcript"].replace(".md", " (conflicted copy laptop).md")
    vault.put({copy.removeprefix("memory/"): b"another text"})
    vault.reindex()
    (group,) = violations.violations(asked(vault.root, code="conflict-copy")).data["groups"]
    assert [path for path, _ in group.files.rows] == [copy]
    # A page of ours that two machines wrote: no row has it.
    beside = "MEMORY (conflicted copy laptop).md"
    (vault.root / beside).write_text("# Memory\n\nTwo machines wrote this.\n", "utf-8")
    monkeypatch.setattr(violations, "OF_CODE", 1)
    pages = [violations.violations(asked(vault.root, code="conflict-copy", page=str(one))).data for one in (1, 2)]
    assert [path for page in pages for path, _ in page["groups"][0].files.rows] == [copy, beside]


def test_a_violation_is_shown_to_its_agent_alone(vault: Vault) -> None:
    path = paths(vault)[3]["summary"]
    (save,) = violations.violations(asked(vault.root, "scout")).data["saves"]
    assert [one.violation.path for one in save.files] == [path]
    # Restoring all would restore the other agent's, too.
    assert violations.violations(asked(vault.root)).data["restore_all"].command == ""
    for wrong in (path, paths(vault)[0]["manifest"], "../../etc/passwd", ""):
        with pytest.raises(UsageError) as refused:
            violations.show(asked(vault.root, path=wrong))
        assert refused.value.code == "unknown-violation"
    assert visitor(vault.root).get("/violations/show", params={"path": path}).status_code == 404


def test_what_changed_is_shown_line_by_line(vault: Vault) -> None:
    data = violations.show(asked(vault.root, path=paths(vault)[0]["summary"])).data
    rows = {row.kind: row for row in data["differing"].rows}
    assert "keeps its word" in rows["gone"].text and "breaks " + HOSTILE.replace("\u202e", "") in rows["new"].text
    assert rows["gone"].before == rows["new"].after and not data["why_not"]


def test_of_a_file_that_went_all_that_it_held_is_shown_and_of_lost_bytes_nothing(vault: Vault) -> None:
    path = paths(vault)[2]["transcript"]
    data = violations.show(asked(vault.root, path=path)).data
    assert data["changed"].state == "gone" and data["differing"].gone > 10
    with vault.database(readonly=False) as database:
        integrity_store.drop_bytes(database, [path])
    data = violations.show(asked(vault.root, path=path)).data
    assert data["differing"] is None and "no longer exist" in data["why_not"]
    assert [way.command.split(" ")[3:5][way.command.split(" ")[3] == "violations"] for way in data["repairs"]] == [
        "accept",
        "remove",
    ]


def test_no_secret_is_shown_and_a_change_of_nothing_else_is_said_to_be_one(vault: Vault) -> None:
    path = paths(vault)[3]["summary"]
    page = visitor(vault.root, "scout").get("/violations/show", params={"path": path}).text
    assert "differ only in what is never shown" in page and "ghp_" not in page
    answer = vault.call("violations", "list", path)
    assert answer.code == 0 and not answer.out and "never shown" in answer.err


def test_hostile_names_and_texts_are_text_and_looking_writes_nothing(vault: Vault) -> None:
    before = contents(vault.root), contents(vault.state, but=BESIDE)
    guest = visitor(vault.root)
    shown = harmless(guest.get("/violations").text)
    assert "<b onclick=x>1.md" in shown.text
    link = next(link for link in shown.links if link.startswith("/violations/show") and "summary" in link)
    page = guest.get(link)
    assert page.status_code == 200 and "<script>alert(1)</script>" in harmless(page.text).text
    assert "7007" not in page.text
    assert (contents(vault.root), contents(vault.state, but=BESIDE)) == before


def test_lines_that_are_alike_are_left_out_but_for_a_few_around_a_change() -> None:
    before = "\n".join(f"line {number}" for number in range(1, 31))
    after = before.replace("line 8\n", "line eight\n").replace("line 20\n", "") + "\nmore"
    found = differing(before, after)
    assert (found.gone, found.new, found.whole) == (2, 2, True)
    told = [row[:3] for row in found.rows if row.kind != "same"]
    assert told == [
        ("skipped", None, None),
        ("gone", 8, None), ("new", None, 8),
        ("skipped", None, None),
        ("gone", 20, None),
        ("skipped", None, None),
        ("new", None, 30),
    ]  # fmt: skip
    assert {(row.before or 0) - (row.after or 0) for row in found.rows if row.kind == "same"} == {0, 1}
    assert differing(before, before).rows == [] and differing("", "x").new == 1


def test_however_long_texts_and_lines_are_what_is_shown_stays_short() -> None:
    lines = differing("x\n" * 300_000, "y\n" * 300_000)
    assert not lines.whole and lines.gone == 300_000 and len(lines.rows) <= ROWS
    # Of these nearly every line could be nearly every other one: what costs a comparison most.
    mixed = differing(*("\n".join(str(step * number % 100) for number in range(990)) for step in (1, 37)))
    assert len(mixed.rows) == ROWS and not mixed.whole
    wide = differing("z" * 2_000_000, "q" * 2_000_000).rows
    assert all(len(row.text) <= WIDE + 1 for row in wide)
