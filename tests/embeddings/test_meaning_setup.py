"""A model of this machine, set up by one command: its libraries, its files, a question as a trial."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest
import tiny_model
from test_meaning import hits, left, remember, work
from test_meaning import quiet as quiet
from workbench import Vault

from signet_sync.admin import meaning_setup
from signet_sync.admin.meaning_setup import File, Published
from signet_sync.embeddings.store import let_tell
from signet_sync.pages.prompt_context import choose_hits
from signet_sync.storage.locations import user_file

pytest.importorskip("onnxruntime")
pytest.importorskip("tokenizers")


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What a publisher has of a model, with the digests that are pinned."""
    folder = tmp_path / "published"
    tiny_model.write(folder)
    of = [(path, path.read_bytes()) for path in (folder / "model.onnx", folder / "tokenizer.json")]
    pinned = [File(path.name, path.as_uri(), len(data), hashlib.sha256(data).hexdigest()) for path, data in of]
    published = Published("models.example/tiny", "MIT", tuple(pinned))
    monkeypatch.setitem(meaning_setup.PUBLISHED, "local", published)
    return folder


@pytest.fixture
def vault(tmp_path: Path) -> Vault:
    found = Vault(tmp_path / "vault")
    remember(found, "The car needs fuel and tyres.")
    remember(found, "The soup is cooked with salt.")
    return found


def test_one_command_fetches_checks_and_tries_it(vault: Vault, files: Path) -> None:
    answer = vault.call("settings", "recall.meaning", "local", "--yes")
    assert answer.code == 0 and "fetched model.onnx" in answer.err and "2 passages take about" in answer.err
    work(vault)
    assert left(vault) == 0
    assert hits(vault, "automobile wheels petrol")[0]["text"].startswith("The car needs")
    again = vault.call("settings", "recall.meaning", "local")
    assert again.code == 0 and "fetched" not in again.err
    kept = Path(meaning_setup.folder_of("local"), "model.onnx")
    kept.write_bytes(kept.read_bytes()[:-1])
    (found,) = [one for one in vault.call("doctor", "--json").json["findings"] if one["name"] == "meaning"]
    assert "model.onnx is missing or damaged" in found["message"]
    assert "fetched model.onnx" in vault.call("settings", "recall.meaning", "local", "--yes").err


def test_a_prompt_is_given_what_clearly_means_it_by_the_agent_alone(vault: Vault, files: Path) -> None:
    def given(words: str) -> list[str]:
        with vault.database() as database:
            return [hit.text for hit in choose_hits(database, "default", words, None, session_id="now")]

    for words in ("which words", "a loop retries", "soup with salt"):
        remember(vault, words)
    vault.call("settings", "recall.meaning", str(files))
    assert given("automobile wheels petrol") == []
    work(vault)
    assert given("automobile wheels petrol") == ["The car needs fuel and tyres."]
    assert given("please paint a lamp") == []
    let_tell(None)
    assert given("automobile wheels petrol") == []


def test_nothing_is_fetched_unasked_or_kept_unless_it_is_what_was_published(vault: Vault, files: Path) -> None:
    assert "--yes" in vault.call("settings", "recall.meaning", "local").err
    (files / "tokenizer.json").write_text("{}")
    answer = vault.call("settings", "recall.meaning", "local", "--yes")
    assert answer.code == 2 and "tokenizer.json is not what was published" in answer.err
    assert os.listdir(meaning_setup.folder_of("local")) == ["model.onnx"] and not os.path.exists(user_file())
    (files / "model.onnx").unlink()
    Path(meaning_setup.folder_of("local"), "model.onnx").unlink()
    answer = vault.call("settings", "recall.meaning", "local", "--yes")
    assert answer.code == 2 and "recall.meaning FOLDER" in answer.err


def test_what_cannot_be_loaded_is_refused(vault: Vault, files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (files / "model.onnx").write_bytes(b"no model")
    answer = vault.call("settings", "recall.meaning", str(files))
    assert answer.code == 2 and "cannot be loaded" in answer.err and not os.path.exists(user_file())
    monkeypatch.setattr(meaning_setup, "find_spec", lambda name: None)
    assert "signet-sync[meaning]" in vault.call("settings", "recall.meaning", "local").err
