"""Fetches the real sessions of `digest_sources.tsv` from the public repositories that hold them.

`python -m benchmarks.fetch_sessions FOLDER` keeps a file that is there with the listed checksum; what can't be had any
more, or has changed, is named, and the exit code is 1.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import urllib.request
from collections.abc import Sequence
from pathlib import Path

SOURCES = Path(__file__).with_name("digest_sources.tsv")
SECONDS, LARGEST = 60, 8_000_000


def fetch(name: str, url: str, sha256: str, folder: Path) -> str | None:
    """Puts one session into the folder; returns what went wrong, else None."""
    if Path(name).name != name or not url.startswith("https://"):
        return "neither a plain name nor an https address"
    target = folder / name
    if target.is_file() and hashlib.sha256(target.read_bytes()).hexdigest() == sha256:
        return None
    try:
        with urllib.request.urlopen(url, timeout=SECONDS) as answer:
            found = answer.read(LARGEST + 1)
    except (OSError, ValueError) as error:
        return f"cannot be had: {error}"
    if hashlib.sha256(found).hexdigest() != sha256:
        return "has changed"
    target.write_bytes(found)
    return None


def main(arguments: Sequence[str] | None = None) -> None:
    """Fetches every session and names what failed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fetch_sessions", description=__doc__)
    parser.add_argument("folder", type=Path)
    folder: Path = parser.parse_args(arguments).folder
    folder.mkdir(parents=True, exist_ok=True)
    with SOURCES.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))
    failed = 0
    for row in rows:
        if wrong := fetch(row["slug"], row["url"], row["sha256"], folder):
            failed += 1
            print(f"{row['slug']}: {wrong} ({row['url']})")
    print(f"{len(rows) - failed} of {len(rows)} sessions are in {folder}")
    raise SystemExit(failed > 0)


if __name__ == "__main__":
    main()
