"""`fleet report`: one document of many workspaces, as a page and as SARIF, without any secret that a file holds."""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

import artifacts_fixture as made
import pytest
from fleet_tables import here
from history_vault import git
from workbench import NOW, Answer, Vault, call, numbered

from signet_sync.cli.formats import fleet_report
from signet_sync.fleet import engines
from signet_sync.fleet.report import page
from signet_sync.fleet.report.workspace import ReportRequest, report_one

SECRET = "ghp_" + "aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1vW3xY5"
LOCAL = ("--engine", "local", "--workers", "1")
EVIL = "<script>window.__pwned=1</script>&\"'"
OTHER = "5e5510ee-0000-4000-8000-000000000001"


def report(*words: str | Path) -> Answer:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engines, "run", here)
        answer = call("fleet", "report", *words, "--now", NOW)
    assert answer.code == 0 and answer.err == "", answer
    return answer


def document(*words: str | Path) -> Any:
    return report("--json", *words).json


def lay(vault: Vault) -> None:
    """Beside the vault, which is well: workspaces in which something is wrong, of every kind."""
    folder = vault.root.parent
    for number in (1, 2, 3):
        vault.session(number)
    leaky = Vault(folder / "leaky")
    leaky.session(1, project=f"/x/{SECRET}")
    leaky.put(made.summary(session_id=OTHER, body=f"# x\n\nthe key {SECRET} here\n"))
    leaky.put(made.transcript(**numbered(4) | {"sanitizer_version": f"old {SECRET}"}))
    hurt = Vault(folder / f"hurt {EVIL.replace('/', '')}")
    paths = {number: hurt.session(number) for number in (1, 2, 9)}
    summary = hurt / paths[1]["summary"]
    summary.write_bytes(summary.read_bytes() + b"edited\n")
    (hurt / paths[1]["manifest"]).write_bytes(b"no frontmatter " + EVIL.encode())
    (hurt / paths[2]["transcript"]).unlink()
    (hurt / paths[2]["transcript"]).mkdir()
    hurt.put(made.tombstone(**{k: v for k, v in numbered(9).items() if k == "session_id"}), "memory/tombstones")
    (folder / "empty").mkdir()
    Vault(folder / f"of-{SECRET}").put(made.summary(body=f"# {SECRET}\n"))


@pytest.fixture(scope="module")
def mould(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fleet")
    lay(Vault(folder / "well"))
    return folder


class Told(NamedTuple):
    """What one call printed as JSON and wrote: the page, the log."""

    printed: str
    page: Path
    log: Path


@pytest.fixture(scope="module")
def told(mould: Path, tmp_path_factory: pytest.TempPathFactory) -> Told:
    into = tmp_path_factory.mktemp("report")
    html, sarif = into / "page.html", into / "log.sarif"
    places = [*sorted(mould.iterdir()), mould / "nowhere"]
    return Told(report("--json", *places, "--html", html, "--sarif", sarif).out, html, sarif)


@pytest.fixture(scope="module")
def found(told: Told) -> Any:
    return json.loads(told.printed)


def test_it_says_of_every_workspace_what_is_wrong_with_it(found: Any, mould: Path) -> None:
    wrong = Counter((Path(one["workspace"]).name[:4], one["kind"], one["code"]) for one in found["findings"])
    assert wrong == {
        ("leak", "secret", "secret-suspected"): 4,
        ("of-[", "secret", "secret-suspected"): 1,
        ("hurt", "changed", "hash-mismatch"): 1,
        ("hurt", "invalid", "frontmatter-missing"): 1,
        ("hurt", "unreadable", "not-a-file"): 1,
        ("hurt", "came-back", "tombstoned"): 3,
    }
    kinds = Counter(one["kind"] for one in found["findings"])
    assert {kind: found["counts"][kind] for kind in kinds} == kinds
    assert found["workspaces"] == 6 and len(found["by_workspace"]) == 5
    (lost,) = found["unreachable"]
    assert lost["workspace"] == str(mould / "nowhere") and "does not exist" in lost["message"]
    assert found["by_rule"] == [{"rule": "github", "files": 5, "workspaces": 2}]
    assert all(one["rules"] == (["github"] if one["kind"] == "secret" else []) for one in found["findings"])


def test_the_problems_are_those_that_check_finds(found: Any, mould: Path) -> None:
    for folder in mould.iterdir():
        checked = call("--workspace", folder, "check", "--json", "--now", NOW).json
        told = {(p["path"], p["code"], p["message"]) for p in checked["problems"]}
        mine = [one for one in found["findings"] if one["workspace"] == str(folder) and one["kind"] != "secret"]
        assert {(one["path"], one["code"], one["message"]) for one in mine} == told


def test_it_says_what_grows_and_when_each_was_last_seen(found: Any, mould: Path) -> None:
    of = {Path(one["workspace"]).name: one for one in found["by_workspace"]}
    well = of["well"]
    assert (well["sessions"], well["artifacts"], well["agents"]) == (3, 9, 1)
    assert well["bytes"] == sum(path.stat().st_size for path in (mould / "well/memory").iterdir())
    assert well["last_session"] == "2026-03-28T10:01:00.000Z" and of["empty"]["last_session"] is None
    weeks = {one["week"]: one for one in found["by_week"]}
    assert sum(one["sessions"] for one in weeks.values()) == found["counts"]["sessions"]
    assert weeks["2026-W13"]["bytes"] > well["bytes"]


def test_growth_counts_four_weeks_and_those_before_and_nothing_to_come(tmp_path: Path) -> None:
    vault = Vault(tmp_path / "vault")
    for number, day in enumerate(("2026-03-29", "2026-03-03", "2026-02-20", "2026-01-01", "2027-01-01"), 1):
        vault.session(number, captured_at=f"{day}T10:00:00.000Z")
    found = document(vault.root)
    (one,) = found["by_workspace"]
    assert (one["sessions"], one["sessions_recent"], one["sessions_before"]) == (5, 2, 1)
    assert [week["week"] for week in found["by_week"]] == ["2026-W01", "2026-W08", "2026-W10", "2026-W13"]
    assert one["last_session"].startswith("2026-03-29")


def test_it_names_the_rules_that_made_the_files_and_which_are_older(found: Any) -> None:
    versions = {(one["field"], one["value"]): one for one in found["by_version"]}
    current = versions["sanitizer_version", "sanitize_transcript_v2"]
    assert current["current"] and current["workspaces"] == 3
    (older,) = (one for one in found["by_version"] if not one["current"])
    assert older["value"] == "old [REDACTED:github]" and older["files"] == 1


def test_no_form_holds_a_secret_whatever_held_it(told: Told, found: Any) -> None:
    lines = "\n".join(fleet_report.lines(found))
    for text in (told.printed, lines, told.page.read_text(), told.log.read_text()):
        assert SECRET not in text
        assert "github" in text


def test_a_repository_is_checked_and_reported_like_its_folder(tmp_path: Path) -> None:
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    vault = Vault(tmp_path / "vault")
    (vault / vault.session(1)["summary"]).write_bytes(b"x")
    git(vault.root, "init", "-q", "-b", "main")
    git(vault.root, "add", "-f", "memory")
    git(vault.root, "-c", "user.name=Ada", "-c", "user.email=ada@example.org", "commit", "-q", "-m", "memory")
    url = f"git+file://{vault.root}@main"
    checked = call("fleet", "check", url, vault.root, *LOCAL, "--json").json
    assert checked["unreachable"] == [] and {one["workspace"] for one in checked["problems"]} == {url, str(vault.root)}
    found = call("fleet", "report", url, vault.root, *LOCAL, "--json").json
    first, second = ({**one, "workspace": ""} for one in found["by_workspace"])
    assert first == second and len(found["findings"]) == 2


def test_seals_of_an_index_show_what_a_hash_does_not(tmp_path: Path) -> None:
    vault = Vault(tmp_path / "vault")
    path = vault.session(1)["summary"]
    vault.reindex()
    name, raw = made.summary(**numbered(1) | {"body": "# Session 1\n\nAnother text of lantern in src/queue.py.\n"})
    assert path == f"memory/{name}"
    (vault / path).write_bytes(raw)
    without, compared = document(vault.root), document(vault.root, "--with-index")
    assert without["findings"] == [] and not without["by_workspace"][0]["seals_compared"]
    assert [(one["kind"], one["code"]) for one in compared["findings"]] == [("changed", "mutated")]
    assert compared["by_workspace"][0]["seals_compared"]


def test_many_findings_are_counted_and_some_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("signet_sync.fleet.report.workspace.MOST", 2)
    vault = Vault(tmp_path / "vault")
    for number in range(1, 4):
        (vault / vault.session(number)["summary"]).write_bytes(b"x")
    made_of_one = report_one(ReportRequest(str(vault.root), 0))
    assert made_of_one.totals["invalid"] == 3 and len(made_of_one.findings) == 2


# ── the page ──


class Reader(HTMLParser):
    """Notes every element with its attributes, and the text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_page_stands_by_itself_and_what_files_say_is_text(told: Told, found: Any) -> None:
    text = told.page.read_text()
    read = Reader(text)
    assert not {tag for tag, _ in read.elements} & {"script", "link", "img", "iframe", "object", "base", "form"}
    for _, given in read.elements:
        assert not any(name.startswith("on") or name in ("src", "style") for name in given)
        assert given.get("href", "#").startswith("#")
    assert "url(" not in text and "@import" not in text
    for one in found["by_workspace"]:
        assert one["workspace"] in read.text
    for one in found["findings"]:
        assert one["path"] in read.text
    assert "__pwned" in read.text and "default-src 'none'" in text


def test_a_new_report_replaces_a_former_one_and_no_other_file(mould: Path, tmp_path: Path) -> None:
    into = {"--html": tmp_path / "page.html", "--sarif": tmp_path / "log.sarif"}
    given = [word for pair in into.items() for word in pair]
    report(mould / "well", *given)
    before = [path.read_text() for path in into.values()]
    report(mould / "leaky", *given)
    after = [path.read_text() for path in into.values()]
    assert all(old != new for old, new in zip(before, after, strict=True))
    for option, path in into.items():
        path.write_text("of a person\n")
        answer = call("fleet", "report", mould / "well", option, path, *LOCAL, "--json")
        assert answer.code == 2 and answer.json["error"]["code"] == "not-writable"
        assert path.read_text() == "of a person\n"
    assert sorted(tmp_path.iterdir()) == sorted(into.values())


def test_what_the_page_leaves_out_is_counted(found: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "MOST", 2)
    text = page.page(found, "")
    assert "… and 3 more." in text  # of five files with a secret


def test_a_page_of_nothing_is_a_page(tmp_path: Path) -> None:
    shown = page.page(document(tmp_path / "nowhere"), "")
    assert "1 workspace: no findings, 1 not reached" in shown


def test_the_page_is_well_wide_and_narrow_light_and_dark(told: Told) -> None:
    pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    pytest.importorskip("axe_playwright_python", reason="axe is not installed")
    from browsers import Visit, browser

    with browser() as chromium:
        visit = Visit(chromium, told.page.as_uri())
        visit.enter()
        assert visit.grid(axe=True) == []
        # axe-core puts a script of its own into the page.
        assert visit.page.evaluate("window.__pwned") is None and visit.faults == []


# ── SARIF ──


def test_sarif_names_every_finding_in_its_workspace_and_what_was_not_reached(told: Told, found: Any) -> None:
    log = json.loads(told.log.read_text())
    assert log["version"] == "2.1.0" and log.keys() <= {"$schema", "version", "runs"}
    (run,) = log["runs"]
    ids = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert len(ids) == len(set(ids))
    named = set()
    for result in run["results"]:
        assert ids[result["ruleIndex"]] == result["ruleId"] and result["message"]["text"]
        place = result["locations"][0]["physicalLocation"]
        assert place["region"]["startLine"] >= 1
        artifact = place["artifactLocation"]
        base = run["originalUriBaseIds"][artifact["uriBaseId"]]
        assert base["uri"].startswith("file:///") and base["uri"].endswith("/")
        assert re.fullmatch(r"[A-Za-z0-9/._~%:-]+", base["uri"] + artifact["uri"])
        named.add((unquote(base["uri"])[len("file://") : -1], unquote(artifact["uri"]), result["level"]))
    assert named == {
        (one["workspace"], one["path"], "warning" if one["kind"] == "secret" else "error") for one in found["findings"]
    }
    (invocation,) = run["invocations"]
    (note,) = invocation["toolExecutionNotifications"]
    assert invocation["executionSuccessful"] is False and "nowhere" in note["message"]["text"]


@pytest.mark.parametrize(
    ("workspace", "uri"),
    [
        ("/srv/a b", "file:///srv/a%20b/"),
        ("s3://bucket/ws/a", "s3://bucket/ws/a/"),
        ("git+https://example.org/x.git@main#memory", None),
        ("zip://inner::s3://bucket/a.zip", None),
        ("zip:///srv/a.zip!/inner", None),
    ],
)
def test_a_workspace_is_a_base_where_a_path_can_follow_it(workspace: str, uri: str | None) -> None:
    finding = {"workspace": workspace, "kind": "invalid", "code": "x", "path": "memory/a.md", "line": 1}
    log = json.loads(fleet_report.sarif({"findings": [finding | {"message": "m", "hint": ""}], "unreachable": []}))
    (base,) = log["runs"][0]["originalUriBaseIds"].values()
    assert base.get("uri") == uri and base["description"]["text"] == workspace
    assert "invocations" not in log["runs"][0]
