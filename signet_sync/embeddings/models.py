"""The models that make vectors: files that onnxruntime runs in this process, or a server with OpenAI's `/embeddings`.

Each knows what it wants before a question and before a passage. onnxruntime, tokenizers and numpy are of an extra.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

import numpy as np

from signet_sync.embeddings.vectors import Vectors, unit_vectors
from signet_sync.errors import ConfigError, ProviderError, extra_hint
from signet_sync.llm.provider_choice import key_of
from signet_sync.llm.providers import HttpProvider

if TYPE_CHECKING:
    from signet_sync.settings.model_choice import MeaningChoice

MODEL, TOKENS = "model.onnx", "tokenizer.json"
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


class Model(Protocol):
    """Makes vectors of length 1. Those of another `key` cannot be compared with these."""

    key: str

    def stop(self) -> None:
        """Ends what is being made, which then fails, so that the process can end."""

    def embed(self, texts: Sequence[str], seconds: float, *, question: bool = False) -> Vectors:
        """Returns the vectors of passages, or of a question; a server has so many seconds. Raises `ProviderError`."""


def load(choice: MeaningChoice, environ: Mapping[str, str] = os.environ) -> Model:
    """Returns the model that the settings choose, once it has answered. Raises `ConfigError`, `ProviderError`."""
    name = choice.folder.rstrip("/").rpartition("/")[2] if choice.folder else choice.server.model
    usual = next(((q, p) for part, q, p in _PREFIXES if part in name.lower()), ("", ""))
    prefixes = choice.query_prefix or usual[0], choice.passage_prefix or usual[1]
    return _Files(choice.folder, prefixes) if choice.folder else _Server(choice, prefixes, environ)


class _Files:
    """A model of this machine, in one thread: it works beside everything else that runs here."""

    def __init__(self, folder: str, prefixes: tuple[str, str]) -> None:
        try:
            import onnxruntime
            from tokenizers import Tokenizer
        except ImportError:
            raise ConfigError("onnxruntime or tokenizers is not installed", hint=extra_hint("meaning")) from None
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.enable_cpu_mem_arena = False
        options.log_severity_level = 4
        self._run = onnxruntime.RunOptions()
        try:
            with open(os.path.join(folder, MODEL), "rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            self._tokens = Tokenizer.from_file(os.path.join(folder, TOKENS))
            self._tokens.enable_truncation(_TOKENS)
            self._tokens.enable_padding()
            self._session = onnxruntime.InferenceSession(file.name, options, providers=["CPUExecutionProvider"])
            self._inputs = [one.name for one in self._session.get_inputs()]
            self._prefixes = prefixes
            self.key = ""
            dimensions = self.embed(["which words"], 0).shape[1]
        except Exception as error:  # onnxruntime and tokenizers raise plain exceptions of their own
            raise ConfigError(f"the model cannot be loaded ({type(error).__name__})", path=folder, hint="") from error
        self.key = f"{dimensions} {digest[:16]} {prefixes[1]}"

    def stop(self) -> None:
        self._run.terminate = True

    def embed(self, texts: Sequence[str], seconds: float, *, question: bool = False) -> Vectors:
        del seconds
        found = self._tokens.encode_batch([self._prefixes[not question] + text for text in texts])
        mask = np.array([one.attention_mask for one in found], np.int64)
        given = {"input_ids": np.array([one.ids for one in found], np.int64), "attention_mask": mask}
        given["token_type_ids"] = np.zeros_like(mask)
        tokens = self._session.run(None, {name: given[name] for name in self._inputs}, self._run)[0]
        means = (tokens * mask[:, :, None]).sum(axis=1) / np.maximum(mask.sum(axis=1, keepdims=True), 1)
        return unit_vectors(means, len(texts))


class _Server:
    """A server with OpenAI's `/embeddings`."""

    def __init__(self, choice: MeaningChoice, prefixes: tuple[str, str], environ: Mapping[str, str]) -> None:
        server = choice.server
        self._provider = HttpProvider(
            endpoint=server.endpoint, model=server.model, timeout=0.0, key=key_of(server, environ), name=server.provider
        )
        self._prefixes = prefixes
        self.key = ""
        dimensions = self.embed(["which words"], 10.0).shape[1]
        self.key = f"{dimensions} {server.provider} {server.model} {prefixes[1]}"

    def stop(self) -> None:
        pass  # it is waited for in a thread that ends with the process

    def embed(self, texts: Sequence[str], seconds: float, *, question: bool = False) -> Vectors:
        asked = [self._prefixes[not question] + text for text in texts]
        document = {"model": self._provider.model, "input": asked, "encoding_format": "float"}
        raw = replace(self._provider, timeout=seconds).post("/embeddings", document, limit=_ANSWER_LIMIT)
        try:
            by_number = {one["index"]: one["embedding"] for one in json.loads(raw)["data"]}
            found = [by_number[number] for number in range(len(texts))]
        except (ValueError, LookupError, TypeError, RecursionError):
            message = "the answer does not contain a vector for each text"
            raise ProviderError(message, hint="the endpoint must speak OpenAI's API") from None
        vectors = unit_vectors(found, len(texts))
        if self.key and vectors.shape[1] != int(self.key.partition(" ")[0]):
            raise ProviderError("the server's vectors have another number of dimensions than before")
        return vectors
