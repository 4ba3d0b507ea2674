"""What the page does: each action is shown, then done once as it was shown, for one agent, by nobody but a person."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from workbench import NOW, Vault, cast, contents

pytest.importorskip("starlette", reason="the extra `ui` is not installed")

from starlette.testclient import TestClient
from ui_pages import ADDRESS, BESIDE, HOSTILE, PORT, Elements, harmless, visitor

from signet_sync.app.workspace import open_to_write
from signet_sync.entities import operations
from signet_sync.formats.timestamps import parse_instant
from signet_sync.integrity import operations as integrity_operations
from signet_sync.memories import operations as memories_operations
from signet_sync.settings.model import Settings
from signet_sync.storage import state_dir
from signet_sync.sync.store import violations as violations_store
from signet_sync.web import acting

NOW_US = parse_instant(NOW) or 0
HEADERS = {"origin": ADDRESS, "sec-fetch-site": "same-origin"}
MEMORY = f"Deploys happen on Tuesdays {HOSTILE}"


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Two summaries changed, a transcript went, another agent's changed; a proposal; a memory."""

    def make(vault: Vault) -> None:
        paths = [vault.session(number) for number in (1, 2, 3)]
        paths.append(vault.session(4, agent_id="scout"))
        vault.reindex()
        with open_to_write(str(vault.root), Settings()) as workspace:
            jo = operations.create(workspace, "default", "user", "Jo <b>M</b>", now_us=NOW_US).id
            operations.set_section(workspace, "default", jo, "preferences", "Prose.", now_us=NOW_US)
            proposal = operations.set_section(
                workspace, "default", jo, "preferences", f"Tables {HOSTILE}", propose=True, now_us=NOW_US
            ).event_id
            remembered = memories_operations.remember(
                workspace, "default", MEMORY, kind="note", tags=(), private=False, session=None, now_us=NOW_US
            )
        for session in (paths[0], paths[1], paths[3]):
            spoil(vault, session["summary"])
        (vault / paths[2]["transcript"]).unlink()
        vault.reindex()
        known = {"paths": paths, "entity": jo, "proposal": proposal, "memory": remembered.memory.id}
        (vault.root / "known.json").write_text(json.dumps(known))

    return cast(tmp_path_factory.mktemp("actions"), make)


@pytest.fixture
def vault(filled: Any, tmp_path: Path) -> Vault:
    found: Vault = filled(tmp_path)
    return found


def spoil(vault: Vault, path: str, word: str = "breaks") -> None:
    """Edits a sealed file."""
    text = (vault / path).read_text("utf-8")
    spoilt = re.sub("keeps|breaks|shatters", word, text)
    assert spoilt != text
    (vault / path).write_text(spoilt, "utf-8")


def known(vault: Vault) -> Any:
    """Paths and ids of what the vault holds."""
    return json.loads((vault.root / "known.json").read_text())


class Form:
    """A confirmation as it was shown: its page, its address and hidden fields."""

    def __init__(self, someone: TestClient, action: str, **target: str) -> None:
        self.someone = someone
        self.page = someone.get(f"/do/{action}", params=target)
        assert self.page.status_code == 200, self.page.text
        shown = harmless(self.page.text)
        self.address = next(
            str(one["action"])
            for tag, one in shown.found
            if tag == "form" and "method" in one and one["method"] == "post"
        )
        self.hidden = {str(one["name"]): str(one["value"]) for tag, one in shown.found if one.get("type") == "hidden"}

    def send(self, *, headers: dict[str, str] | None = None, **words: str) -> Any:
        """Confirms it."""
        return self.someone.post(
            self.address, data=self.hidden | words, headers=HEADERS if headers is None else headers
        )


def everything(vault: Vault) -> dict[str, str]:
    """All files of the workspace and its state."""
    return contents(vault.root) | contents(vault.state, but=(*BESIDE, "locks", "last-pass.json"))


def opened_violations(vault: Vault) -> list[str]:
    with vault.database() as database:
        return [one.path for one in violations_store.list_open(database, None)]


# ── each action ──


def test_a_changed_file_is_restored_as_the_confirmation_shows(vault: Vault) -> None:
    path = known(vault)["paths"][0]["summary"]
    form = Form(visitor(vault.root), "restore", path=path)
    assert "breaks its word" in form.page.text and "keeps its word" in form.page.text
    assert "written again as sealed" in form.page.text and "is replaced, and not kept" in form.page.text
    done = form.send()
    assert done.status_code == 200 and f"Restored {path}." in done.text
    assert "keeps its word" in (vault / path).read_text("utf-8") and path not in opened_violations(vault)


def test_a_missing_file_is_restored_and_one_is_accepted_as_gone(vault: Vault) -> None:
    path = known(vault)["paths"][2]["transcript"]
    someone = visitor(vault.root)
    accepting = Form(someone, "accept", path=path)
    assert "Its seal stays" in accepting.page.text
    assert "Restored" in Form(someone, "restore", path=path).send().text and (vault / path).exists()
    (vault / path).unlink()
    vault.reindex()
    assert "Accepted memory/" in Form(someone, "accept", path=path).send(reason="it was a test").text
    assert path not in opened_violations(vault)
    with vault.database() as database:
        (gone,) = violations_store.list_accepted_gone(database)
    assert (gone.path, gone.reason) == (path, "it was a test")


def test_a_changed_file_is_accepted_with_a_reason_and_never_without(vault: Vault) -> None:
    path = known(vault)["paths"][1]["summary"]
    someone = visitor(vault.root)
    for empty in ({}, {"reason": " \t"}):
        refused = Form(someone, "accept", path=path).send(**empty)
        assert refused.status_code == 400 and "Nothing was done: the reason is empty." in refused.text
    assert path in opened_violations(vault)
    done = Form(someone, "accept", path=path).send(reason="<b>I meant it</b>")
    assert f"Accepted {path}." in done.text and path not in opened_violations(vault)
    assert vault.rows("select reason from acceptances where path = ?", path) == [("<b>I meant it</b>",)]


def test_a_file_of_another_agent_is_settled_on_the_page_of_that_agent_alone(vault: Vault) -> None:
    theirs, someone = known(vault)["paths"][3]["summary"], visitor(vault.root)
    for action, target in (("restore", {"path": theirs}), ("accept", {"path": theirs}), ("restore", {})):
        assert someone.get(f"/do/{action}", params=target).status_code == 404
    form = Form(someone, "restore", path=theirs, agent="scout")
    done = form.send()
    assert "agent=scout" in form.address and "agent=scout" in str(done.url) and f"Restored {theirs}." in done.text
    assert theirs not in opened_violations(vault) and len(opened_violations(vault)) == 3


def test_a_proposal_is_approved_or_rejected_as_a_person(vault: Vault) -> None:
    proposal, jo = known(vault)["proposal"], known(vault)["entity"]
    someone = visitor(vault.root)
    rejecting = Form(someone, "reject", proposal=proposal)
    form = Form(someone, "approve", proposal=proposal)
    assert (
        "<del>Prose.</del>" not in form.page.text and "Prose." in form.page.text and "&lt;script&gt;" in form.page.text
    )
    assert "Approved" in form.send().text
    shown = vault.call("entity", "show", jo, "--json").json
    assert any("Tables" in str(one.get("text")) for one in shown["sections"]) and shown["proposals"] == []
    events = vault.call("entity", "log", jo, "--json").json["events"]
    assert [one["actor"] for one in events if one["op"] == "approve"] == ["person"]
    gone = rejecting.send(reason="no")
    assert gone.status_code == 409 and "No open proposal" in gone.text


def test_a_person_says_of_a_statement_that_it_is_done_not_true_or_holds(vault: Vault) -> None:
    someone = visitor(vault.root)
    vault.session(21, body="# New\n\n## Decisions\n\n- The lamp burns rape oil.\n\n## Next steps\n\n- Trim the wick.\n")
    vault.reindex()
    open_ones = "select id from statements where agent_id = 'default' and newest = 1 and status = 'open' and kind = ?"
    for kind in ("decision", "next"):
        ((statement,), *_) = vault.rows(open_ones, kind)
        shown = someone.get(f"/threads/{statement}").text
        assert all(label in shown for label in ("Not true any more…", "Keep…")), kind
        assert (f"handle={statement}&amp;status=done" in shown) is (kind == "next")
        told = Form(someone, "mark", handle=statement, status="done").page.text
        assert ("no next step or blocker" in told) is (kind == "next")
    for status in ("done", "open", "withdrawn", "open"):
        form = Form(someone, "mark", handle=statement, status=status)
        assert "your word counts" in form.page.text and form.send().status_code == 200
        assert vault.rows("select status from statements where id = ? and newest = 1", statement) == [(status,)]
    assert someone.get("/do/mark", params={"handle": statement, "status": "replaced"}).status_code == 404


def test_every_line_of_memory_md_that_names_a_statement_has_its_buttons(vault: Vault) -> None:
    someone = visitor(vault.root)
    vault.call("remember", "we use tabs", "--now", NOW)
    ((pinned,), *_) = vault.rows(
        "select id from statements where agent_id = 'default' and newest = 1 and status = 'open'"
    )
    vault.call("pin", pinned, "--now", NOW)
    named = set(re.findall(r"\^([fm]-[a-z2-7]+)", vault.page()))
    shown = someone.get("/page").text
    links = re.findall(r"/do/mark\?handle=([fm]-[a-z2-7]+)&amp;status=(pinned|unpinned)", shown)
    (unpinned,) = {one for one, word in links if word == "unpinned"}
    assert len(links) == len(named) > 2 and pinned.startswith(unpinned)
    assert shown.count("Unpin…") == 1 and all(any(full.startswith(one) for full, _ in links) for one in named)


def test_a_memory_is_pinned_unpinned_and_forgotten(vault: Vault) -> None:
    someone, memory = visitor(vault.root), known(vault)["memory"]
    assert Form(someone, "mark", handle=memory, status="pinned").send().status_code == 200
    assert vault.rows("select count(*) from pins")[0][0] == 1
    assert someone.get("/do/mark", params={"handle": memory, "status": "pinned"}).status_code == 400
    assert "no pin" in Form(someone, "mark", handle=memory, status="unpinned").send().text
    form = Form(someone, "forget", memory=memory)
    assert "Deploys happen on Tuesdays &lt;/title&gt;" in form.page.text
    (vault / "MEMORY.md").write_text(vault.page().replace("# Working Memory", "# My own words"))
    done = form.send().text
    assert "Forgotten" in done and "its previous content is kept as MEMORY.user-" in done
    assert vault.rows("select count(*) from memories where id = ?", memory) == [(0,)]
    assert "Deploys happen" not in vault.page()


# ── nothing is done that was not shown ──


def test_what_changed_meanwhile_is_shown_as_it_is_now_and_nothing_is_done(vault: Vault) -> None:
    someone, ids = visitor(vault.root), known(vault)
    path = ids["paths"][0]["summary"]
    forms = [Form(someone, "restore", path=path), Form(someone, "accept", path=path)]
    spoil(vault, path, "shatters")
    for form in forms:
        late = form.send(reason="it was right")
        assert late.status_code == 409 and "This has changed since you looked, so nothing was done." in late.text
        assert "shatters" in (vault / path).read_text("utf-8")
    assert "shatters" in forms[0].send().text
    # What is shown now can be confirmed.
    again = Elements(forms[1].send(reason="it was right").text)
    forms[1].hidden = {str(one["name"]): str(one["value"]) for _, one in again.found if one.get("type") == "hidden"}
    assert [one["value"] for _, one in again.found if one.get("name") == "reason"] == ["it was right"]
    assert "Accepted memory/" in forms[1].send(reason="it was right").text


def test_what_is_saved_during_the_pass_before_a_restore_is_not_replaced(
    vault: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An editor waits for no lock."""
    path = known(vault)["paths"][0]["summary"]
    run_pass = integrity_operations.run_pass

    def saved_after(*given: Any) -> Any:
        outcome = run_pass(*given)
        spoil(vault, path, "shatters")
        return outcome

    someone = visitor(vault.root)
    for action in ("restore", "accept"):
        form = Form(someone, action, path=path)
        with monkeypatch.context() as race:
            race.setattr(integrity_operations, "run_pass", saved_after)
            late = form.send(reason="it is right")
        assert late.status_code == 409 and "nothing was done" in late.text
        assert "shatters" in (vault / path).read_text("utf-8")
        spoil(vault, path)


def test_a_form_works_once_however_often_it_is_sent(vault: Vault) -> None:
    someone, path = visitor(vault.root), known(vault)["paths"][2]["transcript"]
    form = Form(someone, "accept", path=path)
    answers: list[Any] = []
    sending = [threading.Thread(target=lambda: answers.append(form.send(reason="once"))) for _ in range(2)]
    for one in sending:
        one.start()
    for one in sending:
        one.join()
    answers.append(form.send(reason="another"))
    assert {str(one.url) for one in answers} == {str(answers[0].url)}
    assert all("Accepted" in one.text for one in answers)
    assert vault.rows("select reason from acceptances") == [("once",)]


def test_a_form_that_is_not_ours_does_nothing(vault: Vault) -> None:
    path = known(vault)["paths"][0]["summary"]
    someone = visitor(vault.root)
    form, other = (
        Form(someone, "restore", path=path),
        Form(someone, "restore", path=known(vault)["paths"][1]["summary"]),
    )
    before = everything(vault)
    for hidden in (
        {"text": "nothing of the form"},
        form.hidden | {"seal": "0" * 64},
        form.hidden | {"seal": "ü"},
        form.hidden | {"state": "0" * 64},
        form.hidden | {"once": "another"},
        other.hidden,
        Form(someone, "accept", path=path).hidden,
        Form(visitor(vault.root), "restore", path=path).hidden,
    ):
        refused = someone.post(form.address, data=hidden, headers=HEADERS)
        assert refused.status_code == 403 and "Nothing was done" in refused.text
    # For another agent it is another form.
    assert someone.post(f"{form.address}&agent=scout", data=form.hidden, headers=HEADERS).status_code == 403
    assert everything(vault) == before


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": f"http://localhost:{PORT}"}, 403),
        ({"origin": ADDRESS, "sec-fetch-site": "cross-site"}, 403),
        ({"origin": ADDRESS, "host": "evil.example"}, 403),
        ({"origin": ADDRESS, "cookie": "x=y"}, 403),
        ({"origin": ADDRESS, "content-type": "text/plain"}, 415),
    ],
    ids=lambda one: " ".join(one.values()) if isinstance(one, dict) else str(one),
)
def test_a_form_that_another_page_sends_does_nothing(vault: Vault, headers: dict[str, str], status: int) -> None:
    """Even with everything that the form itself holds."""
    someone = visitor(vault.root)
    form = Form(someone, "forget", memory=known(vault)["memory"])
    if "cookie" in headers:
        someone.cookies.clear()
    data = urlencode(form.hidden)
    sent = {"content-type": "application/x-www-form-urlencoded"} | headers
    assert someone.post(form.address, content=data, headers=sent).status_code == status
    assert someone.post(f"{form.address}&token=the-token", content=data, headers=sent).status_code == status
    assert vault.rows("select count(*) from memories") == [(1,)]


def test_a_form_that_is_too_large_does_nothing(vault: Vault) -> None:
    form = Form(visitor(vault.root), "accept", path=known(vault)["paths"][2]["transcript"])
    large = form.send(reason="x" * 300_000)
    assert large.status_code == 413 and "too large" in large.text
    assert form.send(**{f"f{number}": "" for number in range(60)}).status_code == 400
    assert "Accepted" in form.send(reason="Short").text


def test_a_page_that_only_shows_has_no_forms_and_takes_none(vault: Vault) -> None:
    ids = known(vault)
    someone, actor = visitor(vault.root, read_only=True), visitor(vault.root)
    pages = ("/", "/violations", f"/entities/{ids['entity']}", f"/threads/{ids['memory']}")
    for page in pages:
        shown = someone.get(page)
        assert shown.status_code == 200 and "/do/" not in shown.text and 'method="post"' not in shown.text, page
        assert "/do/" in actor.get(page).text, page
    assert someone.get("/do/restore").status_code == 404
    refused = someone.post("/do/restore", data={"text": "x"}, headers=HEADERS)
    assert (refused.status_code, refused.headers["allow"]) == (405, "GET, HEAD")
    for method in ("PUT", "DELETE", "PATCH", "OPTIONS"):
        assert actor.request(method, "/do/restore", headers=HEADERS).status_code == 405
    assert actor.post("/recall", headers=HEADERS).status_code == 405


# ── other processes, failures ──


@contextmanager
def held(vault: Vault) -> Iterator[None]:
    """The workspace as a process holds it that works on it."""
    with state_dir.workspace_lock(state_dir.locate(str(vault.root))):
        yield


def test_while_another_process_works_the_page_says_so_and_the_same_form_works_later(
    vault: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(acting, "PATIENCE", 0.1)
    form = Form(visitor(vault.root), "accept", path=known(vault)["paths"][2]["transcript"])
    with held(vault):
        busy = form.send(reason="Said <later>")
        assert busy.status_code == 503 and "Another process is working on this workspace" in busy.text
        assert "Said &lt;later&gt;" in busy.text
    assert "Accepted" in form.send(reason="Said later").text
