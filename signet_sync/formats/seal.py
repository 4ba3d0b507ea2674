"""Compresses the bytes of a file for its seal, and restores these bytes and the text in them."""

from __future__ import annotations

import sys
from functools import cache

from signet_sync.formats.body import normalize
from signet_sync.formats.frontmatter import FrontmatterProblem, open_source

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd


def pack(raw: bytes) -> bytes:
    """Compresses bytes for a seal."""
    return _packer().compress(raw, zstd.ZstdCompressor.FLUSH_FRAME)


@cache
def _packer() -> zstd.ZstdCompressor:
    """Returns one compressor for all frames: making it takes as long as compressing a small file."""
    return zstd.ZstdCompressor(1)


def unpack(packed: bytes | None) -> bytes | None:
    """Returns the sealed bytes, or None if they are lost, deleted or damaged."""
    if not packed:
        return None
    try:
        return zstd.decompress(packed)
    except zstd.ZstdError:
        return None


def body(packed: bytes | None) -> str | None:
    """Returns the normalised body of a sealed file, or None if its bytes do not hold one."""
    raw = unpack(packed)
    if raw is None:
        return None
    try:
        return normalize(open_source(raw).body)
    except FrontmatterProblem:
        return None
