"""Packs the bytes of a file for its seal, and gives these bytes, and the text in them, back."""

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
    """Packs bytes as a seal keeps them."""
    return _packer().compress(raw, zstd.ZstdCompressor.FLUSH_FRAME)


@cache
def _packer() -> zstd.ZstdCompressor:
    """One for all frames: to make it takes as long as to pack a small file."""
    return zstd.ZstdCompressor(1)


def unpack(packed: bytes | None) -> bytes | None:
    """Gives the sealed bytes, or None where they are lost, let go or damaged."""
    if not packed:
        return None
    try:
        return zstd.decompress(packed)
    except zstd.ZstdError:
        return None


def body(packed: bytes | None) -> str | None:
    """Gives the normalised body of a sealed file, or None where its bytes do not give it."""
    raw = unpack(packed)
    if raw is None:
        return None
    try:
        return normalize(open_source(raw).body)
    except FrontmatterProblem:
        return None
