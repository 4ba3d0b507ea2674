"""Every suite that takes a `harness` runs for each one by its being there, and for one that does not exist."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from signet_sync.capture import harnesses
from signet_sync.capture.harnesses.registry import names

GUIDE = Path(__file__).parents[2] / "CONTRIBUTING.md"
INVENTED = "quill"


@pytest.fixture(params=[*names(), INVENTED])
def harness(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The name of a harness; the invented one is the folder that the guide shows."""
    if request.param == INVENTED:
        folder = tmp_path / "more-harnesses" / INVENTED
        folder.mkdir(parents=True)
        for diff in GUIDE.read_text().split(f"+++ b/signet_sync/capture/harnesses/{INVENTED}/")[1:]:
            name, *lines = diff.split("\n```")[0].split("\n--- ")[0].splitlines()
            folder.joinpath(name).write_text("".join(f"{line[1:]}\n" for line in lines if line.startswith("+")))
        monkeypatch.setattr(harnesses, "__path__", [*harnesses.__path__, str(folder.parent)])
    yield request.param
    if request.param == INVENTED:
        for module in [one for one in sys.modules if one.startswith(f"{harnesses.__name__}.{INVENTED}")]:
            del sys.modules[module]
