"""`check` in CI: what changed since a revision, annotations on the right lines, a summary, pages."""

from __future__ import annotations

import os
import shutil

import artifacts_fixture as made
import pytest
from history_vault import git
from workbench import NOW, Vault, numbered

from signet_sync.formats import locate

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")

AS = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")


def commit(vault: Vault, message: str = "memory") -> None:
    git(vault.root, "add", "-A", "-f")
    git(vault.root, *AS, "commit", "-q", "-m", message)


@pytest.fixture
def vault(tmp_path):
    found = Vault(tmp_path / "vault")
    found.paths = {number: found.session(number) for number in (1, 2, 3)}
    git(found.root, "init", "-q", "-b", "main")
    commit(found)
    return found


def problems(vault: Vault, *arguments: str) -> dict[str, tuple[str, int | None]]:
    answer = vault.call("check", "--json", "--now", NOW, *arguments)
    found = {p["path"]: (p["code"], p.get("line")) for p in answer.json["problems"]}
    assert answer.code == (1 if any(code not in ("foreign-name", "conflict-copy") for code, _ in found.values()) else 0)
    return found


def test_nothing_changed_reads_nothing(vault):
    document = vault.call("check", "--json", "--changed-since", "HEAD").json
    assert document["ok"] and document["counts"]["read"] == 0


def changed_with_its_hash(vault: Vault, path: str) -> int:
    """Another text that is valid by itself, as a program would write it; gives the line that differs first."""
    name, raw = made.summary(**numbered(1) | {"body": "# Session 1\n\nAnother text of lantern in src/queue.py.\n"})
    assert f"memory/{name}" == path
    before = (vault / path).read_bytes()
    (vault / path).write_bytes(raw)
    return locate.first_difference(before, raw)


def test_an_artifact_with_other_values_is_mutated_and_one_that_is_gone_vanished(vault):
    mutated, gone = vault.paths[1]["summary"], vault.paths[2]["transcript"]
    line = changed_with_its_hash(vault, mutated)
    (vault / gone).unlink()
    vault.session(4)
    commit(vault, "by hand")
    assert problems(vault) == {}
    assert problems(vault, "--changed-since", "HEAD~1") == {mutated: ("mutated", line), gone: ("vanished", None)}
    assert line > 1
    counts = vault.call("check", "--json", "--changed-since", "HEAD~1").json["counts"]
    assert (counts["read"], counts["indexed"], counts["violation"]) == (4, 3, 2)


def test_what_is_not_committed_counts_too(vault):
    changed_with_its_hash(vault, vault.paths[1]["summary"])
    (vault / vault.paths[2]["summary"]).unlink()
    vault.put(("2026-03-28T10-01-00.000Z--aaaaaaaaaaaaaaaa--summary.md", b"broken"))
    for _ in ("in the working tree", "in the index"):
        found = problems(vault, "--changed-since", "main")
        assert sorted(code for code, _ in found.values()) == ["frontmatter-missing", "mutated", "vanished"]
        git(vault.root, "add", "-A")


def test_a_file_that_was_only_touched_is_read_and_found_as_it_was(vault):
    os.utime(vault / vault.paths[1]["summary"], (1, 1))
    document = vault.call("check", "--json", "--changed-since", "HEAD").json
    assert document["ok"] and document["counts"]["read"] == 1


def test_what_git_ignores_is_left_out_and_what_it_does_not_want_there_has_not_vanished(vault):
    (vault / ".gitignore").write_text("*--summary.md\n")
    vault.put(("2026-03-28T10-01-00.000Z--aaaaaaaaaaaaaaaa--summary.md", b"broken"))
    gone = vault.paths[2]["transcript"]
    git(vault.root, "update-index", "--skip-worktree", gone)
    (vault / gone).unlink()
    assert problems(vault, "--changed-since", "HEAD") == {}
    assert len(problems(vault)) == 1


def test_a_link_counts_once_it_is_put_there(vault):
    path = vault.paths[1]["summary"]
    (vault / path).unlink()
    (vault / path).symlink_to("/etc/passwd")
    assert problems(vault, "--changed-since", "HEAD") == {path: ("mutated", 1)}
    commit(vault)
    assert problems(vault, "--changed-since", "HEAD") == {}


def test_files_that_came_with_a_repository_of_their_own_are_read(vault):
    """`memory/` became a submodule: git tells only its commit, whatever stands in it."""
    vault.put(("2026-03-28T10-01-00.000Z--aaaaaaaaaaaaaaaa--summary.md", b"broken"))
    git(vault.memory, "init", "-q")
    git(vault.memory, "add", "-A")
    git(vault.memory, *AS, "commit", "-q", "-m", "of its own")
    git(vault.root, "rm", "-r", "-q", "--cached", "memory")
    git(vault.root, "add", "memory")
    git(vault.root, *AS, "commit", "-q", "-m", "a submodule")
    assert git(vault.root, "ls-files", "--stage").startswith("160000 ")
    for since in ("HEAD", "HEAD~1"):
        assert sorted(problems(vault, "--changed-since", since).values()) == [("frontmatter-missing", 1)]


def test_before_the_first_commit_everything_is_new(tmp_path):
    vault = Vault(tmp_path / "vault")
    vault.session(1)
    git(vault.root, "init", "-q")
    git(vault.root, "add", "-A")
    document = vault.call("check", "--json", "--changed-since", "HEAD").json
    assert document["ok"] and document["counts"]["read"] == 3
    assert vault.call("check", "--json", "--changed-since", "main").code == 2


def test_another_formatting_of_the_same_values_is_no_change(vault):
    path = vault / vault.paths[1]["summary"]
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    commit(vault)
    assert problems(vault, "--changed-since", "HEAD~1") == {}


def test_what_was_broken_at_the_revision_may_be_mended(vault):
    path = vault / vault.paths[1]["summary"]
    raw = path.read_bytes()
    path.write_bytes(raw + b"torn")
    commit(vault)
    path.write_bytes(raw)
    commit(vault)
    assert problems(vault, "--changed-since", "HEAD~1") == {}


def test_a_removed_session_has_not_vanished(vault):
    vault.reindex()
    assert vault.call("remove", numbered(2)["session_id"], "--reason", "asked for", "--yes", "--now", NOW).code == 0
    commit(vault)
    assert problems(vault, "--changed-since", "HEAD~1") == {}


def test_a_workspace_below_the_top_of_a_checkout(tmp_path, monkeypatch):
    vault = Vault(tmp_path / "checkout/team/agents")
    path = vault.session(1)["summary"]
    top = tmp_path / "checkout"
    git(top, "init", "-q", "-b", "main")
    git(top, "add", "-A")
    git(top, *AS, "commit", "-q", "-m", "memory")
    line = changed_with_its_hash(vault, path)
    git(top, "add", "-A")
    assert problems(vault, "--changed-since", "HEAD") == {path: ("mutated", line)}
    monkeypatch.chdir(top)
    answer = vault.call("check", "--changed-since", "HEAD", "--format", "github")
    assert answer.out.startswith(f"::error file=team/agents/{path},line={line},title=mutated::")
    sarif = vault.call("check", "--changed-since", "HEAD", "--format", "sarif").json["runs"][0]["results"][0]
    where = sarif["locations"][0]["physicalLocation"]
    assert where["artifactLocation"]["uri"].startswith("team/agents/memory/2026-03-28T10-01")
    assert where["region"]["startLine"] == line


@pytest.mark.parametrize("name", ["v9", "--output=x", "a b", "HEAD:memory", "", "x" * 300, "0" * 40])
def test_a_revision_that_is_not_there(vault, name):
    answer = vault.call("check", f"--changed-since={name}", "--json")
    assert answer.code == 2 and answer.json["error"]["hint"], answer


def test_a_shallow_clone_is_told_what_it_lacks(vault, tmp_path):
    vault.session(4)
    commit(vault)
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{vault.root}", str(clone))
    shallow = Vault(clone)
    answer = shallow.call("check", "--changed-since", "HEAD~1", "--json")
    assert answer.code == 2
    error = answer.json["error"]
    assert "shallow" in error["message"] and "fetch-depth: 0" in error["hint"]


def test_no_repository_at_all(tmp_path):
    vault = Vault(tmp_path / "vault")
    answer = vault.call("check", "--changed-since", "main", "--json")
    assert answer.code == 3 and "no git repository" in answer.json["error"]["message"]


def test_a_pointer_of_git_lfs_is_told_of(vault):
    path = vault.paths[1]["transcript"]
    (vault / path).write_text("version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n")
    (found,) = vault.call("check", "--json").json["problems"]
    assert found["code"] == "frontmatter-missing" and "git lfs pull" in found["message"]


# ── lines ──

HEAD = b'---\nkind: "summary"\nagent_id: "default"\nsession_id: "x"\nkind: "summary"\n---\nbody\n'


@pytest.mark.parametrize(
    ("code", "message", "line"),
    [
        ("agent-invalid", "agent_id may not be used in a path", 3),
        ("token-mismatch", "the token in the name belongs to no identity", 4),
        ("field-invalid", "the field `session_id` is blank", 4),
        ("field-missing", "the field `harness` is missing", 1),
        ("frontmatter-invalid", "the key `kind` stands there twice", 5),
        ("frontmatter-invalid", "line 4: found character", 4),
        ("frontmatter-invalid", "line 99: as somebody says", 8),
        ("not-utf8", "byte 30 is not UTF-8", 3),
        ("frontmatter-missing", "the file does not open with a `---` line", 1),
    ],
)
def test_the_line_that_a_person_has_to_look_at(code, message, line):
    assert locate.line_of(HEAD, code, message) == line


def test_the_first_line_that_differs():
    assert locate.first_difference(b"a\nb\nc", b"a\nx\nc") == 2
    assert locate.first_difference(b"a\nb", b"a\nb\nc") == 3
    assert locate.first_difference(b"a", b"a") == 1


# ── forms ──


def spoilt(vault: Vault, number: int = 1) -> str:
    path = vault.paths[number]["summary"]
    (vault / path).write_bytes((vault / path).read_bytes() + b"torn\n")
    return path


def test_the_summary_of_a_job_is_a_table(vault, tmp_path):
    path = spoilt(vault)
    page = tmp_path / "summary.md"
    page.write_text("before\n")
    assert vault.call("check", "--summary", str(page), "--now", NOW).code == 1
    text = page.read_text()
    assert text.startswith("before\n### Agent memory: not valid\n") and "| hash\\-mismatch |" in text
    assert path.replace("-", "\\-").replace("_", "\\_") in text
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert all(line.count("|") - line.count("\\|") in (5, 7) for line in rows)


def test_a_note_that_fails_is_shown_as_a_problem_in_every_form(vault, tmp_path, monkeypatch):
    monkeypatch.chdir(vault.root)
    path = vault.paths[1]["manifest"]
    (vault / vault.paths[1]["transcript"]).unlink()
    page = tmp_path / "summary.md"
    assert vault.call("check").code == 0 and "1 link-broken" in vault.call("check").out
    answer = vault.call("check", "--strict", "--summary", str(page))
    assert answer.code == 1 and f"note link-broken  {path}" in answer.out and "link\\-broken" in page.read_text()
    assert vault.call("check", "--strict", "--format", "github").out.startswith(f"::error file={path},")


# ── pages ──


def test_rows_of_pages_are_what_their_artifacts_say(vault):
    vault.reindex()
    assert problems(vault, "--pages") == {}
    assert problems(vault, "--pages", "--changed-since", "HEAD") == {}


def test_a_row_whose_artifact_says_otherwise(vault):
    vault.reindex()
    path, line = vault.paths[1]["summary"], None
    raw = (vault / path).read_bytes()
    (vault / path).write_bytes(raw.replace(b"step number 1 bounded", b"step number 1 removed"))
    found = problems(vault, "--pages")
    code, line = found["MEMORY.md"]
    assert code == "page-stale" and "step number 1 bounded" in vault.page().split("\n")[line - 1]
    (vault / path).unlink()
    assert problems(vault, "--pages")["MEMORY.md"][0] == "page-stale"


def test_a_page_that_was_edited_between_its_marks(vault):
    vault.reindex()
    (vault / "MEMORY.md").write_text("# Mine\n\n" + vault.page().replace("step number 1", "step number one"))
    assert problems(vault, "--pages") == {"MEMORY.md": ("page-edited", 3)}
    (vault / "MEMORY.md").write_text("# Mine alone\n")
    assert problems(vault, "--pages") == {}
