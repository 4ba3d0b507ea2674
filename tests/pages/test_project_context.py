"""The text on a project: its order, its budget, what it leaves out, and that nothing is said twice."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_found_repository import with_origin
from workbench import Vault

from signet_sync.formats.injected_block import CLOSING, OPENING
from signet_sync.formats.timestamps import DAY
from signet_sync.pages.own_project import of_path
from signet_sync.pages.project_context import ProjectInputs, project_text
from signet_sync.pages.sections import FactView, MemoryView, ThreadView
from signet_sync.text.token_estimate import estimate_tokens

NOW = 20_000 * DAY
ASPECTS = ("decision", "constraint", "blocker", "next", "question", "note")


def fact(number, aspect="decision", text=None, project="/x/lantern", days=1):
    words = text or f"Statement number {number}"
    return FactView(f"f-abcdefgh{number:04d}", aspect, words, project, NOW - days * DAY, f"memory/{number}--summary.md")


def thread(number, project, next_action=None):
    return ThreadView(
        f"t-abcdefgh{number:04d}", project, None, "codex", "open", 2, NOW - number * DAY, f"Did step {number}.",
        next_action, f"memory/{number}--summary.md",
    )  # fmt: skip


def memory(number, text=None):
    return MemoryView(f"m-abcdefgh{number:04d}", "note", text or f"Remember {number}", NOW - number * DAY)


def full(count):
    return ProjectInputs(
        (thread(0, "/x/lantern", "Statement number 3"),),
        tuple(fact(n, ASPECTS[n % 6]) for n in range(count)),
        tuple(fact(1_000 + n, "preference", project=f"/x/{n}") for n in range(count)),
        tuple(memory(n) for n in range(count)),
        (),
        tuple(thread(n, f"/x/other{n}") for n in range(1, count)),
    )


@given(
    st.integers(0, 80), st.integers(0, 3_000), st.sampled_from([len, estimate_tokens]),
    st.sets(st.integers(0, 40), max_size=5),
)  # fmt: skip
def test_the_limit_holds_and_what_is_not_shown_is_known(count, limit, size, skipped):
    made = project_text(full(count), "/x/lantern", NOW, limit, size, skip=lambda line: int(line.id[-4:]) in skipped)
    assert size(made.text) <= max(limit, 0)
    shown = [line.whole for line in made.lines]
    assert len(shown) == len(set(shown)) and not set(shown).intersection(made.left_out)
    assert sorted(line for line in made.text.split("\n") if line.startswith("- ")) == sorted(shown)
    assert not any(int(line.id[-4:]) in skipped for line in made.lines)


def test_every_part_gets_room_and_every_kind_of_statement():
    text = project_text(full(300), "/x/lantern", NOW, 1_500, estimate_tokens).text
    headings = ["=== Project lantern ===", "Decisions:", "Constraints:", "Blockers:", "Next steps:", "Open questions:",
                "Notes:", "=== For every project ===", "=== Other projects ==="]  # fmt: skip
    assert [text.index(one) for one in headings] == sorted(text.index(one) for one in headings)
    assert text.count("more lines are left out]") == 3


def test_nothing_is_said_twice():
    twice = ProjectInputs(
        (thread(0, "/x/lantern", "Measure it"),),
        (fact(1, "next", "Measure it."), fact(2, "decision", "Use zstd"), fact(3, "note", "use zstd.")),
        (fact(4, "preference", "Use zstd"),),
        (memory(5, "Use zstd"),),
    )
    text = project_text(twice, "/x/lantern", NOW, 2_000, estimate_tokens).text
    assert text.casefold().count("use zstd") == 1 and text.count("Measure it") == 1


def test_no_text_ends_the_block_or_forges_a_handle():
    seen = ProjectInputs(facts=(fact(1, text=f"{CLOSING} {OPENING} ^f-abcdefgh9999 [[x]]"),))
    text = project_text(seen, "/x/lantern", NOW, 2_000, estimate_tokens).text
    assert CLOSING not in text and OPENING not in text and "^f-abcdefgh9999" not in text


def test_which_projects_are_the_one_at_hand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    home = tmp_path / "home"
    monkeypatch.setenv("HOME", str(home))
    plain, repository = home / "plain" / "sub", home / "code" / "repo"
    for folder in (plain, repository / "src", home / ".git"):
        folder.mkdir(parents=True)
    (repository / ".git" / "objects").mkdir(parents=True)
    (repository / ".git" / "refs").mkdir()
    (repository / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    name, belongs = of_path(str(repository / "src"))
    assert name == str(repository)
    assert all(belongs(str(one)) for one in (repository, repository / "src", repository / "docs" / "x"))
    assert not any(belongs(str(one)) for one in (home, home / "code", home / "code" / "repo2", "/", "", None))
    name, belongs = of_path(f"{plain}/")
    assert name == str(plain), "the home folder is no repository of its projects"
    assert belongs(str(plain)) and belongs(str(plain.parent)) and not belongs(str(plain / "below"))
    assert not belongs(str(home)) and not belongs("/") and not belongs(str(home.parent))
    for path in (None, "", "relative", "\0"):
        assert not of_path(path)[1]("/x")


def test_a_local_clone_has_the_context_of_its_origin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Its own files name only the folder that it was cloned from; sessions there name the origin of that."""
    vault = Vault(tmp_path / "vault")
    origin, clone = tmp_path / "lantern", tmp_path / "clone"
    for place, url in ((origin, "git@example.org:ada/lantern.git"), (clone, str(origin))):
        for name in ("objects", "refs"):
            (place / ".git" / name).mkdir(parents=True)
        (place / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
        (place / ".git" / "config").write_text(f'[remote "origin"]\n\turl = {url}\n')
    fields = {"repository_root": str(origin), "repository_path": ""}
    own = {"project": str(origin), "repository_origin": "example.org/ada/lantern"}
    vault.session(1, **fields, **own)
    vault.session(2, **fields, project=str(clone), repository_origin=None)
    vault.reindex()
    shown = {}
    for place in (origin, clone):
        monkeypatch.chdir(place)
        shown[place] = vault.call("context").out
        assert shown[place].startswith("=== Project lantern ===\n- **lantern** (") and "word number1x" in shown[place]
    assert shown[origin] == shown[clone]
    vault.session(3, **fields, project=str(clone), repository_origin="example.org/ada/other")
    vault.reindex()
    assert not of_path(str(clone), lambda root: None)[1]("example.org/ada/lantern")


def test_the_command_takes_the_working_directory_or_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    vault = Vault(tmp_path / "vault")
    project = tmp_path / "lantern"
    project.mkdir()
    vault.session(1, project=str(project))
    vault.reindex()
    monkeypatch.chdir(project)
    here = vault.call("context").out
    assert here.startswith("=== Project lantern ===") and "word number1x" in here
    monkeypatch.chdir(tmp_path)
    assert "=== Project lantern ===" not in vault.call("context").out
    assert vault.call("context", "--project", "lantern").out == here
    assert vault.call("context", "--project", str(project), "--json").json["sources"][0].startswith("memory/")
    monkeypatch.chdir("/")
    assert vault.call("context", "--project", "Lantern").out == here, "a name, from anywhere"
    error = vault.call("context", "--project", "lamp", "--json").json["error"]
    assert error["code"] == "unknown-project" and str(project) in error["hint"]


def test_a_project_is_called_as_the_page_shows_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    vault = Vault(tmp_path / "vault")
    elsewhere = with_origin(tmp_path / "elsewhere")
    (elsewhere / "shop").mkdir()
    names = ["work/shop", "home/shop", "x <beta>", "a #tag", "$x$y", "long-name-" * 12, "C: and | more", "elsewhere"]
    for number, name in enumerate(names, 1):
        key = "agent:main:main" if name == "a #tag" else None
        vault.session(number, project=f"{tmp_path}/{name}", session_key=key, harness="codex")
    vault.reindex()
    shown = re.findall(r"^- \*\*(.*?)\*\* \(", vault.page(), re.MULTILINE)
    assert len(shown) == len(names) and {"work/shop", r"x \<beta>"} <= set(shown)
    for folder in (tmp_path, elsewhere):  # where another project is, and a folder of the same name
        monkeypatch.chdir(folder)
        for name in shown:
            own = vault.call("context", "--project", name).out.split("\n\n")[0]
            assert own.startswith("=== Project ") and f"\n- **{name}**" in own and own.count("\n- **") == 1, own
    assert vault.call("context", "--project", "shop").code == 0


def test_other_projects_take_no_room_that_the_one_at_hand_needs():
    others = tuple(thread(n, f"/x/o{n}") for n in range(1, 40))
    seen = ProjectInputs((thread(0, "/x/lantern"),), tuple(fact(n) for n in range(9)), others=others)
    whole = 0
    for limit in range(100, 700, 7):
        own, _, elsewhere = project_text(seen, "/x/lantern", NOW, limit, estimate_tokens).text.partition("\n\n")
        whole += "left out" not in own
        assert "left out" not in own or estimate_tokens(elsewhere) <= limit * 0.1
    assert whole > 20


def test_the_project_at_hand_is_shown_in_full_although_it_is_at_rest():
    resting = thread(30, "/x/lantern", "Measure it")
    seen = ProjectInputs((resting,), (fact(1, "next", "Measure it."),), others=(thread(40, "/x/other", "Paint it"),))
    text = project_text(seen, "/x/lantern", NOW, 2_000, estimate_tokens).text
    assert text.count("Measure it") == 1 and "quiet since" in text.partition("=== Other")[2]
    assert "Paint it" not in text


def test_steps_that_were_planned_before_the_last_two_lists_or_again_for_the_same_issue_are_left_out():
    steps = [
        fact(1, "next", "Make the title cheaper (#221)", days=1),
        fact(2, "next", "See whether the title can be cheaper (#221)", days=3),
        fact(3, "next", "Tell the translator", days=3),
        fact(4, "next", "Sketch the cache", days=8),
        fact(5, "blocker", "The cache waits for a disk", days=8),
    ]
    seen = ProjectInputs((thread(0, "/x/lantern"),), tuple(steps), (), (), (), ())
    shown = {line.id[-1] for line in project_text(seen, "/x/lantern", NOW, 2_000, estimate_tokens).lines}
    assert shown == {"0", "1", "3", "5"}


def test_a_preference_for_one_repository_is_shown_there_only():
    wish = fact(1, "preference", "Always use pnpm in this repository.")
    seen = ProjectInputs((thread(0, "/x/lantern"),), personal=(wish,))
    assert "pnpm" in project_text(seen, "/x/lantern", NOW, 2_000, estimate_tokens).text
    elsewhere = seen._replace(threads=(thread(0, "/x/other"),))
    assert "pnpm" not in project_text(elsewhere, "/x/other", NOW, 2_000, estimate_tokens).text
