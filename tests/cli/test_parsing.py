"""Shared options anywhere on the command line, and what was meant by a name that does not exist."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from command_lines import EVERY
from workbench import NOW, Vault, call, numbered, tree

from signet_sync.cli.main import group
from signet_sync.cli.parsing import SharedOption
from signet_sync.storage.locations import make_relative

SHARED = {name for parameter in group.params if isinstance(parameter, SharedOption) for name in parameter.opts}
ID = numbered(1)["session_id"]


@pytest.fixture(scope="module")
def vault(tmp_path_factory: pytest.TempPathFactory) -> Vault:
    """Two agents' sessions, an entity and a memory; tests only read it."""
    folder = tmp_path_factory.mktemp("parsing")
    with pytest.MonkeyPatch.context() as machine:
        machine.setenv("SIGNET_STATE", str(folder / "state"))
        found = Vault(folder / "vault")
        for number in (1, 2, 3):
            found.session(number)
        found.session(4, agent_id="scout")
        found.reindex()
        found.call("entity", "create", "part", "Inner Critic", "--now", NOW)
        found.call("remember", "The lantern queue is drained at night.", "--now", NOW)
        found.state_folder = str(folder / "state")  # type: ignore[attr-defined]
    return found


@pytest.fixture(autouse=True)
def state(vault: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIGNET_STATE", vault.state_folder)  # type: ignore[attr-defined]


# ── options anywhere ──


def test_every_command_shares_the_options_that_it_declares() -> None:
    for name, command in EVERY.items():
        own = [one for one in command.params if SHARED.intersection(one.opts)]
        assert all(isinstance(one, SharedOption) for one in own), f"{name}: its own would not be taken before it"
        out = call(*name.split(), "--help").out
        assert out.count("--workspace") == 1, name
        assert "Options of all commands: --workspace --db --verbose --quiet" in out, name


def test_options_stand_before_and_after(vault: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    root = str(vault.root)
    said = vault.call("recall", "--words", "--json", "--agent", "scout", "lantern").json
    assert len(said["files"]) == 2 and vault.hits("lantern") != [file["path"] for file in said["files"]]
    for words in (
        ("--json", "--agent", "scout", "--workspace", root, "recall", "--words", "lantern"),
        ("recall", "lantern", "--words", "--agent=scout", "--json", f"--workspace={root}"),
        ("--agent", "scout", "recall", "--workspace", root, "lantern", "--words", "--json", "--agent", "scout"),
    ):
        assert call(*words).json == said, words
    monkeypatch.setenv("SIGNET_AGENT_ID", "scout")
    assert vault.call("recall", "--words", "--json", "lantern").json == said
    named = call("--agent", "default", "entity", "show", "--json", "--workspace", root)
    assert named.json["entities"], "a command of a group"
    assert call("--now", NOW, "check", "--json", "--workspace", root).json["now"] == NOW
    assert call("violations", "list", "--workspace", root, "-q").code == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--agent", "a", "status"), "signet-sync status has no option --agent"),
        (("--now", NOW, "status"), "signet-sync status has no option --now"),
        (("--now", NOW, "entity", "log"), "signet-sync entity log has no option --now"),
        (("--agent", "a", "history"), "signet-sync history has no option --agent"),
        (("status", "--agent", "a"), "No such option '--agent'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_options_that_a_command_does_not_know_are_refused(words: tuple[str, ...], said: str) -> None:
    answer = call(*words)
    assert answer.code == 2
    assert said in (answer.json["error"]["message"] if "--json" in words else answer.err)


def test_values_and_what_follows_two_dashes_stay_what_they_are(vault: Vault) -> None:
    assert "--json" in vault.call("recall", "--", "--json").err + vault.call("recall", "--json", "--", "--json").out
    assert vault.call("recall", "--json", "--", "--agent", "scout").json["query"] == "--agent scout"
    answer = vault.call("remove", "nobody", "--reason", "--json")
    assert answer.out == "" and "no session" in answer.err, "--json is the reason"
    assert "no session" in vault.call("open", "--", "-v").err


def test_verbosity_adds_up(vault: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*given: object) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr("signet_sync.app.operations.open_index", broken)
    assert "unexpected RuntimeError" in vault.call("-v", "open", ID).err
    with pytest.raises(RuntimeError):
        vault.call("-v", "open", ID, "-v")


# ── what was meant ──


def meant(vault: Vault, *words: str) -> list[str]:
    """What the error of a command line proposes, to programs and to people."""
    before = tree(vault.root)
    error = vault.call(*words, "--json").json["error"]
    said = vault.call(*words).err
    assert all(name in said for name in error.get("suggestions", [])), said
    assert ("did you mean" in said) is ("suggestions" in error)
    assert tree(vault.root) == before
    found: list[str] = error.get("suggestions", [])
    return found


def test_commands_and_options(vault: Vault) -> None:
    assert "status" in meant(vault, "stauts")
    assert meant(vault, "entity", "crate") == ["entity create"]
    assert meant(vault, "recall", "x", "--limt", "3") == ["--limit"]
    assert meant(vault, "session", "take-spol") == [], "a hidden command is not proposed"
    assert meant(vault, "qqqq") == []
    assert meant(vault, "opne") == ["open"]


# ── paths of the workspace ──


def test_a_path_as_the_shell_completes_it_is_one_of_the_workspace(
    vault: Vault, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """From the parent folder, from inside, absolute, with `./`, through a link; of a file that is gone; patterns."""
    root = vault.root
    summary = os.path.relpath(vault.call("open", ID, "--path", "summary").out.strip(), root)
    profile = next(root.glob("entities/parts/*/profile.md")).relative_to(root).as_posix()
    (tmp_path / "link").symlink_to(root)
    gone = "memory/2026-01-01T00-00-00.000Z--aaaaaaaaaaaaaaaa--summary.md"
    for folder, form in (
        (root.parent, f"{root.name}/{{}}"),
        (root / "memory", "../{}"),
        (root / "memory", "{}"),
        (root.parent, f"{root}/{{}}"),
        (tmp_path, "link/{}"),
    ):
        monkeypatch.chdir(folder)
        path = form.format(summary)
        for words in (("open",), ("expand",), ("remove", "--dry-run"), ("redact", "--dry-run")):
            assert vault.call(*words, path).code == 0, (words, path)
        assert vault.call("entity", "show", form.format(profile)).code == 0
        for which in ("list", "restore"):
            assert f"this is no open violation [{gone}]" in vault.call("violations", which, form.format(gone)).err, form
        for name in ("memory/*--summary.md", f"{summary}#12"):
            assert make_relative(str(root), form.format(name)) == name
    monkeypatch.chdir(root / "memory")
    assert vault.call("open", summary.removeprefix("memory/")).code == 0
    for name in ("a/b", "project:/home/ada/lantern", "*--summary.md", "[[memory/x.md|summary]]", "s-1", "other.md"):
        assert make_relative(str(root), name) == name
