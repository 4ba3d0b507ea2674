"""What the tests of several rooms share: the reference folder beside the checkout, and its vectors."""

import json
from pathlib import Path

import pytest
from hypothesis import settings

# A loaded machine is no reason to fail: what must be fast is measured by the tests that say so.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")


@pytest.fixture(scope="session")
def shared():
    """The folder with vectors, vaults and seeds; whoever has only the project skips what needs it."""
    folder = Path(__file__).resolve().parents[2] / "shared"
    if not folder.is_dir():
        pytest.skip("the reference folder is not beside this checkout")
    return folder


@pytest.fixture(scope="session")
def vectors(shared):
    """What the original program answers, by function: a list of cases each."""
    return json.loads((shared / "vectors" / "signet.json").read_text(encoding="utf-8"))
