"""`settings`: every value with where it is from; a change keeps a person's file, or leaves it where it is refused."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path

import pytest
from workbench import Vault


@pytest.fixture
def mine() -> Path:
    """The person's own file, which is not there yet."""
    path = Path(os.environ["SIGNET_CONFIG"])
    path.parent.mkdir(parents=True, exist_ok=True)
    assert not path.exists()
    return path


def listed(vault: Vault, *arguments: str) -> dict[str, tuple[object, str]]:
    answer = vault.call("settings", "--json", *arguments)
    assert answer.code == 0
    return {one["name"]: (one["value"], one["origin"]) for one in answer.json["settings"]}


def test_each_value_says_where_it_is_from(vault: Vault, mine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (vault / "signet-sync.toml").write_text(
        "[projection]\nwindow_days = 7\nbudget_tokens = 4000\n[dream]\ninterval = 99\n"
    )
    mine.write_text("[projection]\nbudget_tokens = 3000\n[dream]\ninterval = 3600\n")
    monkeypatch.setenv("SIGNET_DREAM_INTERVAL", "7200")
    assert {name: one for name, one in listed(vault).items() if one[1] != "default"} == {
        "projection.window_days": (7, "signet-sync.toml"),
        "projection.budget_tokens": (3000, str(mine)),
        "dream.interval": (7200.0, "SIGNET_DREAM_INTERVAL"),
    }
    told = vault.call("settings").out
    assert "projection.window_days" in told and "(signet-sync.toml; default 30)" in told


def test_default_takes_a_setting_out(vault: Vault, mine: Path) -> None:
    mine.write_text("# mine\n[watch]\nmode = 'off'  # slow\ndebounce = 9\n")
    assert vault.call("settings", "dream.interval", "86400").code == 0  # a value that equals the default is no change

    def changed() -> set[str]:
        return {name for name, (_, origin) in listed(vault).items() if origin != "default"}

    before = changed()
    for name, left in (("watch.mode", {"watch.debounce"}), ("watch.debounce", set()), ("llm.model", set())):
        assert vault.call("settings", name, "default").code == 0
        assert changed() == left | (before - {"watch.mode", "watch.debounce"}), name
    assert mine.read_text().startswith("# mine\n[watch]\n") and "off" not in mine.read_text()


def test_a_name_that_does_not_exist_is_refused_with_what_was_meant(vault: Vault, mine: Path) -> None:
    for words in (("watch.mod",), ("watch.mod", "off")):
        answer = vault.call("settings", *words, "--json")
        assert (answer.code, answer.json["error"]["code"]) == (2, "unknown-setting")
        assert "did you mean watch.mode?" in answer.json["error"]["message"]
    assert not mine.exists()


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("watch.mode", "off", "off"), ("reconcile.interval", "60", 60.0), ("dream.max_promotions", "5", 5),
        ("context.prompts", "off", False), ("noise.projects", "/a, /b", ["/a", "/b"]),
        ("llm.command", '["sh", "-c", "a, b"]', ["sh", "-c", "a, b"]), ("llm.model", 'a "b"', 'a "b"'),
    ],
)  # fmt: skip
def test_a_value_is_written_as_what_it_is(vault: Vault, mine: Path, name: str, text: str, value: object) -> None:
    answer = vault.call("settings", name, text, "--json")
    assert answer.code == 0 and answer.json["value"] == value and answer.json["origin"] == str(mine)
    found = tomllib.loads(mine.read_text())
    for step in name.split("."):
        found = found[step]
    assert found == value and mine.stat().st_mode & 0o777 == 0o600


def test_a_change_keeps_comments_the_mode_and_a_link(vault: Vault, mine: Path, tmp_path: Path) -> None:
    dotfiles = tmp_path / "dotfiles.toml"
    dotfiles.write_text("# mine\n[watch] # of files\nmode = 'auto' # or off\n")
    dotfiles.chmod(0o644)
    mine.symlink_to(dotfiles)
    assert vault.call("settings", "watch.mode", "off").code == 0
    assert dotfiles.read_text() == '# mine\n[watch] # of files\nmode = "off" # or off\n'
    assert mine.is_symlink() and dotfiles.stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize(
    ("before", "name", "text", "said"),
    [
        ("", "watch.mode", "always", "is unknown"), ("", "reconcile.interval", "0", "out of range"),
        ("", "llm.provider", "ollama", "llm.model is not set"), ("[watch\n", "watch.mode", "off", "line 1"),
        ("watch = 3\n", "watch.mode", "off", "cannot be changed safely"),
        ("[x]\ny = 1\n", "watch.mode", "off", "unknown setting x.y"),
    ],
)  # fmt: skip
def test_what_would_be_refused_is_not_written(
    vault: Vault, mine: Path, before: str, name: str, text: str, said: str
) -> None:
    mine.write_text(before)
    answer = vault.call("settings", name, text, "--json")
    error = answer.json["error"]
    assert answer.code == 2 and said in error["message"] and error["hint"] and mine.read_text() == before
