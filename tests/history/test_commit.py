"""The workspace's history: what is committed, what never, what is told, and what a person's git makes of it."""

import os
import shutil
import subprocess
from contextlib import suppress

import pytest
from crash_runner import KILLED, arm, forked
from history_vault import ID, HistoryVault

from signet_sync.history import commit, repository

pytest.importorskip("pygit2")
needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")

TRANSCRIPT = "memory/2026-04-24T03-00-00.000Z--abcdefghijklmnop--transcript.md"
SECRET = "token: ghp_" + "a1B2c3D4e5F6" * 3 + "\n"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return HistoryVault(tmp_path_factory.mktemp("made") / "vault").begin()


@pytest.fixture
def past(made, tmp_path):
    return made.copied(tmp_path / "vault")


def busy(past):
    with pytest.raises(repository.RepositoryRefused) as refused:
        past.commit()
    assert refused.value.code == "history-busy" and refused.value.message


@needs_git
def test_init_creates_git_dir_and_bootstrap_commit(past):
    assert {".git", ".gitignore", ".gitattributes"} <= set(os.listdir(past.root))
    assert past.log() == []
    past.put("MEMORY.md")
    past.commit("first")
    assert [commit.subject for commit in past.log()] == ["first", "workspace init"]
    assert past.tree() == [".gitattributes", ".gitignore", "MEMORY.md"]
    assert past.git("symbolic-ref", "HEAD") == "refs/heads/main\n"
    assert (past.root / ".git/signet-history").read_text() == ID + "\n"
    assert past.git("remote") == "" == past.git("status", "--porcelain") == past.git("fsck", "--strict")


# ── what is committed ──


@needs_git
def test_the_allow_list_decides_and_a_person_s_git_agrees(past):
    """Ours, of each agent; neither a file beside them nor an ignore rule changes that."""
    ours = {
        "MEMORY.md", "SOUL.md", "signet-sync.toml", "memory/a.md", "memory/tombstones/t.md", "ledger/2026-04.md",
        "ledger/2026/04/24.md", "entities/ledger/2026-04.jsonl", "entities/parts/a--b/profile.md",
        "agents/ori/MEMORY.md", "agents/ori/ledger/2026-04.md", "agents/ori/entities/ledger/2026-04.jsonl",
    }  # fmt: skip
    for path in ours:
        past.put(path)
    for path in (
        *("media/a.png", "transcripts/t.jsonl", "x.tmp", ".DS_Store", "memory/memories.db", "memory/deep/a.md"),
        *(TRANSCRIPT, TRANSCRIPT.replace(".md", ".user-20260424T030000Z.md")),
        *("notes.txt", "entities/a.png", "ledger/.obsidian/a.md", ".signet/workspace-id", "agents/ori/deep/a.md"),
    ):
        past.put(path)
    (past.root / ".git/info/exclude").write_text("SOUL.md\n")
    assert past.commit()[1] == {}
    assert set(past.tree()) == ours | {".gitattributes", ".gitignore"}
    (past.root / "ledger/.obsidian/a.md").unlink()
    assert past.git("status", "--porcelain") == "" == past.git("fsck", "--strict")
    (past.root / "memory/a.md").unlink()
    past.commit()
    assert "memory/a.md" not in past.tree()


@needs_git
def test_what_a_person_committed_beside_ours_stays(past):
    past.put("a.md")
    past.commit()
    past.put("theirs/x.bin", "x").chmod(0o755)
    past.git("add", "-f", "theirs/x.bin")
    past.git("commit", "-qm", "theirs")
    past.put("a.md", "two\n")
    past.commit()
    assert past.git("ls-tree", "HEAD", "theirs/x.bin").startswith("100755") and past.data("a.md") == b"two\n"
    assert past.git("status", "--porcelain") == ""


def test_every_byte_is_kept(past):
    """Neither line ends nor attributes change anything: files come back as they went in."""
    odd = {
        "crlf.md": b"a\r\nb\r\n",
        "nul.md": b"\0\xff\xfe",
        "empty.md": b"",
        "id.md": b"$Id$\n",
        "utf16.md": "ä".encode("utf-16"),
    }
    past.put(".gitattributes", "* text eol=lf ident filter=x working-tree-encoding=UTF-16\n")
    past.begin()  # what is there is left as it is
    for path, data in odd.items():
        past.put(path, data)
    past.commit()
    assert {path: past.data(path) for path in odd} == odd


@needs_git
def test_what_is_no_plain_file_of_ours_is_not_entered(past, tmp_path):
    """Links, pipes, names that are no text, and what some file system takes for a repository."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/secret.md").write_text("outside")
    (past.root / "ledger").symlink_to(tmp_path / "outside")
    (past.root / "link.md").symlink_to(tmp_path / "outside/secret.md")
    os.mkfifo(past.root / "pipe.md")
    for name in (".GIT", ".git ", "git~1", ".g\u200cit", ".git::$INDEX_ALLOCATION"):
        past.put(f"entities/{name}/a.md", "x")
    odd = ["memory/two\nlines \u202e.md"]
    with suppress(OSError):  # this file system takes only some names
        past.put(os.fsdecode(b"memory/\xff.md"))
        odd.append(os.fsdecode(b"memory/\xff.md"))
    past.put(odd[0])
    past.put("a.md")
    skipped = past.commit()[1]
    assert {"link.md", "pipe.md", *odd} <= skipped.keys() and set(skipped.values()) == {"not-a-file"}
    assert past.tree() == [".gitattributes", ".gitignore", "a.md"] and past.git("fsck", "--strict") == ""


def test_a_file_with_a_secret_is_not_committed(past):
    for encoding in ("utf-8", "utf-16", "utf-16-le"):
        past.put(f"{encoding}.md", SECRET.encode(encoding))
    name = SECRET.split()[1]
    for path in ("ok.md", f"{name}.md"):
        past.put(path)
    assert past.commit()[1] == dict.fromkeys((f"{name}.md", "utf-16-le.md", "utf-16.md", "utf-8.md"), "secret")
    assert past.tree() == [".gitattributes", ".gitignore", "ok.md"] and name not in past.log()[0].body
    for path in (past.root / ".git").rglob("*"):
        assert not path.is_file() or b"ghp_" not in path.read_bytes()


@pytest.mark.parametrize("trouble", ["too-large", "secret", "unreadable", "not-a-file"])
def test_a_tracked_file_that_is_skipped_keeps_its_last_version(past, monkeypatch, trouble):
    """Growing past the limit is no deletion; nor is anything else that keeps us from a file."""
    monkeypatch.setattr(commit, "MAX_BYTES", 1000)
    target = past.put("memory/a.md", "one\n")
    past.put("memory/b.md")
    past.commit()
    if trouble == "too-large":
        past.put("memory/a.md", b"x" * 1001)
    elif trouble == "secret":
        past.put("memory/a.md", SECRET)
    elif trouble == "unreadable":
        if os.geteuid() == 0:
            pytest.skip("the superuser reads everything")
        target.chmod(0)
    else:
        target.unlink()
        target.symlink_to("/etc/passwd")
    past.put("other.md", "so that there is a commit")
    assert past.commit()[1] == {"memory/a.md": trouble}
    assert past.data("memory/a.md") == b"one\n" and past.data("memory/b.md") == b"text\n"
    assert f"- memory/a.md ({trouble})" in past.log()[0].body
    assert past.commit()[0] is None


# ── the text of a commit ──


def test_subject_and_body_are_flattened_and_sanitized(past):
    past.put("a.md")
    past.commit(f"checkpoint: two\nlines \x1b[31m {SECRET}", f"body\x07 {SECRET}\nmore", ("ev<il>\nauthor", "a>b@c"))
    commit = past.log()[0]
    assert commit.subject == "checkpoint: two lines  token: [REDACTED:github]"
    assert commit.body == "body token: [REDACTED:github]\n\nmore"
    assert commit.author == "evil author"
    past.put("b.md")
    past.commit("", "", ("", ""))
    assert (past.log()[0].subject, past.log()[0].author) == ("(no subject)", "unknown")


def test_what_others_committed_is_shown_sanitized(past):
    past.put("a.md")
    past.commit()
    first = past.log()[0].oid
    (past.root / "a.md").write_text(f"\x1b]0;title\x07 {SECRET}")
    past.git("commit", "-qam", f"\x1b[2J {SECRET}")
    shown = past.log()[0].subject + past.diff(first)[0]
    assert "\x1b" not in shown and "ghp_" not in shown and "\\x1b]0;title" in shown


@needs_git
def test_many_objects_become_a_pack_and_gits_own_does_no_harm(past, monkeypatch):
    monkeypatch.setattr(commit, "MANY", 0)
    for number in (7, 149, 263):  # the object of the last one is in the folder whose objects are counted for all
        past.put(f"memory/{number}.md", f"{number}\n")
    past.commit()
    assert len(list((past.root / ".git/objects/pack").glob("*.pack"))) == 1
    assert not list((past.root / ".git/objects").glob("??/*"))
    past.put("memory/7.md", "changed\n")
    past.commit()
    assert past.data("memory/149.md") == b"149\n" and past.data("memory/7.md", "HEAD~1") == b"7\n"
    assert past.git("fsck", "--strict") == "" == past.git("status", "--porcelain")
    past.git("gc", "-q")
    assert past.data("memory/149.md") == b"149\n"
    assert past.commit()[0] is None


# ── a person's git beside us ──


@needs_git
def test_the_index_follows(past):
    past.put("a.md")
    past.commit()
    past.put("a.md", "two\n")
    past.put("b.md")
    past.git("add", "b.md")
    past.commit()
    assert past.git("status", "--porcelain") == ""
    past.git("commit", "-q", "--allow-empty", "-m", "by a person")
    past.put("b.md", "two\n")
    past.commit("ours")
    assert [commit.subject for commit in past.log()][:2] == ["ours", "by a person"]


@pytest.mark.parametrize(
    "sign", ["index.lock", "MERGE_HEAD", "rebase-merge", "CHERRY_PICK_HEAD", "refs/heads/main.lock"]
)
def test_nothing_is_committed_while_somebody_is_at_work(past, sign):
    past.put("a.md")
    past.commit()
    past.put("a.md", "two\n")
    place = past.root / ".git" / sign
    place.mkdir() if sign == "rebase-merge" else place.write_text("x")
    busy(past)
    assert len(past.log()) == 2
    assert place.exists()
    place.rmdir() if place.is_dir() else place.unlink()
    assert past.commit()[0]


@needs_git
def test_nothing_is_committed_while_an_old_commit_is_looked_at(past):
    past.put("a.md", "one")
    past.commit()
    past.git("checkout", "-q", "HEAD~1")
    busy(past)
    past.git("switch", "-q", "main")
    past.git("pack-refs", "--all")
    past.put("a.md", "two")
    assert past.commit()[0] and len(past.log()) == 3


@needs_git
def test_a_person_at_work_and_we_do_not_lose_a_commit(past):
    """Commits by turns with a loop of a person's git, which takes the same locks."""
    past.commit()
    script = "for i in 1 2 3 4 5 6; do echo $i > p$i.md; git add p$i.md && git commit -qm p$i; done; git gc -q"
    identity = {f"GIT_{who}_{what}": "p" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    person = subprocess.Popen(["sh", "-c", script], cwd=past.root, env={**os.environ, **identity}, **quiet)
    outcomes = []
    while person.poll() is None:
        past.put("a.md", f"{len(outcomes)}\n")
        try:
            outcomes.append("committed" if past.commit(f"ours {len(outcomes)}")[0] else "clean")
        except repository.RepositoryRefused as refused:
            assert refused.code == "history-busy"
            outcomes.append("busy")
    subjects = past.git("log", "--format=%s").splitlines()
    assert len(set(subjects)) == len(subjects)
    assert sum(subject.startswith("ours") for subject in subjects) == outcomes.count("committed")
    assert past.git("fsck", "--strict", "--no-dangling") == ""
    assert past.git("status", "--porcelain", "--", "a.md") in ("", " M a.md\n")


# ── the least expected moment ──

STEPS = [("create", 13), ("change", 9), pytest.param("first", 1, marks=pytest.mark.slow)]


def beginning(root, scenario):
    past = HistoryVault(root)
    past.put("memory/a.md", "one\n")
    past.put("memory/b.md")
    if scenario != "create":
        past.begin()
    if scenario == "first":
        for number in range(120):
            past.put(f"memory/{number}.md", f"{number}\n")
    if scenario == "change":
        past.commit("before")
        past.put("memory/a.md", "two\n")
        (past.root / "memory/b.md").unlink()
    return past


def killed(past, scenario, last):
    """Whether a fork was killed at its `last` durable step; False where it ended before."""

    def work():
        os.chdir(past.root.parent)
        arm(last)
        past.begin() if scenario == "create" else past.commit("after")
        return 0

    return forked(work) == KILLED


def wrong(past, scenario):
    found = []
    standing = past.look()
    if scenario == "create":
        found += [standing] if standing not in ("no-repository", "") else []
        past.begin()
    else:
        found += fsck(past)
        if not past.log():
            found += ["no history"] if scenario != "first" else []
        elif past.log()[0].subject not in ("before", "after", "workspace init"):
            found.append("what is this?")
    past.commit("next")
    if past.commit("last")[0] is not None:
        found.append("the next commit is not the last")
    found += [*fsck(past), *past.git("status", "--porcelain").splitlines()]
    found += [path.name for path in past.root.glob("memory/*") if past.data(f"memory/{path.name}") != path.read_bytes()]
    if scenario == "create" and os.path.lexists(past.root / ".signet/tmp/history"):
        found.append("what was begun is still there")
    return found + [name for name in os.listdir(past.root / ".git") if name.endswith(".lock")]


def fsck(past):
    run = subprocess.run(["git", "-C", past.root, "fsck", "--strict"], capture_output=True, text=True, check=False)
    return [line for line in (run.stdout + run.stderr).splitlines() if not line.startswith(("dangling", "notice"))]


@needs_git
@pytest.mark.parametrize(("scenario", "every"), STEPS)
def test_a_kill_at_any_step_leaves_a_valid_repository(tmp_path, scenario, every):
    """Apart from the table of operations: it holds no repository, and only git tells whether one is valid."""
    before, last, ended = beginning(tmp_path / "before", scenario), 1, False
    while not ended:
        shutil.rmtree(tmp_path / "vault", ignore_errors=True)
        past = before.copied(tmp_path / "vault")
        ended = not killed(past, scenario, last)
        assert wrong(past, scenario) == [], last
        last += every
    assert last > 3 * every
