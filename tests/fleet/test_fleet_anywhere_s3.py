"""A workspace on S3: the same verdicts as of a folder, few requests, and what faults of the store become."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import every_verdict
import object_store
import pytest
from object_store import Store
from test_fleet_anywhere import assert_equal, document, put, rows

from signet_sync.errors import SignetSyncError, Unreachable, WorkspaceError

pytestmark = pytest.mark.slow
URL = "s3://bucket/some/where"


@pytest.fixture(scope="module")
def vault(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The vault of all verdicts."""
    made = every_verdict.make(tmp_path_factory.mktemp("s3") / "vault")
    (made / "memory/a\nb.md").unlink()  # moto knows no such key
    return made


@pytest.fixture(scope="module")
def filled(vault: Path) -> Iterator[Store]:
    """A store with the vault in it."""
    with object_store.s3() as store:
        put(store.system, "bucket/some/where", every_verdict.files(vault))
        yield store


@pytest.fixture
def store(filled: Store) -> Iterator[Store]:
    """The store without faults."""
    filled.fault = lambda _method, _path: 0
    filled.asked.clear()
    yield filled
    filled.fault = lambda _method, _path: 0


def verdicts(store: Store) -> dict[str, tuple[str, str, str]]:
    """Verdict, code and message of each file, by path."""
    return {path: (verdict, code, message) for path, verdict, code, message in document(URL)["table"]}


def test_s3_gives_the_same(store: Store, vault: Path) -> None:
    assert_equal(URL, vault)
    asked = Counter(line.split(" ")[0] + (" list" if "list-type" in line else "") for line in store.asked)
    listed = [line for line in store.asked if "list-type" in line]
    assert asked.keys() == {"GET", "GET list"}, asked  # no request for the status of a file
    assert len(listed) == len(set(listed))  # each folder once
    assert rows(URL) == rows(str(vault))


def test_a_file_that_is_never_given_is_unreadable(store: Store, vault: Path) -> None:
    usual = verdicts(store)
    path = next(path for path, (verdict, _, _) in usual.items() if verdict == "indexed" and path.endswith("summary.md"))
    for status, said in ((403, "it cannot be opened: Permission denied"), (500, "reading failed: a fault of the test")):
        store.fault = lambda _method, asked, status=status: status if f"{path}?" in asked else 0  # type: ignore[misc]
        found = verdicts(store)
        assert found.pop(path) == ("invalid", "unreadable", said)
        assert found == {one: verdict for one, verdict in usual.items() if one != path}


def test_a_store_that_stops_answering_is_unreachable(store: Store) -> None:
    """Nothing that was not seen is taken for missing."""
    usual = document(URL)
    for number in (0, 3, 8):
        begun = len(store.asked) + number
        store.fault = lambda _method, _path, begun=begun: 503 if len(store.asked) > begun else 0  # type: ignore[misc]
        with pytest.raises(Unreachable, match="cannot be reached") as told:
            assert document(URL) == usual
        assert told.value.path == URL and told.value.hint


def test_a_workspace_without_access_says_so(store: Store) -> None:
    store.fault = lambda _method, _path: 403
    with pytest.raises(WorkspaceError, match="cannot be read"):
        document(URL)
    store.fault = lambda _method, _path: 0
    with pytest.raises(WorkspaceError, match="does not exist"):
        document("s3://bucket/no/where")
    with pytest.raises(SignetSyncError):
        document("s3://no-bucket/at/all")


def test_keys_that_no_folder_could_hold(store: Store, vault: Path) -> None:
    """Names of one empty part, of `..`; one name for a file and a folder; the mark of a folder."""
    import botocore.session  # its own client: s3fs has no such names either

    client = botocore.session.get_session().create_client("s3")
    keys = [f"some/where/{key}" for key in ("memory//b.md", "memory/../out.md", "memory/", "memory/./c.md", "memory")]
    for key in keys:
        client.put_object(Bucket="bucket", Key=key, Body=b"strange")
    try:
        assert_equal(URL, vault)
    finally:
        for key in keys:
            client.delete_object(Bucket="bucket", Key=key)
