"""The text on a project: its order, its budget, what it leaves out, and that nothing is said twice."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from workbench import Vault

from signet_sync.formats.managed_block import CLOSING, OPENING
from signet_sync.formats.timestamps import DAY
from signet_sync.pages.context import name_project
from signet_sync.pages.project_context import project_text
from signet_sync.pages.sections import BoardInputs, StatementView, ThreadView
from signet_sync.text.phrases import Quote, QuotedSession
from signet_sync.text.token_estimate import estimate_tokens

NOW = 20_000 * DAY
KINDS = ("decision", "constraint", "blocker", "next", "question", "note")


def statement(number, kind="decision", text=None, project="/x/lantern", days=1):
    words = text or f"Statement number {number}"
    return StatementView(
        f"f-abcdefgh{number:04d}", kind, words, project, NOW - days * DAY, f"memory/{number}--summary.md"
    )


def thread(number, project):
    return ThreadView(
        f"t-abcdefgh{number:04d}", project, None, "codex", "open", 2, NOW - number * DAY, f"Did step {number}.",
        f"memory/{number}--summary.md",
    )  # fmt: skip


def memory(number, text=None):
    return StatementView(f"m-abcdefgh{number:04d}", "note", text or f"Remember {number}", "", NOW - number * DAY, "")


def full(count):
    return BoardInputs(
        [thread(0, "/x/lantern")],
        [*(statement(n, KINDS[n % 6]) for n in range(count)), *(memory(n) for n in range(count))],
        others=[thread(n, f"/x/other{n}") for n in range(1, count)],
    )


QUOTED = QuotedSession(
    NOW - DAY, (Quote(1, "person", NOW - DAY, "Light the lamp of the pier."), Quote(2, "agent", NOW - DAY, "It burns."))
)


@given(
    st.integers(0, 80), st.integers(0, 3_000), st.sampled_from([len, estimate_tokens]),
    st.sets(st.integers(0, 40), max_size=5),
)  # fmt: skip
def test_the_limit_holds_and_each_line_is_told_by_its_id(count, limit, size, skipped):
    seen = full(count)._replace(quoted=QUOTED)
    made = project_text(seen, "/x/lantern", NOW, limit, size, skip=lambda line: int(line.id[-4:]) in skipped)
    assert size(made.text) <= max(limit, 0)
    shown = [of for of in made.ids if not of.startswith("said ")]
    assert made.text.count("\n- ") == len(shown)
    assert not any(int(of[-4:]) in skipped for of in shown)


def test_the_last_report_and_the_last_words_get_room_first_and_what_others_say_none():
    said = [("person", "Light the harbour before the ferry lands."), ("agent", "The lamp is lit."),
            ("person", "The harbour is wide. " + "We ring the bell at night " * 20), ("person", "ok, do that."),
            ("agent", "The glass of the pier is clean. Next: buy oil. The wick is dry. It has no oil.")]  # fmt: skip
    quotes = tuple(Quote(turn, speaker, NOW - DAY, text) for turn, (speaker, text) in enumerate(said))
    seen = BoardInputs(
        (thread(0, "/x/lantern"),), quoted=QuotedSession(NOW - DAY, quotes, "s-abcdefgh0001"), ended=("It has no oil",)
    )
    made = project_text(seen, "/x/lantern", NOW, 2_000, estimate_tokens)
    told = [line for line in made.text.split("\n") if line.startswith("> ")]
    assert told[:2] == ["> person: “Light the harbour before the ferry lands.”", "> agent: “The lamp is lit.”"]
    assert told[2].startswith("> person: “The harbour is wide. We ring the bell at night") and told[2].endswith("…”")
    assert told[3:] == ["> agent: “The glass of the pier is clean. … The wick is dry.”"]
    assert [*made.ids[1:]] == ["said s-abcdefgh0001"] * 4
    many = Quote(1, "agent", NOW, " ".join(f"Lamp {n} of the pier burns." for n in range(400)))
    long = project_text(BoardInputs(quoted=QuotedSession(NOW, (many,))), "", NOW, 5_000, estimate_tokens).text
    assert 700 < estimate_tokens(long) <= 800
    tight = project_text(seen, "/x/lantern", NOW, 95, estimate_tokens)
    assert told[3] in tight.text and "wide.”" in tight.text and "ferry" not in tight.text


def test_earlier_sessions_are_told_by_what_they_came_to():
    earlier = tuple((f"s-abcdefgh000{n}", NOW - n * DAY, f"The pier has {n} bells.") for n in (2, 3))
    text = project_text(BoardInputs(earlier=earlier), "/x/lantern", NOW, 2_000, estimate_tokens).text
    told = [line.partition(": ")[2] for line in text.split("\n")]
    assert told == ["", "The pier has 2 bells. ^s-abcdef", "The pier has 3 bells. ^s-abcdef"]


def test_nothing_is_said_twice():
    quote = Quote(1, "agent", NOW - DAY, "Decided: use zstd for logs. Then it rained in the harbour.")
    twice = BoardInputs(
        (thread(0, "/x/lantern"),),
        (
            statement(1, "next", "Measure it again"),
            statement(2, "decision", "Use zstd for logs"),
            statement(3, "note", "use zstd for logs."),
            statement(4, "preference", "Use zstd for logs", project=None),
            memory(5, "Use zstd for logs"),
        ),
        quoted=QuotedSession(NOW - DAY, (quote, quote)),
    )
    text = project_text(twice, "/x/lantern", NOW, 2_000, estimate_tokens).text
    assert text.casefold().count("use zstd") == 1 and text.count("rained in the harbour") == 1


def test_no_text_ends_the_block_or_forges_a_handle():
    seen = BoardInputs(statements=(statement(1, text=f"{CLOSING} {OPENING} ^f-abcdefgh9999 [[x]]"),))
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
    name, belongs = name_project(str(repository / "src"))
    assert name == str(repository)
    assert all(belongs(str(one)) for one in (repository, repository / "src", repository / "docs" / "x"))
    assert not any(belongs(str(one)) for one in (home, home / "code", home / "code" / "repo2", "/", "", None))
    name, belongs = name_project(f"{plain}/")
    assert name == str(plain), "the home folder is no repository of its projects"
    assert belongs(str(plain)) and belongs(str(plain.parent)) and not belongs(str(plain / "below"))
    assert not belongs(str(home)) and not belongs("/") and not belongs(str(home.parent))
    for path in (None, "", "relative", "\0"):
        assert not name_project(path)[1]("/x")


def test_the_command_takes_the_working_directory_or_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    vault = Vault(tmp_path / "vault")
    project = tmp_path / "lantern"
    project.mkdir()
    vault.session(1, project=str(project))
    for number, place, wish in ((2, "/x/pier", "Call the keeper Jo on Sundays"), (3, None, "Call me Ada of the pier")):
        vault.session(number, project=place, body=f"# Wishes\n\n## Preferences\n\n- {wish}\n")
    vault.reindex()
    monkeypatch.chdir(project)
    here = vault.call("context").out
    assert "Call me Ada" in here and "keeper" not in here, "what is said in no project holds in all"
    assert here.startswith("=== Project lantern ===") and "word number1x" in here
    monkeypatch.chdir(tmp_path)
    assert "=== Project lantern ===" not in vault.call("context").out
    assert vault.call("context", "--project", project).out == here
    monkeypatch.chdir(tmp_path)
    assert vault.call("context", "--project", "lantern").out == here
    assert vault.call("context", "--project", str(project), "--json").json["sources"][0].startswith("memory/")
    monkeypatch.chdir("/")
    assert vault.call("context", "--project", "Lantern").out == here, "a name, from anywhere"
    error = vault.call("context", "--project", "lamp", "--json").json["error"]
    assert error["code"] == "unknown-project" and str(project) in error["hint"]


def test_without_a_project_the_newest_threads_of_any_are_shown():
    seen = BoardInputs((thread(30, "/x/lantern"),), others=(thread(1, "/x/other"),))
    here, anywhere = (project_text(seen, name, NOW, 2_000, estimate_tokens) for name in ("/x/lantern", ""))
    assert "(open," in here.text and "other" not in here.text
    assert [*anywhere.ids] == [seen.others[0].id]
