"""The page for people: who is let in, what every answer carries, its frame, its overview, the server itself."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from agents import until
from workbench import ROOT, Vault, cast

pytest.importorskip("starlette", reason="the extra `ui` is not installed")

from ui_pages import ADDRESS, PORT, TOKEN, asked, site, stranger, visitor

from signet_sync.web import app, formatting, overview
from signet_sync.web.app import make
from signet_sync.web.link_targets import sections
from signet_sync.web.markdown import Links
from signet_sync.web.request import ViewRequest, WebPage
from signet_sync.web.security import HEADERS, Keys


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Any:
    def make_it(vault: Vault) -> None:
        for number in (1, 2, 3):
            vault.session(number, project="/home/ada/code/lantern", harness="codex")
        vault.session(
            4,
            agent_id="other",
            memory_sentence="In otherland the loop of src/other.py ends after five tries, and says so in its log.",
        )
        vault.reindex()

    return cast(tmp_path_factory.mktemp("ui"), make_it)


@pytest.fixture
def vault(filled: Any, tmp_path: Path) -> Vault:
    made: Vault = filled(tmp_path)
    return made


# ── who is let in ──


def test_the_token_opens_the_page_and_leaves_the_address(vault: Vault) -> None:
    someone = stranger(vault.root)
    first = someone.get("/page?token=the-token&day=2026-03-28")
    assert (first.status_code, first.headers["location"]) == (303, f"{ADDRESS}/page?day=2026-03-28")
    cookie = first.headers["set-cookie"]
    assert cookie.startswith(f"signet-sync-{PORT}=") and TOKEN not in cookie
    assert cookie.endswith("; HttpOnly; SameSite=Strict; Path=/")
    assert someone.get("/").status_code == 200


def test_without_token_or_cookie_a_plain_page_says_how_to_get_in(vault: Vault) -> None:
    for path in (
        "/",
        "/page",
        "/static/style.css",
        "/events",
        "/nowhere",
        "/?token=wrong",
        "/?token=",
        "/?token=tökên",
    ):
        answer = stranger(vault.root).get(path)
        assert answer.status_code == 403, path
        assert "Open the complete address that signet-sync ui printed" in answer.text
        assert "lantern" not in answer.text
    assert stranger(vault.root).get("/", headers={"cookie": f"signet-sync-{PORT}=guess; x=\x7f"}).status_code == 403


@pytest.mark.parametrize(
    "headers",
    [
        [("host", "evil.example")],
        [("host", "127.0.0.1")],
        [("host", f"127.0.0.1:{PORT + 1}")],
        [("host", f"127.0.0.1:{PORT}.evil.example")],
        [("host", f"127.0.0.1:{PORT}"), ("host", "evil.example")],
        [("origin", "http://evil.example")],
        [("origin", "null")],
        [("origin", f"http://127.0.0.1:{PORT + 1}")],
        [("sec-fetch-site", "cross-site")],
        [("sec-fetch-site", "same-site"), ("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "document")],
        [("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "iframe")],
    ],
    ids=lambda headers: " ".join(value for _, value in headers),
)
def test_a_request_that_another_page_made_is_refused_though_the_cookie_comes_with_it(
    vault: Vault, headers: list[tuple[str, str]]
) -> None:
    someone = visitor(vault.root)
    assert someone.get("/", headers=headers).status_code == 403
    if headers[0][0] != "sec-fetch-site" or headers[-1][1] == "iframe":
        assert someone.get("/?token=the-token", headers=headers).status_code == 403


def test_a_link_with_the_token_on_another_page_leads_in_by_a_page_of_ours(vault: Vault) -> None:
    """A strict cookie does not go along with a redirect of a visit that began elsewhere."""
    someone = stranger(vault.root)
    headers = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
    first = someone.get('/page?token=the-token&q="><script>', headers=headers)
    assert first.status_code == 200
    assert f'content="0; url={ADDRESS}/page?q=%22%3E%3Cscript%3E"' in first.text
    assert someone.get("/", headers={"sec-fetch-site": "same-origin"}).status_code == 200


def test_what_a_browser_is_started_with_opens_the_page_once(vault: Vault) -> None:
    keys = Keys(TOKEN, once="only-once")
    assert stranger(vault.root, token=keys).get("/?token=only-once").status_code == 303
    assert stranger(vault.root, token=keys).get("/?token=only-once").status_code == 403
    assert stranger(vault.root, token=keys).get("/?token=").status_code == 403
    assert stranger(vault.root, token=keys).get("/?token=the-token").status_code == 303


def test_a_path_leads_to_no_other_host(vault: Vault) -> None:
    somebody = stranger(vault.root)
    assert somebody.get(f"{ADDRESS}//evil.example/?token=the-token").headers["location"].startswith(f"{ADDRESS}//")
    sent: list[Any] = []

    async def ask_without_a_slash() -> None:
        headers = [(b"host", f"127.0.0.1:{PORT}".encode())]
        scope = {"type": "http", "method": "GET", "path": "@evil.example/", "query_string": b"token=the-token"}

        async def send(message: Any) -> None:
            sent.append(message)

        await make(site(vault.root), TOKEN, PORT)(scope | {"headers": headers}, send, send)

    asyncio.run(ask_without_a_slash())
    assert sent[0]["status"] == 403 and b"location" not in dict(sent[0]["headers"])


def test_cookies_of_other_servers_of_this_machine_lock_nobody_out(vault: Vault) -> None:
    """They come along, for cookies know no ports; whatever they are called and hold."""
    cookie = stranger(vault.root, token=(keys := Keys(TOKEN))).get("/?token=the-token").headers["set-cookie"]
    name, ours = cookie.partition(";")[0].split("=")
    for others in ('theme={"dark": [1, 2]}', f"{name}=tossed", f"{name}", 'a="b; c[]=d', "=;;"):
        asking = stranger(vault.root, token=keys)
        assert asking.get("/page", headers={"cookie": f"{others}; {name}={ours}"}).status_code == 200, others
        assert asking.get("/page", headers={"cookie": others}).status_code == 403, others


# ── what every answer carries ──


def failing(ask: ViewRequest) -> WebPage:
    raise ZeroDivisionError("a secret of the program")


def unreadable(ask: ViewRequest) -> WebPage:
    raise PermissionError(13, "Permission denied", "/somewhere/<b>")


def test_every_answer_says_what_a_browser_must_not_do(vault: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "VIEWS", [*app.VIEWS[:3], ("/failing", "failing", failing)])
    someone = visitor(vault.root)
    another = stranger(vault.root)
    answers = {
        200: someone.get("/"),
        303: another.get("/?token=the-token"),
        304: someone.get(
            "/static/style.css", headers={"if-none-match": someone.get("/static/style.css").headers["etag"]}
        ),
        403: stranger(vault.root).get("/"),
        404: someone.get("/nowhere"),
        405: someone.post("/"),
        500: someone.get("/failing"),
    }
    for status, answer in answers.items():
        assert answer.status_code == status
        for name, value in HEADERS.items():
            assert answer.headers.get_list(name) == [value], (status, name)
        assert answer.headers.get_list("cache-control") == ["no-store"], status
        assert "server" not in answer.headers
    policy = answers[200].headers["content-security-policy"]
    assert policy.startswith("default-src 'none'") and "unsafe" not in policy
    assert "secret" not in answers[500].text and "Traceback" not in answers[500].text
    assert "ZeroDivisionError" in answers[500].text


# ── errors ──


def test_errors_say_what_happened_and_what_to_do(vault: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "VIEWS", [*app.VIEWS[:3], ("/unreadable", "unreadable", unreadable)])
    someone = visitor(vault.root)
    missing = someone.get("/nowhere")
    assert "There is nothing at this address." in missing.text and 'href="/page"' not in missing.text
    unknown = someone.get("/?agent=nobody")
    assert unknown.status_code == 404 and "Unknown agent: nobody." in unknown.text
    shut = someone.get("/unreadable")
    assert shut.status_code == 503 and "Permission denied" in shut.text and "/somewhere/&lt;b&gt;" in shut.text


def test_without_a_workspace_or_an_index_the_page_opens_and_says_what_to_do(tmp_path: Path) -> None:
    nowhere = visitor(tmp_path / "nowhere")
    assert "signet-sync setup" in nowhere.get("/").text
    (tmp_path / "bare" / "memory").mkdir(parents=True)
    bare = visitor(tmp_path / "bare")
    assert "signet-sync reindex" in bare.get("/").text
    for view in ("/page", "/sessions", "/threads", "/violations", "/recall", "/entities"):
        page = bare.get(view)
        assert page.status_code == 200 and "signet-sync reindex" in page.text, view
    assert not (tmp_path / "nowhere").exists()


def test_a_port_that_is_taken_is_a_plain_error(vault: Vault) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        answer = vault.call("ui", "--no-open", "--port", str(taken.getsockname()[1]))
    assert answer.code == 2 and "cannot be used: Address already in use — omit --port" in answer.err


# ── what is shown ──


def test_values_are_shown_whole_and_a_forgotten_one_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "t.html").write_text("{{ value }}|{{ marked|safe }}")
    template = formatting.environment(str(tmp_path)).get_template("t.html")
    assert (
        template.render(value="a\x1b[31m<\udcff\u2066\n", marked="<i>\x00") == "a\\x1b[31m&lt;\\xff\\u2066\n|<i>\\x00"
    )
    with pytest.raises(Exception, match="'marked' is undefined"):
        template.render(value=None)


def test_addresses_carry_the_agent_and_whatever_a_name_holds() -> None:
    url = Links({"session": "/sessions/{token}/{session:path}", "static": "/static/{path}"}, "other", "default")
    assert url("session", token="t", session="a/../b?c#d %", page=2) == (
        "/sessions/t/a%2F..%2Fb%3Fc%23d%20%25?page=2&agent=other"
    )
    assert url("session", token="t", session="\udcff", agent="default", q=None) == "/sessions/t/%FF"
    assert url("static", path="x.css") == "/static/x.css"


# ── the overview ──


def test_the_overview_says_what_is_wrong_and_what_to_do(vault: Vault) -> None:
    ((path,),) = vault.rows("select path from seals where path like 'memory/2026-03-28%--summary.md'")
    (vault / path).write_text((vault / path).read_text().replace("number1x", "another"))
    vault.reindex()
    data = overview.show(asked(vault.root)).data
    assert data["held"]["problems"] == 1
    assert [(one.message, command) for one, command in data["advice"]] == [
        ("no agent is running, so changes in the vault are not indexed", f"signet-sync --workspace {vault.root} run")
    ]
    other = overview.show(asked(vault.root, "other")).data["held"]
    counts = vault.call("status", "--json").json["counts"]
    assert data["held"]["sessions"] + other["sessions"] == counts["sessions"] and not other["problems"]
    assert data["held"]["problems"] == counts["violations"] + counts["invalid"] + counts["tombstoned"]


def test_links_of_memory_md_lead_to_our_pages_and_never_to_another_agents(vault: Vault) -> None:
    ours = overview.page(asked(vault.root)).data["targets"]
    assert {target.view for target in ours.values()} >= {"session", "node"}
    path = next(name for name in ours if name.startswith("memory/"))
    theirs = vault / "agents/other/MEMORY.md"
    theirs.write_text(f"[[{path}|summary]]\n\n{theirs.read_text()}")
    found = overview.page(asked(vault.root, "other")).data
    assert found["sections"][0].lines[0].prose.targets == {path}
    assert path not in found["targets"] and any(name.startswith("memory/") for name in found["targets"])


def test_a_line_of_a_page_is_split_into_words_links_and_handles() -> None:
    page = sections("person\n# A\n- **x** y [[memory/a.md|summary]] ^t-abc\n\n<!-- signet:end 00 -->\nno [[open ^T-1")
    assert [(one.level, one.heading) for one in page] == [(0, ""), (1, "A")]
    item, plain = page[1].lines
    assert item.prose.targets == {"memory/a.md", "t-abc"} and "<strong>x</strong> y" in item.prose.html(None)
    assert (item.item, plain.item, str(plain.prose.html(None))) == (True, False, "no [[open ^T-1")
    warned, risen = sections("> [!warning] 1 file changed\n- a _b_ _(score=0.7)_ ^m-abc")[0].lines
    assert str(warned.prose.html(None)) == "1 file changed"
    assert str(risen.prose.html(None)) == "a <em>b</em> <em>(score=0.7)</em> ^m-abc"
    for hostile in ("[[", "[[a|", "**", "**a", " ^", " ^t-a", "_(", " _(a"):
        assert sections(hostile * 50_000)  # each would take minutes if a mark looked for its end again and again


# ── the server ──


@pytest.fixture
def served(vault: Vault) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A real `ui` and its address."""
    words = [sys.executable, "-m", "signet_sync", "--workspace", str(vault.root), "ui", "--json", "--no-open"]
    process = subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)}
    )
    try:
        assert process.stdout is not None
        lines = ""
        while "}" not in lines:
            line = process.stdout.readline()
            assert line, process.stderr and process.stderr.read()
            lines += line
        yield process, json.loads(lines)["url"]
    finally:
        process.kill()
        process.wait()
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()


def listening(pid: int) -> set[str]:
    """The addresses that a process listens on, as the kernel knows them."""
    sockets = set()
    for descriptor in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError):  # the process closes files while they are listed
            name = os.readlink(f"/proc/{pid}/fd/{descriptor}")
            sockets |= {name[8:-1]} if name.startswith("socket:[") else set()
    found = set()
    for table in ("tcp", "tcp6", "udp", "udp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            words = line.split()
            if words[9] in sockets and words[3] in ("0A", "07"):
                found.add(f"{table} {words[1].partition(':')[0]}")
    return found


def spoken(port: int, request: str) -> socket.socket:
    """A connection on which a request was sent."""
    connection = socket.create_connection(("127.0.0.1", port), timeout=120)
    connection.sendall(request.encode())
    return connection


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_the_server_listens_on_loopback_and_ends_at_once(
    vault: Vault, served: tuple[subprocess.Popen[str], str]
) -> None:
    process, url = served
    found = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/\?token=([\w-]{43})", url)
    assert found is not None
    port, token = int(found[1]), found[2]
    assert listening(process.pid) == {"tcp 0100007F"}
    host = f"Host: 127.0.0.1:{port}\r\n"
    with spoken(port, f"GET /?token={token} HTTP/1.1\r\n{host}Connection: close\r\n\r\n") as first:
        answer = first.makefile(encoding="latin-1").read()
    cookie = re.search(r"set-cookie: ([^;]+);", answer)
    assert answer.startswith("HTTP/1.1 303") and cookie is not None and "\r\nserver:" not in answer.lower()
    with spoken(port, f"GET / HTTP/1.1\r\n{host}Cookie: {cookie[1]}\r\n\r\n"):
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=120) == 0
    assert process.stderr is not None and process.stderr.read() == ""
    until(lambda: not Path(f"/proc/{process.pid}/fd").exists())


# ── tables as JSON ──


@pytest.mark.parametrize("view", ["sessions", "threads", "violations", "recall", "entities", "settings"])
def test_a_table_links_to_its_values_as_json(vault: Vault, view: str) -> None:
    someone = visitor(vault.root)
    assert f'href="/{view}?json=1"' in someone.get(f"/{view}").text
    answer = someone.get(f"/{view}?json=1")
    assert answer.headers["content-type"] == "application/json" and "<" not in answer.text and answer.json()
