"""Recall by meaning under faults: vectors come later, words answer meanwhile, and nothing is done twice."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import embedding_server
import pytest
import tiny_model
from agents import until
from embedding_server import FAULTS, EmbeddingServer
from test_meaning import ASKED, filled, garage, hits, left, server, set_user_file, vault, work
from test_meaning import quiet as quiet
from workbench import Vault

from signet_sync.embeddings import resident
from signet_sync.embeddings.models import load
from signet_sync.embeddings.resident import Resident
from signet_sync.errors import ProviderError, SignetSyncError
from signet_sync.settings import model
from signet_sync.settings.model_choice import MeaningChoice, ModelChoice

__all__ = ["garage", "server", "vault"]


def made(vault: Vault) -> set[tuple[object, ...]]:
    return set(vault.rows("select text, model, rows from vectors"))


def test_a_server_that_answers_wrong_or_late(server: EmbeddingServer) -> None:
    """Each answer is an error in time, and no vector of it is taken."""
    choice = ModelChoice("http", "openai-compatible", "small", server.url)
    found = load(MeaningChoice("", choice))
    for name, act in FAULTS.items():
        server.act = act
        with pytest.raises(ProviderError):
            found.embed(["the car", "the soup"], 0.3 if name == "hangs" else 300.0)
            pytest.fail(name)
    server.act = embedding_server.vectors
    assert found.embed(["the car", "the soup"], 300.0).shape == (2, embedding_server.DIMENSIONS)


def test_a_file_that_is_damaged(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    pytest.importorskip("tokenizers")
    folder = tmp_path / "tiny"
    tiny_model.write(folder)
    set_user_file(f'[recall]\nmeaning = "{folder}"\n')
    vault = Vault(tmp_path / "vault")
    filled(vault, 1)
    whole = (folder / "model.onnx").read_bytes()
    (folder / "model.onnx").write_bytes(whole[:40])
    agent = Resident(str(vault.db), lambda: model.load(str(vault.root))[0])
    before = made(vault)
    with pytest.raises(SignetSyncError):
        work(vault, agent)
    assert made(vault) == before and left(vault) > 0 and hits(vault, "bounded retry loop")
    (folder / "model.onnx").write_bytes(whole)
    work(vault, agent)
    assert left(vault) == 0 and hits(vault, "bounded retry loop")


def test_a_question_waits_for_no_server_and_then_lets_it_rest(
    garage: Vault, server: EmbeddingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resident, "_PATIENCE", 0.2)
    for name in ("hangs", "other dimensions"):
        server.act = embedding_server.vectors
        work(garage)
        server.act, asked = FAULTS[name], len(server.asked) + 1
        assert hits(garage, ASKED) == [], name
        until(partial(_asked_more, server, asked - 1), "the question")  # which may come after its answer
        assert hits(garage, "car") and len(server.asked) == asked, name


# ── the agent ends ──


def _asked_more(server: EmbeddingServer, than: int) -> bool:
    return len(server.asked) > than


def test_an_agent_that_is_told_to_end_waits_for_no_server(
    vault: Vault, server: EmbeddingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(vault, 1)
    monkeypatch.setattr(resident, "FIRST", 0.0)
    server.act = FAULTS["hangs"]
    agent = Resident(str(vault.db), lambda: model.load(str(vault.root))[0])
    agent.start()
    until(partial(_asked_more, server, 0), "a question for which nothing comes")
    agent.stop()
    assert agent.is_alive()


def test_a_model_that_is_stopped_makes_no_more(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    pytest.importorskip("tokenizers")
    tiny_model.write(tmp_path)
    found = load(MeaningChoice(str(tmp_path), ModelChoice("none")))
    found.stop()
    with pytest.raises(Exception, match=r"(?i)terminate"):
        found.embed(["the car"], 0.0)
