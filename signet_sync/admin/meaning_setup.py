"""Sets up `recall` by meaning in one step: fetches a model's files from their publisher, and tries them.

Each file is pinned to a revision and to its digest; nothing is kept that has another.
"""

import hashlib
import os
import time
from collections.abc import Iterator
from importlib.util import find_spec
from typing import NamedTuple

from signet_sync.embeddings import store
from signet_sync.errors import ConfigError, DatabaseError, extra_hint
from signet_sync.settings.model_choice import LOCAL, MeaningChoice, ModelChoice
from signet_sync.storage import durable
from signet_sync.storage.locations import base
from signet_sync.sync.read_only import IndexPlace, open_index

_MODEL, _TOKENS = "model.onnx", "tokenizer.json"
_PATIENCE = 30.0  # seconds without a byte
_TRIED = ("What did we decide about retries, and why?", "The loop waits twice as long after each failure. " * 12)


class File(NamedTuple):
    """A file of a model: its name here, and as it is published its address, bytes and SHA-256."""

    name: str
    address: str = ""
    size: int = 0
    sha256: str = ""


class Published(NamedTuple):
    """A model as it is published: where, under which licence, and the files that we need of it."""

    where: str
    licence: str
    files: tuple[File, ...]


def _describe_model(
    where: str, revision: str, licence: str, model: tuple[int, str], tokens: tuple[int, str]
) -> Published:
    at = f"https://{where}/resolve/{revision}/"
    files = File(_MODEL, f"{at}onnx/model_quantized.onnx", *model), File(_TOKENS, f"{at}tokenizer.json", *tokens)
    return Published(where, licence, files)


PUBLISHED = {
    "local": _describe_model(
        "huggingface.co/Xenova/all-MiniLM-L6-v2",
        "751bff37182d3f1213fa05d7196b954e230abad9",
        "Apache-2.0",
        (22_972_370, "afdb6f1a0e45b715d0bb9b11772f032c399babd23bfc31fed1c170afc848bdb1"),
        (711_661, "da0e79933b9ed51798a3ae27893d3c5fa4a201126cef75586296df9b4d2c62a0"),
    ),
    "multilingual": _describe_model(
        "huggingface.co/Xenova/multilingual-e5-small",
        "761b726dd34fb83930e26aab4e9ac3899aa1fa78",
        "MIT",
        (118_308_185, "f80102d3f2a1229f387d3c81909990d8945513e347b0eab049f7de3c6f98c193"),
        (17_082_730, "0b44a9d7b51c3c62626640cda0e2c2f70fdacdc25bbbd68038369d14ebdf4c39"),
    ),
}


def require_extra() -> None:
    """Raises `ConfigError`, with the command that installs it, if a library is missing."""
    missing = [name for name in ("onnxruntime", "tokenizers", "numpy") if find_spec(name) is None]
    if missing:
        raise ConfigError(f"{' and '.join(missing)} is not installed", hint=extra_hint("meaning"))


def folder_of(chosen: str) -> str:
    """Returns the folder with the files of a model of this machine."""
    return os.path.join(base(), "models", LOCAL[chosen]) if chosen in LOCAL else chosen


def find_lost(chosen: str) -> list[File]:
    """Returns the files that are missing, or not what was published."""
    wanted = PUBLISHED[chosen].files if chosen in PUBLISHED else (File(_MODEL), File(_TOKENS))
    return [one for one in wanted if not _is_whole(one, folder_of(chosen))]


def _is_whole(file: File, folder: str) -> bool:
    try:
        with open(os.path.join(folder, file.name), "rb") as opened:
            return not file.sha256 or hashlib.file_digest(opened, "sha256").hexdigest() == file.sha256
    except OSError:
        return False


def fetch(chosen: str, wanted: list[File]) -> Iterator[File]:
    """Fetches files one after the other, and yields each that is there. Raises `ConfigError`."""
    from urllib.request import urlopen  # slow import, needed once on a machine

    folder = folder_of(chosen)
    hint = "signet-sync settings recall.meaning FOLDER   # with model.onnx and tokenizer.json from elsewhere"
    for file in wanted:
        try:
            with urlopen(file.address, timeout=_PATIENCE) as answer:  # noqa: S310 - an address of the table above
                data = answer.read(file.size + 1)
            if hashlib.sha256(data).hexdigest() != file.sha256:
                raise ConfigError(f"{file.name} is not what was published", path=file.address, hint=hint)
            durable.private_folder(folder)
            os.close(durable.publish(os.path.join(folder, file.name), data))
        except (OSError, ValueError) as error:
            raise ConfigError(f"{file.name} cannot be fetched: {error}", path=file.address, hint=hint) from None
        yield file


def try_out(chosen: str, place: IndexPlace) -> str:
    """Asks the model one question; returns what vectors of everything that is indexed will cost.

    Raises `ConfigError` for a model that does not work.
    """
    from signet_sync.embeddings import models  # loads onnxruntime

    model = models.load(MeaningChoice(folder_of(chosen), ModelChoice("none")))
    model.embed(_TRIED[:1], 0.0, question=True)
    began = time.process_time()
    model.embed([_TRIED[1]] * 8, 0.0)
    each = (time.process_time() - began) / 8
    try:
        with open_index(place) as database:
            rows = store.passages(database)
    except DatabaseError:
        rows = 0
    size = rows * (model.dimensions + 8) / 1_000_000
    return f"{rows:,} passages take about {max(round(rows * each / 60), 1)} min of one processor, and {size:.1f} MB"
