"""Builds the site of the documentation into `dist/site`: `python docs/site/make.py`.

Needs zensical (`pip install zensical`), no network. The builder wants its settings above the pages and everything else
below them, so the pages are copied; links that leave `docs/` lead to the repository.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import schemas  # beside this file

HERE = Path(__file__).resolve().parent
DOCS = HERE.parent
TARGET = DOCS.parent / "dist" / "site"
REPOSITORY = "https://github.com/signet-sync/signet-sync/blob/main/"


def build(target: Path) -> None:
    """Builds the site; raises `CalledProcessError` for a link that leads nowhere."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        shutil.copytree(DOCS, root / "docs", ignore=shutil.ignore_patterns("site", "*.py", "__pycache__"))
        shutil.copy(HERE / "mkdocs.yml", root)
        for page in (root / "docs").rglob("*.md"):
            leaving = "](" + "../" * len(page.relative_to(root).parts[:-1])
            page.write_text(page.read_text(encoding="utf-8").replace(leaving, f"]({REPOSITORY}"), encoding="utf-8")
        schemas.write(root / "docs" / "json")
        subprocess.run([sys.executable, "-m", "zensical", "build", "--strict"], cwd=root, check=True)
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(root / "site", target)


if __name__ == "__main__":
    build(TARGET)
