"""Every suite that takes a `harness` runs for each one by its being there, and for one that does not exist."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from signet_sync.capture import harnesses
from signet_sync.capture.harnesses import facts
from signet_sync.capture.harnesses.registry import names

GUIDE = Path(__file__).parents[2] / "CONTRIBUTING.md"
INVENTED = "quill"


@pytest.fixture(params=[*names(), INVENTED])
def harness(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The name of a harness; the invented one is what the guide adds to the facts, and its parser."""
    if request.param == INVENTED:
        place = "+++ b/signet_sync/capture/harnesses/"
        for diff in GUIDE.read_text().split(place)[1:]:
            name, *lines = diff.split("\n```")[0].split("\n--- ")[0].splitlines()
            added = "".join(f"{line[1:]}\n" for line in lines if line.startswith("+"))
            if name == "facts.py":
                made = dict(vars(facts))
                exec(added.partition('    "')[0], made)
                monkeypatch.setitem(facts.FACTS, INVENTED, made["_Quill"]())
            else:
                (tmp_path / "more-harnesses").mkdir()
                (tmp_path / "more-harnesses" / name).write_text(added)
        monkeypatch.setattr(harnesses, "__path__", [*harnesses.__path__, str(tmp_path / "more-harnesses")])
    yield request.param
    sys.modules.pop(f"{harnesses.__name__}.{INVENTED}", None)
