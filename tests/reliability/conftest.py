"""What the long proofs counted and measured is printed."""

from collections.abc import Callable

import pytest


@pytest.fixture
def figure() -> Callable[..., None]:
    """Prints a figure: `figure("killed and recovered", 1234, "points")`."""

    def write(what: str, value: float | str, unit: str = "") -> None:
        print(f"{what}: {value} {unit}".rstrip())

    return write
