"""`completion`: each script says where it belongs, is one that its shell reads, and offers what the vault holds."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.shell_completion import get_completion_class
from workbench import NOW, ROOT, Vault, call, tree

from signet_sync.cli.main import group


@pytest.mark.parametrize(
    ("shell", "place"),
    [
        ("bash", "~/.local/share/bash-completion/completions/signet-sync"),
        ("zsh", "~/.zfunc/_signet-sync"),
        ("fish", "~/.config/fish/completions/signet-sync.fish"),
    ],
)
def test_the_first_lines_say_where_to_put_the_script(shell: str, place: str) -> None:
    script = call("completion", shell)
    assert (script.code, script.err) == (0, "")
    head = script.out.splitlines()[:4]
    assert f"#   signet-sync completion {shell} > {place}" in head
    assert all(line.startswith("#") for line in head[:3])
    assert head[0].startswith("#compdef signet-sync") is (shell == "zsh"), "zsh looks at the first line alone"
    if shutil.which(shell):
        checked = subprocess.run([shell, "-n"], input=script.out, text=True, capture_output=True, check=False)
        assert checked.returncode == 0, checked.stderr


@pytest.fixture(scope="module")
def vault(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Vault]:
    """Sessions of two agents, an entity, a memory; tests only read it."""
    folder = tmp_path_factory.mktemp("completion")
    with pytest.MonkeyPatch.context() as machine:
        machine.setenv("SIGNET_STATE", str(folder / "state"))
        made = Vault(folder / "vault")
        for number in (1, 2):
            made.session(number)
        made.session(4, agent_id="scout")
        made.reindex()
        made.call("entity", "create", "part", "Inner Critic", "--now", NOW)
        made.call("remember", "The lantern queue is drained at night.", "--now", NOW)
        yield made


def at(vault: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes a vault the workspace of this test."""
    monkeypatch.setenv("SIGNET_STATE", str(vault.root.parent / "state"))
    monkeypatch.setenv("SIGNET_WORKSPACE", str(vault.root))


def completed(
    vault: Vault, monkeypatch: pytest.MonkeyPatch, line: str, shell: str = "bash"
) -> list[tuple[str, str | None]]:
    """What a shell offers for the last word of a line, with what it shows beside."""
    at(vault, monkeypatch)
    words = ["signet-sync", *line.split(" ")]
    monkeypatch.setenv("COMP_WORDS", " ".join(words) if shell != "fish" else " ".join(words[:-1]))
    monkeypatch.setenv("COMP_CWORD", str(len(words) - 1) if shell != "fish" else words[-1])
    kind = get_completion_class(shell)
    assert kind is not None
    script = kind(group, {}, "signet-sync", "_SIGNET_SYNC_COMPLETE")
    before = tree(vault.root.parent)
    said = script.complete()
    assert tree(vault.root.parent) == before, "nothing is written"
    if shell == "zsh":  # type, word and help, one a line
        lines = said.split("\n")
        return [(lines[place + 1], lines[place + 2]) for place in range(0, len(lines) - 2, 3)]
    if shell == "fish":
        pairs = [entry.partition(",")[2].partition("\t") for entry in said.split("\n")]
        return [(word, about or None) for word, _, about in pairs]
    return [(entry.partition(",")[2], None) for entry in said.split("\n") if entry]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_sessions_complete_with_their_sentences(vault: Vault, monkeypatch: pytest.MonkeyPatch, shell: str) -> None:
    at(vault, monkeypatch)
    listed = vault.call("open", "--json").json["sessions"]
    tokens = [one["session_token"] for one in listed]
    offered = completed(vault, monkeypatch, "open ", shell)
    assert [word for word, _ in offered] == tokens
    if shell != "bash":
        assert all(about.startswith("2026-03-2") and "retry loop" in about for _, about in offered)
    assert [word for word, _ in completed(vault, monkeypatch, f"open {tokens[0][:4]}", shell)] == tokens[:1]
    ids = sorted(one["session_id"] for one in listed)
    assert sorted(word for word, _ in completed(vault, monkeypatch, "remove 5e55", shell)) == ids
    theirs = [word for word, _ in completed(vault, monkeypatch, "open --agent scout ", shell)]
    assert len(theirs) == 1 and not set(theirs) & set(tokens)


def test_handles_entities_agents_projects_and_harnesses_complete(vault: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    at(vault, monkeypatch)
    memory = vault.call("remember", "The lantern queue is drained at night.", "--json", "--now", NOW).json["id"]
    (entity,) = (one["id"] for one in vault.call("entity", "list", "--json").json["entities"])

    def words(line: str) -> list[str]:
        return [word for word, _ in completed(vault, monkeypatch, line)]

    assert words("expand ^m-") == [f"^{memory}"] == words("pin ^m") == words("forget ^")
    assert words(f"forget {memory[:4]}") == [memory]
    assert words("entity show ") == [entity] and words("entity set inner") == ["inner-critic"]
    assert words("search --agent ") == ["default", "scout"] == words("check --agent ") == words("--agent ")
    assert words("import c") == ["claude-code", "codex"]
    assert words("entity create p")[0].startswith("p")
    assert words("entity sh") == ["show"] and words("hel") == ["help"]
    assert {"--workspace", "--agent", "--json"} <= set(words("recall --"))
    assert "--agent" not in words("init --")


def test_nothing_completes_without_an_index_and_nothing_is_written(
    vault: Vault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty = Vault(tmp_path / "vault")
    (tmp_path / "state").mkdir()
    for line in ("open ", "expand ^", "entity show ", "forget ", "search --agent ", "violations show "):
        assert completed(empty, monkeypatch, line) == [], line
    assert completed(vault, monkeypatch, f"--workspace {empty.root} open ") == []
    database = next(path for path in (vault.root.parent / "state").rglob("*.db"))
    (tmp_path / "broken.db").write_bytes(database.read_bytes()[:5000])
    assert completed(vault, monkeypatch, f"--db {tmp_path}/broken.db open ") == []


@pytest.mark.parametrize("words", ["entity show", "forget", "import", "check --agent"])
def test_a_completion_loads_nothing_of_a_pass(vault: Vault, words: str) -> None:
    """A person waits for it at each Tab."""
    line = f"signet-sync {words}"
    environ = {
        "_SIGNET_SYNC_COMPLETE": "zsh_complete", "COMP_WORDS": line, "COMP_CWORD": str(len(line.split())),
        "SIGNET_WORKSPACE": str(vault.root), "SIGNET_STATE": str(vault.root.parent / "state"),
    }  # fmt: skip
    code = """
import sys
from signet_sync.cli.main import run
try:
    run([])
finally:
    print(*sys.modules, file=sys.stderr)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | environ | {"PYTHONPATH": str(ROOT)}, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    loaded = done.stderr.split()
    assert "signet_sync.cli.suggestions" in loaded, done
    slow = {"markdown_it", "loguru", "ulid", "signet_sync.sync.engine", "pydantic"}
    assert not slow.intersection(loaded)
