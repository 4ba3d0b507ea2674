"""Figures of the long proofs: what they counted and measured, for docs/reliability.md."""

import json
import os
from collections.abc import Callable

import pytest


@pytest.fixture
def figure(request: pytest.FixtureRequest) -> Callable[..., None]:
    """Writes figures: `figure("killed and recovered", 1234, "points")`; kept where `PROOF_FIGURES` names a file."""

    def write(what: str, value: float | str, unit: str = "") -> None:
        entry = {"proof": request.node.nodeid, "what": what, "value": value, "unit": unit}
        print(f"{what}: {value} {unit}".rstrip())
        if place := os.environ.get("PROOF_FIGURES"):
            with open(place, "a", encoding="utf-8") as file:
                file.write(json.dumps(entry) + "\n")

    return write
