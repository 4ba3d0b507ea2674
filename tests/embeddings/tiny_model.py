"""A model of a few words, in the form of those that are published: an ONNX file of one node, and its tokens."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from embedding_server import SYNONYMS, understood

WORDS = "the car needs fuel and tyres soup is cooked with salt loop retries a request which words".split()


def write(folder: Path) -> None:
    """Writes model.onnx, which gives each token its vector, and tokenizer.json."""
    known = [*WORDS, *SYNONYMS]
    table = np.array([understood(word) for word in ("", *known)], np.float32)
    names = "input_ids", "attention_mask"
    node = b"".join((_text(1, "table"), _text(1, names[0]), _text(2, "vectors"), _text(4, "Gather")))
    values = b"".join((_number(1, table.shape[0]), _number(1, table.shape[1]), _number(2, 1), _text(8, "table")))
    graph = _part(1, node) + _text(2, "tiny") + _part(5, values + _part(9, table.tobytes()))
    graph += b"".join(_part(11, _value(name, 7, 2)) for name in names) + _part(12, _value("vectors", 1, 3))
    model = _number(1, 8) + _part(7, graph) + _part(8, _text(1, "") + _number(2, 13))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.onnx").write_bytes(model)
    tokens = {word: number for number, word in enumerate(["[UNK]", *known])}
    document = {
        "version": "1.0",
        "added_tokens": [],
        "normalizer": {"type": "Lowercase"},
        "pre_tokenizer": {"type": "Whitespace"},
        "model": {"type": "WordLevel", "vocab": tokens, "unk_token": "[UNK]"},
    }
    (folder / "tokenizer.json").write_text(json.dumps(document))


# ── protobuf, as far as the file needs it ──


def _varint(number: int) -> bytes:
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes([*found, number])


def _number(field: int, number: int) -> bytes:
    return _varint(field << 3) + _varint(number)


def _part(field: int, data: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(data)) + data


def _text(field: int, text: str) -> bytes:
    return _part(field, text.encode())


def _value(name: str, kind: int, dimensions: int) -> bytes:
    shape = b"".join(_part(1, _text(2, f"{name}{number}")) for number in range(dimensions))
    return _text(1, name) + _part(2, _part(1, _number(1, kind) + _part(2, shape)))
