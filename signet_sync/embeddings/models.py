"""The models that make vectors: files that onnxruntime runs in this process, or a server with OpenAI's `/embeddings`.

Each knows what it wants before a question and before a passage. onnxruntime, tokenizers and numpy are of an extra.
"""

from __future__ import annotations

import hashlib
import json
import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from signet_sync.embeddings.vectors import Vectors, unit_vectors
from signet_sync.errors import ConfigError, ProviderError, extra_hint
from signet_sync.llm.provider_choice import key_of
from signet_sync.llm.providers import HttpProvider

if TYPE_CHECKING:
    from signet_sync.settings.model_choice import MeaningChoice

_TOKENS = 256  # of a text; a row of full text seldom has more
_ANSWER_LIMIT = 16 * 1024 * 1024  # bytes
_SEARCH = "Represent this sentence for searching relevant passages: "
# By a part of the model's name: what its training put before a question and before a passage. Source: model cards.
_PREFIXES = (
    ("e5-", "query: ", "passage: "),
    ("nomic", "search_query: ", "search_document: "),
    ("bge-m3", "", ""),
    ("bge", _SEARCH, ""),
    ("arctic-embed", _SEARCH, ""),
    ("mxbai", _SEARCH, ""),
)


class Model(ABC):
    """Makes vectors of length 1 in so many dimensions. Those of another `key` cannot be compared with these."""

    here = False  # whether it is in this process

    def __init__(self, name: str, made_by: str) -> None:
        """Tries the model, which is called `name` and known by its digest, or where it is asked."""
        self._prefixes = next(((q, p) for part, q, p in _PREFIXES if part in name.lower()), ("", ""))
        self.dimensions = 0
        self.dimensions = self.embed(["which words"], 10.0).shape[1]
        self.key = f"{self.dimensions} {made_by} {self._prefixes[1]}"

    def embed(self, texts: Sequence[str], seconds: float, *, question: bool = False) -> Vectors:
        """Returns the vectors of passages, or of a question; a server has so many seconds. Raises `ProviderError`."""
        made = self._run_model([self._prefixes[not question] + text for text in texts], seconds)
        return unit_vectors(made, len(texts), self.dimensions)

    @abstractmethod
    def _run_model(self, texts: Sequence[str], seconds: float) -> object:
        """Returns what the model gave for texts that have their prefix."""

    @abstractmethod
    def stop(self) -> None:
        """Ends what is being made, which then fails, so that the process can end."""


def load(choice: MeaningChoice) -> Model:
    """Returns the model that the settings choose, once it has answered. Raises `ConfigError`, `ProviderError`."""
    return _Files(choice) if choice.folder else _Server(choice)


class _Files(Model):
    """A model of this machine, in one thread: it works beside everything else that runs here."""

    here = True

    def __init__(self, choice: MeaningChoice) -> None:
        try:
            import onnxruntime
            from tokenizers import Tokenizer
        except ImportError:
            raise ConfigError("onnxruntime or tokenizers is not installed", hint=extra_hint("meaning")) from None
        options, self._run = onnxruntime.SessionOptions(), onnxruntime.RunOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.enable_mem_pattern = False  # it plans for the longest text so far: 40 MB more
        options.log_severity_level = 4
        try:
            with open(os.path.join(choice.folder, "model.onnx"), "rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            self._tokens = Tokenizer.from_file(os.path.join(choice.folder, "tokenizer.json"))
            self._tokens.enable_truncation(_TOKENS)
            self._tokens.no_padding()
            self._session = onnxruntime.InferenceSession(file.name, options, providers=["CPUExecutionProvider"])
            super().__init__(os.path.basename(choice.folder.rstrip("/")), digest[:16])
        except Exception as error:  # onnxruntime and tokenizers raise plain exceptions of their own
            message = f"the model cannot be loaded ({type(error).__name__})"
            raise ConfigError(message, path=choice.folder, hint="") from error

    def stop(self) -> None:
        self._run.terminate = True

    def _run_model(self, texts: Sequence[str], seconds: float) -> object:
        return [self._mean(text) for text in texts]  # together they would take 50 MB for a text, and longer

    def _mean(self, text: str) -> Vectors:
        found = self._tokens.encode(text)
        every = {"input_ids": found.ids, "attention_mask": found.attention_mask, "token_type_ids": found.type_ids}
        given = {one.name: np.array([every[one.name]], np.int64) for one in self._session.get_inputs()}
        means: Vectors = self._session.run(None, given, self._run)[0][0].mean(axis=0)
        return means


class _Server(Model):
    """A server with OpenAI's `/embeddings`; nobody waits for its answer when the process ends."""

    def stop(self) -> None:
        """Leaves a request to its own deadline."""

    def __init__(self, choice: MeaningChoice) -> None:
        server = choice.server
        self._provider = HttpProvider(
            endpoint=server.endpoint,
            model=server.model,
            timeout=0.0,
            key=key_of(server, os.environ),
            name=server.provider,
        )
        super().__init__(server.model, f"{server.provider} {server.model}")

    def _run_model(self, texts: Sequence[str], seconds: float) -> object:
        document = {"model": self._provider.model, "input": texts, "encoding_format": "float"}
        raw = replace(self._provider, timeout=seconds).post("/embeddings", document, limit=_ANSWER_LIMIT)
        try:
            by_number = {one["index"]: one["embedding"] for one in json.loads(raw)["data"]}
            return [by_number[number] for number in range(len(texts))]
        except (ValueError, LookupError, TypeError, RecursionError):
            message = "the answer does not contain a vector for each text"
            raise ProviderError(message, hint="the endpoint must speak OpenAI's API") from None
