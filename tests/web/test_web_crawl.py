"""Every page that links lead to: it is there, writes nothing, shows hostile words as words, and one agent's alone."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qsl, urlencode

import artifacts_fixture as made
import pytest
from workbench import NOW, Vault, contents, numbered

pytest.importorskip("starlette", reason="the extra `ui` is not installed")

from starlette.testclient import TestClient
from ui_pages import BESIDE, HOSTILE, Elements, harmless, visitor

from signet_sync.app.workspace import open_to_write
from signet_sync.entities import operations
from signet_sync.formats.timestamps import parse_instant
from signet_sync.sessions.live import store as live
from signet_sync.settings.model import Settings
from signet_sync.web.actions import ACTIONS
from signet_sync.web.app import VIEWS

NOW_US = parse_instant(NOW) or 0
EVIL = f"{HOSTILE} [x](javascript:alert(3)) ![i](https://evil.example/i.png) [[../../etc/passwd|y]]"
IDS = ('evil/5"<b>?#& ..', 'evil/6"<b>?#& ..')
SECRET = "ghp_" + "a1B2" * 9
ALIKE = 2  # links of one kind that are followed


def furnish(vault: Vault) -> None:
    """Two agents with something of everything; every word of `mallory` is an attack, `default` has its own."""
    for number in (1, 2):
        vault.session(number, project="/home/ada/lantern", body=f"# The plainword {number}\n\nThe key is {SECRET}.\n")
    who: dict[str, Any] = {"agent_id": "mallory", "project": f"/home/{EVIL.replace('/', '')}", "harness": EVIL}
    said = f"{EVIL}\n\n- {EVIL}\n\n| {EVIL} |\n|---|\n| {EVIL} |\n\n> {EVIL}\n\n"
    at = "2026-03-19T09:00:00.000Z"
    spoken = f"## User · {at}\n\n{said}- `Bash` · {at} · `{EVIL}`\n  ```\n  {EVIL}\n"
    for number, name in enumerate(IDS, 5):
        this = who | {"session_id": name, "captured_at": numbered(number)["captured_at"]}
        sentence = f"In lantern {number} {EVIL} bounded the retry loop of src/queue.py so that it ends at last here."
        body = f"# {said}## Decisions\n\n- We decided {number} {EVIL} in src/queue.py.\n\n```{EVIL}\n{EVIL}\n"
        summary = made.summary(**this, body=body, memory_sentence=sentence)
        vault.put(dict([summary, made.transcript(**this, body=spoken), made.manifest(**this, body=said)]))
    vault.put(made.summary(**who, session_id="5e5510bb-0000-4000-8000-000000000009", content_sha256="0" * 64))
    vault.put({"<b onclick=x>.md": b"mine"})
    vault.reindex()
    for agent, word in (("default", "plainword"), ("mallory", EVIL)):
        for text in (f"Remember {word}", f"Pinned {word}"):
            assert vault.call("remember", text, "--agent", agent).code == 0
        ((pinned,),) = vault.rows("select id from memories where agent_id = ? and content like 'Pin%'", agent)
        assert vault.call("pin", pinned, "--agent", agent).code == 0
        with open_to_write(str(vault.root), Settings()) as workspace:
            jo = operations.create(workspace, agent, "user", f"Jo {word}", now_us=NOW_US).id
            operations.set_section(workspace, agent, jo, "preferences", word, propose=True, now_us=NOW_US)
            operations.set_section(workspace, agent, jo, "overview", f"{word} of [[{jo}|x]]", now_us=NOW_US)
    path = next(vault.memory.glob(f"*{made.token_for('mallory', session_id=IDS[0])}--summary.md"))
    path.write_text(path.read_text("utf-8").replace("We decided", f"We dropped {EVIL}"), "utf-8")
    vault.reindex()
    assert vault.call("recall", "remember", "--agent", "mallory", "--now", NOW).code == 0
    with vault.database(readonly=False) as database, database.transaction():
        turn = live.LiveTurn(1, "user", f"Hello {EVIL}", "2026-03-29T11:00:00.000Z")
        live.buffer(database, "mallory", f"key {EVIL}", [turn])
    profile = vault / vault.rows("select path from garden_files where agent_id = 'mallory' and file = 'profile'")[0][0]
    profile.write_text(profile.read_text("utf-8").replace("of [[", f"<img src=x onerror=y> {SECRET} of [["), "utf-8")
    page = vault / "agents/mallory/MEMORY.md"
    page.write_text(f"{EVIL} [[javascript:alert(1)|{EVIL}]]\n\n{page.read_text()}")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Vault, TestClient]]:
    folder = tmp_path_factory.mktemp("crawl")
    with pytest.MonkeyPatch.context() as here:
        here.setenv("SIGNET_STATE", str(folder / "state"))
        vault = Vault(folder / "<b onclick=alert(1)>&\u202e\x07")
        furnish(vault)
        yield vault, visitor(vault.root)


def crawl(guest: TestClient, begin: str) -> dict[str, Elements]:
    """Every page that is reached by links, but for those that are all alike."""
    found: dict[str, Elements] = {}
    waiting, kinds = [begin], Counter[str]()
    while waiting:
        address = waiting.pop()
        answer = guest.get(address)
        assert answer.status_code == 200, (address, answer.text)
        assert "\x07" not in answer.text and SECRET not in answer.text, address
        page = found[address] = harmless(answer.text)
        assert not [tag for tag, _ in page.found if tag == "b"], address
        for link in dict.fromkeys(page.links):
            kind = re.sub(r"[a-z2-7]{12,16}|%\w\w|\d", "", link.partition("#")[0])
            if link.startswith("/") and link not in (*found, *waiting) and kinds[kind] < ALIKE and "json=1" not in link:
                kinds[kind] += 1
                waiting.append(link)
    return found


def test_every_link_leads_to_a_page_of_its_agent_that_writes_nothing(
    world: tuple[Vault, TestClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    vault, guest = world
    monkeypatch.setenv("SIGNET_STATE", str(vault.root.parent / "state"))
    before = contents(vault.root), contents(vault.state, but=BESIDE)
    hostile = {path: page for path, page in crawl(guest, "/?agent=mallory").items() if "agent=mallory" in path}
    plain = {path: page for path, page in crawl(guest, "/").items() if "agent=mallory" not in path}
    assert (contents(vault.root), contents(vault.state, but=BESIDE)) == before
    firsts = {path.split("/")[1] for path, _, _ in VIEWS}
    for pages in (hostile, plain):
        assert {path.partition("?")[0].split("/")[1] for path in pages} >= firsts
    assert not [path for path, page in hostile.items() if "plainword" in page.text]
    assert not [path for path, page in plain.items() if "onerror" in page.text]
    assert sum("<script>alert(1)</script>" in page.text for page in hostile.values()) > 20
    acted = {path.split("/")[2].partition("?")[0] for path in hostile if path.startswith("/do/")}
    assert acted == {*ACTIONS}
    # What is of one agent is nothing for another one.
    for path in hostile:
        place, _, query = path.partition("#")[0].partition("?")
        given = [(name, value) for name, value in parse_qsl(query) if name != "agent"]
        if place.count("/") > 1 and (given or not place.startswith("/do/")):
            assert guest.get(f"{place}?{urlencode(given)}").status_code == 404, path
    for odd in (f"/{EVIL}", f"/?agent={EVIL}", f"/threads/{EVIL}", f"/do/{EVIL}", f"/sessions/{EVIL}/{EVIL}"):
        answer = guest.get(odd)
        assert answer.status_code == 404 and harmless(answer.text), odd
