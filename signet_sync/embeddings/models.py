"""Calls a model that makes vectors: a server with OpenAI's `/embeddings`, or a library with files of this machine.

numpy and the libraries belong to extras, and are imported only when such a model is used. Nothing is downloaded.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import blake2b
from importlib import import_module
from typing import Any, Protocol

from signet_sync.errors import ConfigError, ProviderError, extra_hint
from signet_sync.llm import synthesis
from signet_sync.llm.providers import HttpProvider
from signet_sync.settings.model_choice import ModelChoice

ANSWER_LIMIT = 16 * 1024 * 1024  # bytes
_NEEDED = "config.json"  # is in every folder of a model


class Embedder(Protocol):
    """Makes vectors. Vectors of another `id` cannot be compared with these."""

    @property
    def id(self) -> str:
        """Names the model."""

    def embed(self, texts: Sequence[str], seconds: float) -> object:
        """Returns a sequence of numbers for each text; a server has so many seconds. Raises `ProviderError`.

        The answer is not checked yet: see `similarity.unit_vectors`.
        """


def embedder_for(choice: ModelChoice, environ: Mapping[str, str]) -> Embedder:
    """Returns the model of the embeddings block. Raises `ConfigError` if this machine lacks what it needs."""
    _library("numpy", "embeddings")
    if choice.kind == "folder":
        return FolderEmbedder(choice.provider, choice.model, choice.folder, _state_of(choice.folder))
    provider = HttpProvider(
        endpoint=choice.endpoint,
        model=choice.model,
        timeout=0.0,
        key=synthesis.key_of(choice, environ),
        name=choice.provider,
    )
    return ServerEmbedder(provider)


@dataclass(frozen=True, slots=True)
class ServerEmbedder:
    """A server with OpenAI's `/embeddings`."""

    provider: HttpProvider

    @property
    def id(self) -> str:
        """Names provider and model; the same model on another machine gives the same vectors."""
        return f"{self.provider.name} {self.provider.model}"

    def embed(self, texts: Sequence[str], seconds: float) -> object:
        """Returns the server's vectors in the order of the texts."""
        document = {"model": self.provider.model, "input": list(texts), "encoding_format": "float"}
        raw = replace(self.provider, timeout=seconds).post("/embeddings", document, limit=ANSWER_LIMIT)
        try:
            found = {one["index"]: one["embedding"] for one in json.loads(raw)["data"]}
            return [found[number] for number in range(len(texts))]
        except (ValueError, LookupError, TypeError, RecursionError):
            raise ProviderError(
                "the answer does not contain a vector for each text", hint="the endpoint must speak OpenAI's API"
            ) from None


@dataclass(frozen=True, slots=True)
class FolderEmbedder:
    """A library that runs a model from files of a folder; `state` changes with them."""

    provider: str
    model: str
    folder: str
    state: str

    @property
    def id(self) -> str:
        """Names library, model and the state of its files."""
        return f"{self.provider} {self.model} {self.state}"

    def embed(self, texts: Sequence[str], seconds: float) -> object:
        """Returns the library's vectors. `seconds` is ignored: a library cannot be stopped."""
        try:
            loaded = _loaded(self)
            if self.provider == "model2vec":
                return loaded.encode(list(texts), use_multiprocessing=False)
            return list(loaded.embed(list(texts)))
        except ConfigError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever a library of others raises about its files
            raise ProviderError(
                f"{self.provider} cannot use the model's files ({type(error).__name__})",
                hint="check embeddings.folder and embeddings.model",
            ) from None


@lru_cache(maxsize=1)
def _loaded(embedder: FolderEmbedder) -> Any:
    # Both libraries ask Hugging Face for what they do not find.
    os.environ["HF_HUB_OFFLINE"] = "1"
    library = _library(embedder.provider, embedder.provider)
    if embedder.provider == "model2vec":
        return library.StaticModel.from_pretrained(embedder.folder)
    return library.TextEmbedding(embedder.model, specific_model_path=embedder.folder, local_files_only=True)


def _library(name: str, extra: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        raise ConfigError(f"embeddings need {name}, which is not installed", hint=extra_hint(extra)) from None


def _state_of(folder: str) -> str:
    """Returns what changes with the files of a model. Raises `ConfigError` if it has none."""
    try:
        with os.scandir(folder) as entries:
            found = sorted((entry.name, entry.stat()) for entry in entries)
    except OSError as error:
        raise ConfigError(
            f"embeddings.folder cannot be read: {error.strerror}", hint="nothing is downloaded; name an existing folder"
        ) from None
    files = [(name, one.st_size, one.st_mtime_ns) for name, one in found if stat.S_ISREG(one.st_mode)]
    if not any(name == _NEEDED for name, _, _ in files):
        raise ConfigError(
            f"embeddings.folder has no {_NEEDED}", hint="download the model's files into it, such as with `hf download`"
        )
    return blake2b(repr(files).encode(), digest_size=8).hexdigest()
