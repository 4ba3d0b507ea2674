"""Entities at work: every operation, what is refused, what people do by hand, and a crash at every step."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from invented_secrets import some
from workbench import Vault

from signet_sync.app.workspace import open_to_write
from signet_sync.entities import maintenance, observe, operations, own_edits, queries
from signet_sync.entities import store as entities_store
from signet_sync.entities.observe import Observations
from signet_sync.entities.operations import EntityResult
from signet_sync.entities.repository import EntityRepository
from signet_sync.entities.store import EntityFile
from signet_sync.errors import UsageError
from signet_sync.formats.entity_paths import Finding, parse_path
from signet_sync.formats.timestamps import DAY, SECOND, parse_instant
from signet_sync.settings.model import Settings
from signet_sync.storage import state_dir, writing
from signet_sync.sync import engine
from signet_sync.sync.database import reopen
from signet_sync.sync.workspace import Request, Workspace

NOW = "2026-03-29T12:00:00.000Z"
NOW_US = parse_instant(NOW) or 0
ME = "default"
SECRET = "ghp_" + some(Random(6), 36)
ROLE, NEEDS = "## Role\n<!-- section role -->\n", "## Needs\n<!-- section needs -->\n"
WHY = "why: each of them matters; until: 2026-05-01; plan: prune to seven in May"


@pytest.fixture
def work(vault: Vault) -> Iterator[Workspace]:
    """The workspace of an empty vault."""
    with open_to_write(str(vault.root), Settings()) as workspace:
        yield workspace


def part(work: Workspace, name: str = "Inner Critic", **given: Any) -> EntityResult:
    return operations.create(work, ME, "part", name, now_us=NOW_US, **given)


def put(work: Workspace, made: EntityResult, section: str, text: str, **given: Any) -> EntityResult:
    return operations.set_section(work, ME, made.id, section, text, now_us=given.pop("now_us", NOW_US), **given)


def add(work: Workspace, made: EntityResult, section: str, text: str, **given: Any) -> EntityResult:
    return operations.append(work, ME, made.id, section, text, now_us=given.pop("now_us", NOW_US), **given)


def quotable(work: Workspace, *said: str, number: int = 1) -> dict[str, str]:
    """Lines of an artifact by what they say, as evidence names them."""
    path = Vault(Path(work.root)).session(number, body="# Said\n\n" + "\n\n".join(said) + "\n")["summary"]
    lines = (Path(work.root) / path).read_text("utf-8").split("\n")
    with state_dir.workspace_lock(work.state):
        engine.run_locked(work, Request(now_us=NOW_US, project=False))
    return {words: f"{path}#{lines.index(words) + 1}" for words in said}


def file_of(work: Workspace, made: EntityResult) -> Path:
    return Path(work.root) / shown(work, made.id).path


def text_of(work: Workspace, made: EntityResult) -> str:
    return file_of(work, made).read_text(encoding="utf-8")


def look(work: Workspace, *paths: Path) -> Observations:
    with state_dir.workspace_lock(work.state):
        places = [parse_path(str(path.relative_to(work.root))) for path in paths]
        return observe.look(repo_of(work), {place.id for place in places if place} or None)


def repo_of(work: Workspace) -> EntityRepository:
    return EntityRepository(work, ME, NOW_US)


def listing(work: Workspace) -> list[EntityFile]:
    look(work)
    return queries.list_entities(repo_of(work))


def shown(work: Workspace, ref: str) -> queries.EntityView:
    look(work)
    return queries.view(repo_of(work), repo_of(work).require(ref))


def damage(work: Workspace) -> list[Finding]:
    lost = [one for one in entities_store.drift(work.database, ME) if not one.id]
    return queries.verify_log(repo_of(work)) + lost


def codes(work: Workspace, now_us: int = NOW_US) -> set[tuple[str, str]]:
    return {(one.code, one.id) for one in queries.findings(work, ME, now_us=now_us)}


def drift(work: Workspace) -> list[tuple[str, str]]:
    return [(one.id, one.code) for one in entities_store.drift(work.database, ME)]


def guard(op: operations.Guard, work: Workspace, made: EntityResult, section: str | None = None, **given: Any) -> None:
    operations.guard(op, work, ME, made.id, section, now_us=NOW_US, **given)


def drop(work: Workspace, made: EntityResult, reason: str) -> None:
    operations.set_status(work, ME, made.id, "deprecated", reason=reason, now_us=NOW_US)


def prune(work: Workspace, made: EntityResult, section: str, item: str, reason: str = "because") -> EntityResult:
    return operations.prune(work, ME, made.id, section, item, reason=reason, now_us=NOW_US)


def undo(work: Workspace, done: EntityResult, **given: Any) -> EntityResult:
    return operations.undo(work, ME, done.token, now_us=NOW_US, **given)


def refused(code: str, act: Callable[..., Any], *given: Any, **more: Any) -> UsageError:
    with pytest.raises(UsageError) as caught:
        act(*given, **more)
    assert caught.value.code == code, caught.value
    assert caught.value.hint
    return caught.value


def in_step(work: Workspace) -> None:
    """The law of entities: every file is what its events tell, or waits for a maintainer; the chain is whole."""
    look(work)
    assert damage(work) == []
    waiting, repo = {entity_id for entity_id, _ in drift(work)}, repo_of(work)
    for row in entities_store.entities(work.database, ME):
        place = parse_path(row.path)
        assert place is not None
        for file, state in repo.state(row.id).items() if row.id not in waiting else ():
            assert (Path(work.root) / place._replace(file=file).path).read_bytes().decode() == state.text


# ── operations ──


def test_an_entity_is_made_with_its_profile_and_notes(work: Workspace) -> None:
    made = part(work)
    assert made.path == f"entities/parts/inner-critic--{made.id}/profile.md" and made.id.startswith("p-")
    seen = shown(work, "inner critic")
    assert [one.name for one in seen.sections] == [
        "identity", "role", "concerns", "needs", "highlights", "evidence", "open-questions", "change-log",
        "extensions", "notes/inbox", "notes/focus", "notes/parking-lot",
    ]  # fmt: skip
    assert (seen.title, seen.status, seen.kind, seen.drifted) == ("Inner Critic", "active", "part", False)
    assert f"- {NOW} — Created" in text_of(work, made)
    assert codes(work) == set()
    events = queries.log(repo_of(work), made.id)
    assert [(one.op, one.file) for one in events] == [("create", "notes"), ("create", "profile")]
    in_step(work)


def test_a_relationship_is_one_file_for_a_pair_and_a_type(work: Workspace) -> None:
    one, other = part(work), part(work, "Perfectionist")
    make = operations.create
    given = {"relation": "protects", "between": [one.id, "perfectionist"], "now_us": NOW_US}
    made = make(work, ME, "relationship", "Critic and Perfectionist", **given)
    assert f"- [[{one.path}|Inner Critic]]\n- [[{other.path}|Perfectionist]]" in text_of(work, made)
    again = {**given, "between": [other.id, one.id]}
    assert refused("entity-exists", make, work, ME, "relationship", "Once more", **again).hint.endswith(made.id)
    assert make(work, ME, "relationship", "Other", **{**given, "relation": "fears"}).id != made.id
    refused("relation-needed", make, work, ME, "relationship", "Alone", relation="x", between=[one.id], now_us=NOW_US)
    refused("relation-needed", make, work, ME, "relationship", "Bare", between=[one.id, other.id], now_us=NOW_US)
    refused("unknown-entity", make, work, ME, "relationship", "To none", **{**given, "between": [one.id, "nobody"]})
    refused("relation-unfit", make, work, ME, "part", "Typed", relation="x", now_us=NOW_US)
    refused("entity-exists", part, work, "INNER  critic")
    in_step(work)


def test_sections_are_set_and_added_to_and_items_are_pruned(work: Workspace) -> None:
    made = part(work)
    first = put(work, made, "Identity", "It checks everything.")
    second = put(work, made, "identity", "# Who\n\nIt checks everything twice.", now_us=NOW_US + SECOND)
    assert first.after == second.before and second.section == "identity"
    add(work, made, "identity", "And once more.")
    for text in ("Strict.", "Loyal."):
        add(work, made, "highlights", text)
    add(work, made, "notes/Parking Lot", "Ask about school.")
    gone = prune(work, made, "highlights", "1", "said twice")
    text = text_of(work, made)
    assert "### Who\n\nIt checks everything twice.\n\nAnd once more.\n" in text
    assert "- Loyal.\n" in text and "Strict." not in text
    assert "- 2026-03-29T12:00:01.000Z — Identity rewritten" in text, "the first words were no rewriting"
    (event,) = [one for one in queries.log(repo_of(work), made.id) if one.id == gone.event_id]
    assert event.text_part("reason") == "said twice" and event.text_part("gone") == "Strict."
    assert "Ask about school." in file_of(work, made).with_name("notes.md").read_text()
    refused("section-form", put, work, made, "highlights", "All of them")
    refused("section-form", prune, work, made, "role", "1")
    refused("item-unknown", prune, work, made, "highlights", "9")
    refused("reason-missing", prune, work, made, "highlights", "1", " ")
    refused("section-unknown", put, work, made, "moods", "x")
    refused("unknown-entity", operations.append, work, ME, "nobody", "role", "x", now_us=NOW_US)
    refused("reason-missing", put, work, made, "role", " \n ")
    in_step(work)


def test_a_name_that_may_mean_two_is_refused(work: Workspace) -> None:
    one, other = part(work), part(work, "Perfectionist")
    drop(work, one, "it was the same one")
    third = part(work)
    assert third.id not in (one.id, other.id), "an id is nobody's twice"
    error = refused("ambiguous-entity", operations.set_status, work, ME, "inner critic", "x", now_us=NOW_US)
    assert one.id in error.hint and third.id in error.hint


def test_deprecation_and_status_leave_a_reason_and_nothing_is_deleted(work: Workspace) -> None:
    made = part(work)
    operations.set_status(work, ME, made.id, "Resting", reason="a quiet summer", now_us=NOW_US)
    drop(work, made, "it has left")
    text = text_of(work, made)
    assert 'status: "deprecated"' in text and 'deprecated_reason: "it has left"' in text
    assert "Status: active → resting (a quiet summer)" in text and "Deprecated: it has left" in text
    operations.set_status(work, ME, made.id, "active", now_us=NOW_US)
    assert "deprecated_reason" not in text_of(work, made) and "Deprecated: it has left" in text_of(work, made)
    in_step(work)


def test_an_idempotency_key_gives_the_same_answer_and_refuses_another_request(work: Workspace) -> None:
    made = part(work, key="a")
    assert part(work, key="a").id == made.id and part(work, key="a").replayed
    first = put(work, made, "role", "It guards.", key="b")
    again = put(work, made, "role", "It guards.", key="b", now_us=NOW_US + DAY)
    assert again == first._replace(replayed=True)
    refused("idempotency-conflict", put, work, made, "role", "It hides.", key="b")
    assert "It guards." in text_of(work, made)
    assert sum(one.op == "set" for one in queries.log(repo_of(work))) == 1


def test_no_secret_reaches_a_file_a_row_or_the_ledger(vault: Vault, work: Workspace) -> None:
    made = part(work)
    done = put(work, made, "role", f"It knows the token {SECRET} by heart.")
    assert sum(done.redactions.values()) == 1
    add(work, made, "highlights", f"Its token is {SECRET}.", evidence=None)
    operations.set_status(work, ME, made.id, "active", reason=f"with {SECRET}", now_us=NOW_US)
    file = file_of(work, made)
    file.write_text(file.read_text().replace("## Needs", f"My own {SECRET}\n\n## Needs"))
    look(work)
    assert SECRET in file.read_text(), "a person's file is not touched"
    in_step_but = [one for one in vault.root.parent.rglob("*") if one.is_file() and SECRET.encode() in one.read_bytes()]
    assert in_step_but == [file]
    put(work, made, "needs", "Rest.")
    assert SECRET not in file.read_text() and "My own [REDACTED:" in file.read_text()
    in_step(work)


# ── what belongs to people ──


def test_what_a_person_locked_or_pinned_refuses_an_agent(work: Workspace) -> None:
    made = part(work)
    guard("lock", work, made, "Open Questions")
    guard("pin", work, made, "identity")
    guard("lock", work, made, "notes/inbox")
    assert "propose" in refused("section-locked", add, work, made, "open-questions", "Why?").hint
    refused("section-pinned", put, work, made, "identity", "Another.")
    refused("section-locked", put, work, made, "notes/inbox", "Another.")
    put(work, made, "identity", "A person may.", actor="person")
    put(work, made, "role", "Free.")
    guard("unpin", work, made, "identity")
    put(work, made, "identity", "Free again.")
    guard("lock", work, made)
    refused("section-locked", put, work, made, "role", "No.")
    refused("section-locked", operations.set_status, work, ME, made.id, "no", now_us=NOW_US)
    guard("unlock", work, made)
    assert shown(work, made.id).locks == ("open-questions", "notes/inbox")
    refused("actor-refused", guard, "unlock", work, made, actor="agent")
    in_step(work)


def test_a_proposal_waits_for_a_persons_word(work: Workspace) -> None:
    made = part(work)
    guard("lock", work, made)
    first = put(work, made, "role", "It guards.", propose=True)
    words = '"be careful" — said daily'
    refused("evidence-missing", add, work, made, "evidence", words, propose=True)
    line = quotable(work, "They say: be careful.")["They say: be careful."]
    second = add(work, made, "evidence", words, evidence=line, propose=True)
    third = put(work, made, "role", "It hides.", propose=True)
    assert "It guards." not in text_of(work, made)
    waiting = shown(work, made.id).proposals
    assert [(one.id, one.section, one.op) for one in waiting] == [
        (first.event_id, "role", "set"), (second.event_id, "evidence", "append_item"), (third.event_id, "role", "set"),
    ]  # fmt: skip
    answer = operations.review
    refused("actor-refused", answer, work, ME, first.event_id, approve=True, actor="agent", now_us=NOW_US)
    answer(work, ME, first.token, approve=True, now_us=NOW_US)
    answer(work, ME, second.event_id, approve=True, now_us=NOW_US)
    answer(work, ME, third.event_id, approve=False, reason="it does not", now_us=NOW_US)
    text = text_of(work, made)
    assert "It guards." in text and "It hides." not in text and second.token in text
    assert f'"be careful" — said daily [[{line.partition("#")[0]}|summary]]' in text
    assert shown(work, made.id).proposals == ()
    refused("unknown-proposal", answer, work, ME, third.event_id, approve=True, now_us=NOW_US)
    in_step(work)


# ── evidence and length ──


def test_an_agent_explains_a_section_that_outgrows_its_cap_and_a_person_is_only_warned(work: Workspace) -> None:
    made = part(work)
    long = "One more word about it. " * 120
    refused("section-cap", put, work, made, "role", long)
    assert put(work, made, "role", long, rationale=WHY).warnings
    assert put(work, made, "needs", long, actor="person").warnings
    assert put(work, made, "notes/inbox", long * 2).warnings
    assert put(work, made, "role", "Short again.").warnings == ()
    assert codes(work) == {("too-long", made.id)}, "the part is over its cap without a reason"


def test_evidence_quotes_a_line_of_an_artifact_and_its_token_leads_there(vault: Vault, work: Workspace) -> None:
    ended = vault.session(1)
    path = ended["summary"]
    lines = (vault / path).read_text().split("\n")
    body = lines.index("---", 1) + 1
    number = next(n for n, line in enumerate(lines, 1) if n > body and any(map(str.isalpha, line)))
    reopen(work)
    made = part(work)
    done = add(work, made, "evidence", "It shows the pattern.", evidence=f"{path}#{number}")
    (item,) = [one.items for one in shown(work, made.id).sections if one.name == "evidence"]
    assert item and lines[number - 1].lstrip("#- ")[:30] in item[0].text
    assert f"— It shows the pattern. [[{path}|summary]] {done.token}" in item[0].text
    found = queries.source(repo_of(work), done.token)
    assert (found.path, found.line, found.event.id, found.entity_path) == (path, number, done.event_id, made.path)
    refused("evidence-unknown", add, work, made, "evidence", "x", evidence="memory/none--summary.md#1")
    refused("evidence-empty", add, work, made, "evidence", "x", evidence=f"{path}#99999")
    refused("evidence-invalid", add, work, made, "evidence", "x", evidence=path)
    # Without a line, or with a quote that does not stand there, nothing is taken; the answer shows how it is done.
    for actor in ("agent", "person"):
        for words in ("He likes tea.", '"He likes tea" — so he said', f'"x" — y {done.token}'):
            error = refused("evidence-missing", add, work, made, "evidence", words, actor=actor)
            assert "--evidence 'memory/" in error.hint and "--text" in error.hint
    refused(
        "evidence-unquoted", add, work, made, "evidence", '"He likes tea" — so he said', evidence=f"{path}#{number}"
    )
    refused("text-empty", add, work, made, "evidence", '"" — nothing', evidence=f"{path}#{number}")
    bare = lines[number - 1].lstrip("#- ")
    own = add(work, made, "evidence", f'"{bare[:5]}" — its own words', evidence=f"{path}#{number}")
    assert f'- "{bare[:5]}" — its own words [[{path}|summary]] {own.token}' in text_of(work, made)
    refused("unknown-event", queries.source, repo_of(work), "ev:20260329T120000Z-01KMWQE6G00000000000000000")
    refused("token-invalid", queries.source, repo_of(work), "ev:yesterday")
    in_step(work)


# ── by hand ──


def test_one_lost_anchor_is_healed(work: Workspace) -> None:
    made = part(work)
    put(work, made, "role", "It guards.")
    file = file_of(work, made)
    whole = file.read_text()
    file.write_text(whole.replace("<!-- section role -->\n", ""))
    look(work, file)
    assert file.read_text() == whole
    in_step(work)


BROKEN: dict[str, Callable[[str], str | None]] = {
    "file-missing": lambda whole: None,
    "not-utf8": lambda whole: whole + "\udcff",
    "frontmatter-missing": lambda whole: "no entity file at all, but words",
    "frontmatter-invalid": lambda whole: whole.replace("status:", "status: [", 1),
    "title-missing": lambda whole: whole.replace("# Inner Critic\n", "", 1),
    "section-twice": lambda whole: whole + "\n" + ROLE,
    "section-missing": lambda whole: whole.replace(ROLE, "").replace(NEEDS, ""),
    "identity-changed": lambda whole: whole.replace("id: ", "id: x", 1),
}


@pytest.mark.parametrize("code", BROKEN)
@pytest.mark.parametrize("keep", ["file", "events"])
def test_a_maintainer_settles_every_drift_and_what_gives_way_stays_in_the_log(
    work: Workspace, code: str, keep: maintenance.Keep
) -> None:
    made = part(work)
    put(work, made, "role", "It guards.")
    file, settle = file_of(work, made), maintenance.resolve
    whole = file.read_text()
    text = BROKEN[code](whole)
    if text is None:
        file.unlink()
    else:
        file.write_bytes(text.encode("utf-8", "surrogateescape"))
    assert look(work, file).drifted == [made.path] and drift(work) == [(made.id, code)]
    refused("entity-drifted", put, work, made, "role", "It hides.")
    refused("actor-refused", settle, work, ME, made.id, keep, actor="person", now_us=NOW_US)
    if keep == "file" and code not in ("not-utf8", "section-missing", "identity-changed"):
        refused("file-unreadable", settle, work, ME, made.id, keep, actor="maintainer", now_us=NOW_US)
        return
    (planned,) = maintenance.preview(work, ME, made.id, keep, NOW_US)
    before = file.read_bytes() if file.exists() else None
    (done,) = settle(work, ME, made.id, keep, actor="maintainer", now_us=NOW_US)
    assert drift(work) == [] and file.read_text() == planned.after
    if keep == "events":
        assert planned.after == whole
        if before is not None:
            (event,) = [one for one in queries.log(repo_of(work)) if one.id == done.event_id]
            assert event.text_part("displaced") == before.decode("utf-8", "replace"), "what gives way stays in the log"
    if (keep, code) != ("file", "section-missing"):
        put(work, made, "role", "It hides.")
    refused("not-drifted", settle, work, ME, made.id, keep, actor="maintainer", now_us=NOW_US)
    in_step(work)


def test_a_second_folder_and_a_pipe_in_the_place_of_a_file_are_moved_away(work: Workspace) -> None:
    made = part(work)
    file = file_of(work, made)
    copy = file.parent.with_name(f"copy--{made.id}")
    shutil.copytree(file.parent, copy)
    assert look(work).drifted and {code for _, code in drift(work)} == {"id-twice"}
    maintenance.resolve(work, ME, made.id, "file", actor="maintainer", now_us=NOW_US)
    assert drift(work) == [] and not copy.exists() and (copy.parent / "copy (copy)/profile.md").exists()
    whole = file.read_text()
    file.unlink()
    os.mkfifo(file)
    look(work, file)
    assert drift(work) == [(made.id, "not-a-file")]
    maintenance.resolve(work, ME, made.id, "events", actor="maintainer", now_us=NOW_US)
    assert file.read_text() == whole and drift(work) == []
    in_step(work)


def test_folders_that_people_rename_copy_and_bring(work: Workspace) -> None:
    made, other = part(work), part(work, "Perfectionist")
    folder = (Path(work.root) / made.path).parent
    moved = folder.with_name(f"harsh-voice--{made.id}")
    folder.rename(moved)
    look(work)
    assert put(work, made, "role", "It guards.").path == f"entities/parts/{moved.name}/profile.md"
    in_step(work)
    # A file that no event tells of, well made: it counts; one that says it is another waits.
    text = text_of(work, other)
    for entity_id, name in (("p-aaaaaaaaaaaa", "p-aaaaaaaaaaaa"), ("p-bbbbbbbbbbbb", "p-cccccccccccc")):
        brought = moved.with_name(f"brought--{entity_id}")
        brought.mkdir()
        (brought / "profile.md").write_text(text.replace(other.id, name))
    seen = look(work)
    assert seen.edited == ["entities/parts/brought--p-aaaaaaaaaaaa/profile.md"]
    assert drift(work) == [("p-bbbbbbbbbbbb", "identity-changed")]
    in_step(work)


def test_a_file_that_was_in_place_when_its_folder_could_not_be_synced_is_nobody_elses_edit(
    work: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The caller is refused, and may ask again: it is done then, once, and by whom it was asked for."""
    made = part(work)
    replace = writing.replace

    def unsynced(*given: Any, **more: Any) -> Any:
        replace(*given, **more)
        raise OSError(errno.EIO, "fsync")

    with monkeypatch.context() as patch:
        patch.setattr(writing, "replace", unsynced)
        with pytest.raises(OSError, match="fsync"):
            put(work, made, "role", "It guards.", key="k")
    look(work)
    again = put(work, made, "role", "It guards.", key="k")
    told = [one.op for one in queries.log(repo_of(work), made.id)]
    assert told.count("set") == 1 and set(told) == {"create", "set"}, told
    assert file_of(work, made).read_text().count("It guards.") == 1 and again.replayed
    in_step(work)


# ── a crash at every step ──


def made_two(work: Workspace) -> tuple[EntityResult, EntityResult]:
    """A user and a part, with something in it."""
    user = operations.create(work, ME, "user", "Mina", now_us=NOW_US)
    made = part(work)
    put(work, made, "role", "It guards the gate.")
    return user, made


def test_an_entity_whose_files_were_not_written_is_made_by_the_next_command(tmp_path: Path) -> None:
    """A power cut may leave its events alone, or a part of their lines."""
    vault = Vault(tmp_path / "vault")
    with open_to_write(str(vault.root), Settings()) as work:
        made = part(work, key="once")
        folder = file_of(work, made).parent
        texts = {path.name: path.read_text() for path in folder.iterdir()}
        (page,) = Path(work.root).glob("entities/ledger/*.jsonl")
    first, second, *_ = page.read_bytes().splitlines(keepends=True)
    for left in (first + second, first[:-40], b""):
        shutil.rmtree(os.environ["SIGNET_STATE"])
        shutil.rmtree(folder)
        page.write_bytes(left)
        if first in left:
            folder.mkdir()
        assert vault.call("check", "--json").json["problems"] == [], "what is still to be written is no damage"
        with open_to_write(str(vault.root), Settings()) as work:
            assert part(work, key="once").id == made.id
            in_step(work)
            assert {path.name: path.read_text() for path in folder.iterdir()} == texts


def test_a_torn_line_a_lost_database_and_a_cut_ledger(vault: Vault, work: Workspace) -> None:
    _, made = made_two(work)
    (page,) = Path(work.root).glob("entities/ledger/*.jsonl")
    whole = page.read_bytes()
    page.write_bytes(whole + b'{"v":2,"id":"01KMW')
    assert [one.code for one in damage(work)] == ["torn"]
    put(work, made, "role", "It opens the gate.")
    in_step(work)
    for table in ("garden_files", "garden_chain", "garden_drift"):
        with work.database.transaction():
            work.database.execute(f"delete from {table}")
    assert listing(work)[1].id == made.id
    in_step(work)
    page.write_bytes(whole)
    assert [one.code for one in damage(work)] == ["truncated"]
    add(work, made, "role", "It closes it.")
    assert [one.code for one in damage(work)] == ["truncated"], "the next write does not hide it"
    assert "It opens the gate.\n\nIt closes it." in text_of(work, made)
    maintenance.resolve(work, ME, "ledger", "events", actor="maintainer", now_us=NOW_US)
    in_step(work)
    page.write_bytes(page.read_bytes().replace(b"It closes it.", b"It paints it!"))
    assert [one.code for one in damage(work)] == ["text-changed"]


# ── what the agent does by itself ──


def test_a_day_that_is_over_gets_one_line(work: Workspace) -> None:
    user, made = made_two(work)
    put(work, made, "role", "It opens the gate.", actor="person")
    with state_dir.workspace_lock(work.state):
        assert own_edits.summarize_days(work, [ME], NOW_US) == (), "the day is not over"
        assert set(own_edits.summarize_days(work, [ME], NOW_US + DAY)) == {user.path, made.path}
        assert own_edits.summarize_days(work, [ME], NOW_US + 2 * DAY) == ()
        with work.database.transaction():
            work.database.execute("delete from garden_days")
        assert own_edits.summarize_days(work, [ME], NOW_US + DAY) == (), "the log itself knows which days were told"
    line = "- 2026-03-29 — 3 events: 2 set, 1 create; by agent 2, person 1\n"
    assert text_of(work, made).count(line) == 1
    assert codes(work) == set()
    in_step(work)


def test_patterns_of_relationships_stand_in_the_users_overview(work: Workspace) -> None:
    user, one = made_two(work)
    other, third = part(work, "Perfectionist"), part(work, "Wanderer")
    put(work, user, "overview", "Likes tea.")
    for number, (relation, *pair) in enumerate((("fears", one, third), ("fears", other, third))):
        between = [row.id for row in pair]
        operations.create(work, ME, "relationship", f"E{number}", relation=relation, between=between, now_us=NOW_US)
    prune(work, user, "overview", "1", "all of them hang together")
    edge = operations.create(
        work, ME, "relationship", "Both", relation="polarized", between=[one.id, other.id], now_us=NOW_US
    )
    pair = f"[[{one.path}|Inner Critic]] and [[{other.path}|Perfectionist]]"
    line = f"- pattern: {pair} are polarized around [[{third.path}|Wanderer]].\n"
    assert line in text_of(work, user) and listing(work)[0].line == "Likes tea."
    drop(work, edge, "they talk")
    assert "pattern:" not in text_of(work, user) and "Likes tea." in text_of(work, user)
    operations.set_status(work, ME, edge.id, "active", now_us=NOW_US)
    assert line in text_of(work, user)
    refused("section-form", prune, work, one, "role", "1")
    prune(work, user, "overview", "1", "I know")
    operations.set_status(work, ME, other.id, "active", reason="again", now_us=NOW_US)
    assert "pattern:" not in text_of(work, user), "what somebody pruned stays pruned"
    guard("lock", work, user, "overview")
    operations.set_status(work, ME, edge.id, "resting", now_us=NOW_US)
    assert "pattern:" not in text_of(work, user)
    in_step(work)


# ── taking back, and saves from older versions ──


def test_one_edit_is_taken_back_and_later_ones_stay(work: Workspace) -> None:
    made = part(work)
    first = put(work, made, "role", "It guards.")
    second = put(work, made, "role", "It hides.")
    item = add(work, made, "highlights", "Strict.")
    add(work, made, "highlights", "Loyal.")
    done = undo(work, second)
    assert "It guards." in text_of(work, made) and "It hides." not in text_of(work, made)
    assert "Role: the edit of 2026-03-29 was taken back" in text_of(work, made)
    undo(work, item)
    assert "Strict." not in text_of(work, made) and "- Loyal." in text_of(work, made)
    undo(work, done, actor="person")
    assert "It hides." in text_of(work, made), "taking back is an edit, too"
    gone = prune(work, made, "highlights", "1")
    undo(work, gone)
    assert "- Loyal." in text_of(work, made)
    status = operations.set_status(work, ME, made.id, "resting", now_us=NOW_US)
    refused("undo-refused", undo, work, status)
    file = file_of(work, made)
    file.write_text(f"{file.read_text()}\n## Mine\n\nOne.\n")
    undo(work, put(work, made, "mine", "Two."))
    assert text_of(work, made).endswith("## Mine\n\nOne.\n"), "a section of a person's own"
    refused("undo-refused", undo, work, first)
    refused("unknown-event", operations.undo, work, ME, "ev:20260328T223406Z-01KMV9AJJ8000G40R40M30E209", now_us=NOW_US)
    refused("token-invalid", operations.undo, work, ME, first.event_id, now_us=NOW_US)
    guard("lock", work, made, "role")
    refused("section-locked", undo, work, done)
    in_step(work)


def test_an_edit_that_a_person_made_in_several_sections_is_taken_back_whole(work: Workspace) -> None:
    made = part(work)
    file = file_of(work, made)
    whole = file.read_text()
    file.write_text(whole.replace(ROLE, f"{ROLE}\nIt guards.\n").replace(NEEDS, f"{NEEDS}\nRest.\n"))
    look(work, file)
    (edit,) = [one for one in queries.log(repo_of(work), made.id) if one.op == "human_edit"]
    add(work, made, "concerns", "Mice.")
    done = operations.undo(work, ME, edit.token, now_us=NOW_US)
    text = text_of(work, made)
    assert "It guards." not in text and "Rest." not in text and "Mice." in text and done.section is None
    in_step(work)


def test_what_is_taken_back_keeps_to_the_soft_caps(work: Workspace) -> None:
    made = part(work)
    put(work, made, "role", "One more word about it. " * 130, rationale=WHY)
    assert put(work, made, "role", "One more word about it. " * 120).warnings == (), "it got shorter"
    short = put(work, made, "role", "Short again.")
    refused("section-cap", undo, work, short)
    assert undo(work, short, actor="person").warnings
    in_step(work)


def test_a_section_is_emptied_with_a_reason(work: Workspace) -> None:
    made = part(work)
    put(work, made, "role", "It guards.")
    done = put(work, made, "role", "", reason="nobody knows")
    assert f"{ROLE}\n{'## Concerns'}" in text_of(work, made) and "Role emptied: nobody knows" in text_of(work, made)
    undo(work, done)
    assert "It guards." in text_of(work, made)
    refused("section-form", put, work, made, "highlights", "", reason="x y")
    in_step(work)


def test_a_write_may_expect_what_it_has_read(work: Workspace) -> None:
    made = part(work)
    read = next(one for one in shown(work, made.id).sections if one.name == "role")
    done = put(work, made, "role", "It guards.", expect=read.sha256)
    refused("section-changed", put, work, made, "role", "It hides.", expect=read.sha256)
    assert add(work, made, "role", "Always.", expect=done.after).after


def test_a_save_of_an_older_version_drops_nothing_that_was_written_since(work: Workspace) -> None:
    made = part(work)
    put(work, made, "role", "It guards.", now_us=NOW_US)
    file = file_of(work, made)
    stale = file.read_text()
    put(work, made, "role", "It guards the gate.", now_us=NOW_US + SECOND)
    put(work, made, "needs", "Rest.", now_us=NOW_US + 2 * SECOND)
    anchor = "<!-- section concerns -->\n"
    file.write_text(stale.replace(anchor, f"{anchor}\nMice.\n"))
    seen = look(work, file)
    text = file.read_text()
    assert all(words in text for words in ("Mice.", "It guards the gate.", "Rest."))
    assert len(seen.notices) == 1 and "needs and role" in seen.notices[0] and "it was kept" in seen.notices[0]
    (event,) = [one for one in queries.log(repo_of(work), made.id) if one.op == "human_edit"]
    assert event.fact("kept") == ["needs", "role"] and event.section == "concerns"
    # Where both changed a section the person's text stands, and the other one is in the log.
    stale = file.read_text()
    put(work, made, "role", "It sleeps.", now_us=NOW_US + 3 * SECOND)
    file.write_text(stale.replace("It guards the gate.", "It dreams."))
    assert "replaced newer text of role" in look(work, file).notices[0]
    assert "It dreams." in file.read_text() and "It sleeps." not in file.read_text()
    # What both wrote alike is nobody's loss.
    stale = file.read_text()
    put(work, made, "role", "It flies.", now_us=NOW_US + 4 * SECOND)
    file.write_text(stale.replace("It dreams.", "It flies.").replace("Mice.", "Cats."))
    assert look(work, file).notices == []
    stale = file.read_text()
    put(work, made, "role", "It dreams.", now_us=NOW_US + 5 * SECOND)
    # A save without any change of its own is no edit; one of the newest version may take words out.
    events = len(queries.log(repo_of(work), made.id))
    file.write_text(stale)
    look(work, file)
    assert "It dreams." in file.read_text() and len(queries.log(repo_of(work), made.id)) == events
    file.write_text(file.read_text().replace("It dreams.\n", ""))
    assert look(work, file).notices == [] and "It dreams." not in file.read_text()
    in_step(work)


def test_a_rationale_excuses_a_long_section_until_its_day(work: Workspace) -> None:
    made = part(work)
    put(work, made, "role", "One more word about it. " * 120, rationale=WHY)
    assert codes(work) == set()
    assert codes(work, NOW_US + 60 * DAY) == {("rationale-over", made.id)}


def test_nobody_writes_the_change_log_but_we(work: Workspace) -> None:
    made = part(work)
    for actor in ("agent", "person"):
        refused("section-form", add, work, made, "change-log", "2026-03-29 — Approved by a person", actor=actor)
    put(work, made, "role", "x", reason=None)
    put(work, made, "role", "", reason=f"so\n- {NOW} — Approved by a person")
    assert text_of(work, made).count(f"\n- {NOW}") == 2, "a reason stays in its line"
    assert codes(work) == set()
