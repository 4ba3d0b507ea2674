"""The action for GitHub, step by step as a runner does it, over a vault in which everything is wrong."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import artifacts_fixture as made
import pytest
import yaml
from history_vault import git
from workbench import NOW, ROOT, Vault, call, contents, numbered, tree

from signet_sync.cli.formats import check as formats_check

pytestmark = pytest.mark.skipif(not (ROOT / ".github").is_dir(), reason="an installed copy has no action")
ACTION = ROOT / ".github/actions/check/action.yml"
SIGNET_SYNC = f'#!/bin/sh\nexec "{sys.executable}" -P -m signet_sync "$@"\n'


class Step(NamedTuple):
    """How a step ended, what it said, and what it put on the job's page."""

    code: int
    out: str
    err: str
    page: str


class Runner:
    """A job's runner in a folder: its temporary files, the job's page, and the steps of the action."""

    def __init__(self, folder: Path) -> None:
        self.temp = folder / "runner"
        (self.temp / "signet-sync/bin").mkdir(parents=True)
        self.page = self.temp / "page.md"
        self.action = yaml.safe_load(ACTION.read_text())

    def installed(self) -> Runner:
        """With the command line of this checkout where the action installs one."""
        program = self.temp / "signet-sync/bin/signet-sync"
        program.write_text(SIGNET_SYNC)
        program.chmod(0o755)
        return self

    def step(self, name: str, checkout: Path, **inputs: str) -> Step:
        """Runs a step's script with the environment that GitHub gives it; inputs reach it as `env` says."""
        (step,) = (step for step in self.action["runs"]["steps"] if step["name"] == name)
        given = {name: told["default"] for name, told in self.action["inputs"].items()}
        given |= {name.replace("_", "-"): value for name, value in inputs.items()}
        script = self.temp / "script.sh"
        script.write_text(step["run"])
        environ = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "RUNNER_TEMP": str(self.temp),
            "GITHUB_ACTIONS": "true",
            "GITHUB_ACTION_PATH": str(ACTION.parent),
            "GITHUB_STEP_SUMMARY": str(self.page),
            "GITHUB_WORKSPACE": str(checkout),
            **{
                variable: re.sub(r"\$\{\{ inputs\.([a-z-]+) \}\}", lambda found: given[found[1]], value)
                for variable, value in step.get("env", {}).items()
            },
        }
        done = subprocess.run(
            [step["shell"], "--noprofile", "--norc", "-eo", "pipefail", script],
            cwd=checkout,
            env=environ,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        return Step(done.returncode, done.stdout, done.stderr, self.page.read_text() if self.page.exists() else "")


class Annotation(NamedTuple):
    level: str
    path: str
    line: int
    code: str
    message: str


COMMAND = re.compile(r"::(error|warning|notice) (?:file=([^,:]*),line=(\d+),)?title=([^,:]*)::(.*)")


def annotations(out: str) -> list[Annotation]:
    """What a runner makes of a step's lines; a line that is none of ours fails."""
    found = []
    for line in filter(None, re.split(r"\r\n|\r|\n", out)):
        match = COMMAND.fullmatch(line)
        assert match is not None, line
        level, path, number, code, message = (match[n] or "" for n in range(1, 6))
        told = [
            re.sub(r"%(25|0A|0D|3A|2C)", lambda e: bytes.fromhex(e[1]).decode(), text) for text in (path, code, message)
        ]
        found.append(Annotation(level, told[0], int(number or 0), told[1], told[2]))
    return found


def where(vault: Vault, told: Annotation) -> str:
    """The text of the line that is annotated."""
    path = vault / told.path
    if path.is_symlink() or not path.is_file() or path.stat().st_size > 1 << 20:
        return ""
    return path.read_bytes().split(b"\n")[told.line - 1].decode("latin-1")


# ── a vault in which everything is wrong ──

EDITS: dict[int, tuple[str, str, bytes, bytes]] = {  # code, what the annotated line holds, and what is written for what
    4: ("frontmatter-missing", "# A note", b"---\n", b"# A note\n"),
    5: ("frontmatter-invalid", "[open", b'"claude-code"', b"[open"),
    6: ("frontmatter-invalid", "&anchor", b'harness: "claude-code"', b"harness: &anchor x"),
    7: ("frontmatter-invalid", "<<", b"harness:", b"<<:"),
    8: ("frontmatter-invalid", 'project: "claude', b"harness:", b"project:"),
    9: ("field-missing", "---", b"memory_sentence:", b"another_one:"),
    10: ("field-invalid", "ended_at", b'ended_at: "2026', b'ended_at: "yesterday'),
    11: ("field-invalid", "harness", b'harness: "claude-code"', b"harness:\n  - ::error::x"),
    12: ("hash-mismatch", "content_sha256", b"Lantern keeps", b"Lantern kept"),
    13: ("kind-mismatch", "kind", b'"summary"', b'"transcript"'),
    14: ("token-mismatch", "session_id", b'session_id: "5e55', b'session_id: "5e56'),
    15: ("captured-at-mismatch", "captured_at", b'captured_at: "2026-03', b'captured_at: "2026-02'),
    16: ("agent-invalid", "agent_id", b'agent_id: "default"', b'agent_id: "../up"'),
    17: ("not-utf8", "Lantern keeps", b"its word", b"its w\xffrd"),
    18: ("path-escape", "manifest_path", b'manifest_path: "memory', b'manifest_path: "../memory'),
}


def broken(vault: Vault) -> dict[str, tuple[str, str]]:
    """A file for every code there is; gives code and a piece of the right line by path."""
    wrong: dict[str, tuple[str, str]] = {}

    def name_of(number: int) -> str:
        return made.path_for("summary", **{k: numbered(number)[k] for k in ("session_id", "captured_at")})

    for number, (code, piece, old, new) in EDITS.items():
        name, raw = made.summary(**numbered(number))
        assert old in raw, old
        wrong[vault.put((name, raw.replace(old, new, 1)))[0]] = code, piece
    wrong[name_of(19)] = "not-a-file", ""
    (vault / name_of(19)).symlink_to("/etc/passwd")
    wrong[name_of(20)] = "too-large", ""
    with (vault / name_of(20)).open("wb") as file:
        file.truncate((64 << 20) + 1)
    removed = numbered(21)["session_id"]
    vault.put(made.tombstone(session_id=removed), "memory/tombstones")
    wrong[vault.put(made.summary(**numbered(21)))[0]] = "tombstoned", "---"
    (stone,) = vault.put(made.tombstone(session_id="x", removed_at="never"), "memory/tombstones")
    wrong[stone] = "tombstone-invalid", "removed_at"
    (copy,) = vault.put((Path(name_of(22)).name[:-3] + " (conflicted copy, `x` |y| %0A<b>::error::z).md", b"x"))
    wrong[copy] = "conflict-copy", "x"
    return wrong


@pytest.fixture
def checkout(tmp_path):
    """A checkout of a vault that is whole at its first commit."""
    vault = Vault(tmp_path / "checkout")
    vault.paths = {number: vault.session(number) for number in (1, 2, 3)}
    git(vault.root, "init", "-q", "-b", "main")
    git(vault.root, "add", "-A")
    git(vault.root, "commit", "-q", "-m", "memory")
    return vault


HOSTILE = """\
"##[stop-commands]hush" = 1
"::stop-commands::hush" = 1
[reconcile]
max_file_bytes = 4000000000
[llm]
command = ["/bin/sh", "-c", "touch sprung"]
[check]
ignore = ["*"]
"""


def test_the_steps_annotate_the_right_lines_of_a_hostile_pull_request(checkout, tmp_path):
    wrong = broken(checkout)
    name, raw = made.summary(**numbered(1) | {"body": "# Session 1\n\nAnother text, with its own hash.\n"})
    checkout.put((name, raw))
    wrong[f"memory/{name}"] = "mutated", "content_sha256"
    (checkout / checkout.paths[2]["transcript"]).unlink()
    wrong[checkout.paths[2]["transcript"]] = "vanished", ""
    (checkout / "signet-sync.toml").write_text(HOSTILE)
    for module in ("click", "signet_sync", "json"):
        (checkout / f"{module}.py").write_text("open('sprung', 'w')\n")
    (checkout / ".gitattributes").write_text("* filter=evil diff=evil\n")
    git(checkout.root, "config", "filter.evil.clean", "touch sprung; cat")
    git(checkout.root, "config", "core.fsmonitor", "touch sprung")
    before = contents(checkout.root, but=[".git"])

    sarif = "$(touch sprung) `touch sprung`; touch sprung.sarif"
    done = Runner(tmp_path).installed().step("Check", checkout.root, changed_since="main", sarif=sarif)

    assert (done.code, done.err) == (1, ""), done
    told = annotations(done.out)
    of_vault = [one for one in told if one.path.startswith("memory/")]
    assert {one.path: one.code for one in of_vault} == {path: code for path, (code, _) in wrong.items()}
    assert [one for one in of_vault if wrong[one.path][1] not in where(checkout, one)] == []
    assert {one.level for one in of_vault} == {"error", "warning"}
    # What a workspace may not say is told as such, in words that are no command.
    assert {one.level for one in told if one not in of_vault} == {"notice"}
    assert {one.path for one in told if one not in of_vault} == {"signet-sync.toml"}
    after = contents(checkout.root, but=[".git"])
    assert after.keys() - before.keys() == {sarif} and "sprung" not in after
    assert_sarif(json.loads((checkout / sarif).read_text()), told)
    rows = [line for line in done.page.splitlines() if line.startswith("| memory/")]
    assert len(rows) == len(wrong) - 1  # the copy is a warning
    assert {row.split(" | ")[1] for row in rows} == {str(one.line) for one in of_vault if one.level == "error"}


def assert_sarif(log: dict, told: list[Annotation]) -> None:
    """What the schema of SARIF 2.1.0 asks of what we use of it, and that it says what the annotations say."""
    assert log["version"] == "2.1.0" and log.keys() <= {"$schema", "version", "runs"}
    (run,) = log["runs"]
    driver = run["tool"]["driver"]
    assert driver["name"] and {rule["id"] for rule in driver["rules"]} == {one.code for one in told}
    assert len(run["results"]) == len(told)
    for result, one in zip(run["results"], told, strict=True):
        assert result["level"] == {"notice": "note"}.get(one.level, one.level)
        assert driver["rules"][result["ruleIndex"]]["id"] == result["ruleId"] == one.code
        assert result["message"] == {"text": one.message}
        place = result["locations"][0]["physicalLocation"]
        assert place["region"] == {"startLine": one.line} and one.line >= 1
        assert re.fullmatch(r"[A-Za-z0-9/._~%-]+", place["artifactLocation"]["uri"])
        assert place["artifactLocation"]["uriBaseId"] in run["originalUriBaseIds"]


def test_nothing_that_somebody_chooses_stands_in_a_script():
    action = yaml.safe_load(ACTION.read_text())
    for step in action["runs"]["steps"]:
        assert "${{" not in step["run"] and step["shell"] == "bash"
        # Else its modules are looked for in the checkout first.
        assert all(line.split()[1] == "-I" for line in step["run"].splitlines() if re.match(r"\S*python3?\"? ", line))


@pytest.mark.slow
def test_installing_takes_no_module_from_the_checkout(checkout, tmp_path, monkeypatch):
    for module in ("venv", "pip", "ensurepip", "subprocess", "json", "sitecustomize", "runpy"):
        (checkout / f"{module}.py").write_text(f"open({str(tmp_path / 'sprung')!r}, 'a').write({module!r})\n")
    runner = Runner(tmp_path)
    shutil.rmtree(runner.temp / "signet-sync")
    monkeypatch.setenv("PIP_NO_INDEX", "1")  # what pip then lacks is not what is asked here
    runner.step("Install", checkout.root)
    assert (runner.temp / "signet-sync/bin/pip").exists() and not (tmp_path / "sprung").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("inputs", "code", "said"),
    [
        ({"workspace": '$(touch sprung); "`touch sprung`'}, 3, "the workspace does not exist"),
        ({"workspace": ""}, 0, ""),
        ({"changed_since": "$(touch sprung)"}, 2, "is not the name of a revision"),
        ({"changed_since": "--output=sprung"}, 2, "is not the name of a revision"),
        ({"changed_since": "0" * 40}, 0, ""),
        ({"sarif": "link.sarif"}, 2, "there is a symlink"),
        ({"strict": "true; touch sprung", "pages": "maybe"}, 0, ""),
    ],
    ids=str,
)
def test_whatever_the_inputs_are(checkout, tmp_path, inputs, code, said):
    (checkout / "link.sarif").symlink_to(tmp_path / "sprung")
    done = Runner(tmp_path).installed().step("Check", checkout.root, **inputs)
    assert (done.code, done.err) == (code, "") and not list(tmp_path.rglob("sprung*"))
    assert [one.message for one in annotations(done.out) if said not in one.message] == []
    assert bool(done.out) == bool(said)


# ── what a pull request may say ──

SETTINGS = {
    "nothing": "",
    "what it may not set": HOSTILE,
    "no TOML": "a = [\n\n b",
    "a wrong value": "[projection]\n\nbudget_tokens = '##[stop-commands]x'\n",
    "everything noise": '[noise]\nprojects = ["/"]\nsessions = [""]\n',
    "too long": "#" * 70_000,
}


def test_no_setting_of_a_workspace_changes_a_verdict(checkout):
    broken(checkout)

    def judged(*arguments: str) -> tuple[list, list]:
        document = checkout.call("check", "--json", "--pages", "--now", NOW, *arguments).json
        mine = [p for p in document["problems"] if p["path"] == "signet-sync.toml"]
        return [p for p in document["problems"] if p not in mine], [(p["code"], p["line"]) for p in mine]

    found, _ = judged()
    assert len(found) == 20
    lines = {}
    for name, text in SETTINGS.items():
        (checkout / "signet-sync.toml").write_text(text)
        others, lines[name] = judged("--strict")
        assert others == found, name
    (checkout / "signet-sync.toml").unlink()
    (checkout / "signet-sync.toml").symlink_to("/etc/passwd")
    assert judged() == (found, [("config-invalid", 1)])
    told = {name: found for name, found in lines.items() if found}
    assert told == {
        "no TOML": [("config-invalid", 3)],
        "a wrong value": [("config-invalid", 3)],
        "too long": [("config-invalid", 1)],
    }


def test_a_wrong_setting_of_ones_own_is_still_an_error(checkout, monkeypatch):
    (checkout / "signet-sync.toml").write_text("no = [")
    monkeypatch.setenv("SIGNET_PROJECTION_WINDOW_DAYS", "many")
    answer = checkout.call("check", "--json")
    assert answer.code == 2 and "SIGNET_PROJECTION_WINDOW_DAYS" in answer.json["error"]["path"]


EVIL = [
    "a|b", "`x`", "<script>alert(1)</script>", "![x](http://e.example/x.png)", "[x](javascript:alert(1))",
    "http://e.example", "www.e.example", "a@e.example", "**b** __c__ ~~d~~", "\n::error::x\n| y |",
    "\r\n##[stop-commands]x", "%0A::error::x", "&lt;b&gt; \\| $x$", "<!-- signet:begin -->",
    "]]> & \x00\x0b\ufffe \udcff",
]  # fmt: skip


def test_nothing_that_a_file_says_is_more_than_text():
    found = {"verdict": "invalid", "code": "a,b::c", "hint": "", "line": 2}
    problems = [{**found, "path": text, "message": text} for text in EVIL]
    counts = dict.fromkeys(("indexed", "invalid", "violation", "tombstoned", "ignored"), 0)
    document = {"counts": counts, "ok": False, "notes": [], "problems": problems}
    told = annotations(formats_check.github(document, "").replace("\udcff", "?"))
    assert [one.message for one in told] == [text.replace("\udcff", "?") for text in EVIL]
    assert {one.code for one in told} == {"a,b::c"}
    page = formats_check.summary(document, "")
    rows = page.split("\n|---|---|---|---|\n")[1].strip().split("\n")
    assert len(rows) == len(EVIL) and all(len(re.findall(r"(?<!\\)(?:\\\\)*\|", row)) == 5 for row in rows)
    bare = re.sub(r"<span>@</span>|\\.", "", "".join(rows))
    assert not re.search(r"[<>`*_\[\]@#$&]|://|(?i:www\.)", bare), bare


def test_a_link_in_the_place_of_a_report_is_not_followed(checkout, tmp_path):
    outside = tmp_path / "outside"
    outside.write_text("mine\n")
    for option in ("--sarif", "--summary"):
        link = checkout / f"report{option}"
        link.symlink_to(outside)
        answer = checkout.call("check", option, str(link), "--json")
        assert answer.code == 2 and "symlink" in answer.json["error"]["message"] and answer.json["error"]["hint"]
    assert outside.read_text() == "mine\n"


def test_what_stops_a_check_is_an_annotation_too(checkout):
    answer = checkout.call("check", "--format", "github", "--changed-since", "no such")
    (told,) = annotations(answer.out)
    assert (answer.code, answer.err, told.level, told.code) == (2, "", "error", "usage") and "→" in told.message


# ── an index from a cache ──


def test_a_cached_index_follows_the_files_and_nothing_else_is_written(tmp_path):
    first, second = Vault(tmp_path / "first"), Vault(tmp_path / "second")
    for number in range(1, 13):
        first.session(number)
    for number in (1, 2, 3, 20):
        second.session(number)
    place = tmp_path / "cache/index.db"

    def index(vault: Vault, *arguments: str):
        before = tree(vault.root)
        answer = vault.call("--db", place, "reindex", "--index-only", "--json", "--now", NOW, *arguments)
        assert tree(vault.root) == before and os.listdir(place.parent) == ["index.db"]
        return answer

    def found(vault: Vault, *arguments: str) -> list[dict]:
        answer = call(
            "--workspace", vault.root, *arguments, "recall", "--words", "--json", "--limit", "99", "lantern"
        ).json
        return sorted((hit["path"], hit["snippet"]) for hit in answer["files"])

    assert index(first).json["counts"]["indexed"] == 36
    assert index(second).code == 5  # most of what it knew is gone
    answer = index(second, "--accept-removals")
    assert answer.code == 0 and answer.json["counts"]["indexed"] == 12
    assert {problem["code"] for problem in answer.json["problems"]} == set()
    assert not (second.state / "last-pass.json").exists()  # `status` speaks of the workspace's own index
    second.reindex()
    assert found(second, "--db", str(place)) == found(second) != []


def test_workflows_name_actions_by_commit_and_sign_where_nothing_is_built() -> None:
    """A tag can be moved to other code; whoever holds a token can sign what that code made."""
    for workflow in sorted((ROOT / ".github/workflows").glob("*.yml")):
        for name, job in yaml.safe_load(workflow.read_text())["jobs"].items():
            named = [step["uses"] for step in job.get("steps", []) if "uses" in step]
            assert all(re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", one) for one in named), (workflow.name, name)
            if "id-token" in job.get("permissions", {}):
                assert not any("run" in step or "/checkout@" in step.get("uses", "") for step in job["steps"]), name
