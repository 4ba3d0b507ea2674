"""Calls a server with OpenAI's `/embeddings`, which makes vectors.

numpy belongs to an extra, and is imported only when a server is named.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from signet_sync.errors import ConfigError, ProviderError, extra_hint
from signet_sync.llm.provider_choice import key_of
from signet_sync.llm.providers import HttpProvider
from signet_sync.settings.model_choice import ModelChoice

ANSWER_LIMIT = 16 * 1024 * 1024  # bytes


@dataclass(frozen=True, slots=True)
class Embedder:
    """A server with OpenAI's `/embeddings`. Vectors of another `id` cannot be compared with these."""

    provider: HttpProvider

    @property
    def id(self) -> str:
        """Names provider and model; the same model on another machine gives the same vectors."""
        return f"{self.provider.name} {self.provider.model}"

    def embed(self, texts: Sequence[str], seconds: float) -> object:
        """Returns the server's vectors in the order of the texts; it has so many seconds. Raises `ProviderError`.

        The answer is not checked yet: see `similarity.unit_vectors`.
        """
        document = {"model": self.provider.model, "input": list(texts), "encoding_format": "float"}
        raw = replace(self.provider, timeout=seconds).post("/embeddings", document, limit=ANSWER_LIMIT)
        try:
            found = {one["index"]: one["embedding"] for one in json.loads(raw)["data"]}
            return [found[number] for number in range(len(texts))]
        except (ValueError, LookupError, TypeError, RecursionError):
            raise ProviderError(
                "the answer does not contain a vector for each text", hint="the endpoint must speak OpenAI's API"
            ) from None


def embedder_for(choice: ModelChoice, environ: Mapping[str, str]) -> Embedder:
    """Returns the server of the embeddings block. Raises `ConfigError` if this machine lacks what it needs."""
    try:
        import numpy  # noqa: F401 - needed by what comes after
    except ImportError:
        hint = extra_hint("embeddings")
        raise ConfigError("embeddings need numpy, which is not installed", hint=hint) from None
    return Embedder(
        HttpProvider(
            endpoint=choice.endpoint,
            model=choice.model,
            timeout=0.0,
            key=key_of(choice, environ),
            name=choice.provider,
        )
    )
