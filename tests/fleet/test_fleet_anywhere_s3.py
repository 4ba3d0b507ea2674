"""A workspace on S3: the same verdicts as of a folder, few requests, and what faults of the store become."""

from __future__ import annotations

import itertools
import threading
import time
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


URL = "s3://bucket/some/where"


def test_s3_gives_the_same(store: Store, vault: Path) -> None:
    assert_equal(URL, vault)
    asked = Counter(line.split(" ")[0] + (" list" if "list-type" in line else "") for line in store.asked)
    listed = [line for line in store.asked if "list-type" in line]
    assert asked.keys() == {"GET", "GET list"}, asked  # no request for the status of a file
    assert len(listed) == len(set(listed))  # each folder once
    assert rows(URL) == rows(str(vault))


def test_slow_answers_are_waited_for_together(store: Store, vault: Path) -> None:
    def slow(method: str, path: str) -> int:
        time.sleep(0.05 if ".md?" in path else 0)
        return 0

    store.fault = slow
    before = time.perf_counter()
    assert_equal(URL, vault)
    read = sum(".md?" in line for line in store.asked)
    # One after the other they would take as long as all the waits; the bound is generous for a busy machine.
    assert time.perf_counter() - before < read * 0.05 * 0.8 + 1, read


def verdicts(store: Store) -> dict[str, tuple[str, str, str]]:
    """Verdict, code and message of each file, by path."""
    return {path: (verdict, code, message) for path, verdict, code, message in document(URL)["table"]}


def test_each_first_answer_fails(store: Store, vault: Path) -> None:
    """The library of the store asks again."""
    seen: set[str] = set()

    def first(_method: str, path: str) -> int:
        known = path in seen
        seen.add(path)
        return 0 if known else 500

    store.fault = first
    assert_equal(URL, vault)


def test_a_file_that_is_never_given_is_unreadable(store: Store, vault: Path) -> None:
    usual = verdicts(store)
    path = next(path for path, (verdict, _, _) in usual.items() if verdict == "indexed" and path.endswith("summary.md"))
    for status, said in ((403, "it cannot be opened: Permission denied"), (500, "reading failed: a fault of the test")):
        store.fault = lambda _method, asked, status=status: status if f"{path}?" in asked else 0  # type: ignore[misc]
        found = verdicts(store)
        assert found.pop(path) == ("invalid", "unreadable", said)
        assert found == {one: verdict for one, verdict in usual.items() if one != path}


def test_a_store_that_does_not_answer_is_unreachable(store: Store, vault: Path) -> None:
    store.fault = lambda _method, _path: 503
    with pytest.raises(Unreachable, match="cannot be reached") as told:
        document(URL)
    assert told.value.path == URL
    assert told.value.hint


def test_a_store_that_stops_answering_is_unreachable(store: Store) -> None:
    """Nothing that was not seen is taken for missing."""
    usual = document(URL)
    for number in (3, 12, 60):
        begun = len(store.asked) + number
        store.fault = lambda _method, _path, begun=begun: 503 if len(store.asked) > begun else 0  # type: ignore[misc]
        try:
            assert document(URL) == usual
        except Unreachable:
            continue
        pytest.fail(f"after {number} answers")


def test_files_that_all_fail_are_not_judged_if_the_place_is_gone(store: Store) -> None:
    """As long as its folder is listed, a file that fails is unreadable; once that fails too, nothing is known."""
    listed = itertools.count()
    store.fault = lambda _method, asked: (
        503 if ".md?" in asked or ("prefix=some%2Fwhere%2F&" in asked and next(listed)) else 0
    )
    with pytest.raises(Unreachable):
        document(URL)


def test_a_workspace_without_access_says_so(store: Store) -> None:
    store.fault = lambda _method, _path: 403
    with pytest.raises(WorkspaceError, match="cannot be read"):
        document(URL)
    store.fault = lambda _method, _path: 0
    with pytest.raises(WorkspaceError, match="does not exist"):
        document("s3://bucket/no/where")
    with pytest.raises(SignetSyncError):
        document("s3://no-bucket/at/all")


def test_a_file_that_changes_while_it_is_read(store: Store, vault: Path) -> None:
    """Between listing and reading: the new bytes are judged, with their own version; none is a mixture."""
    usual = verdicts(store)
    path = next(path for path, (verdict, _, _) in usual.items() if verdict == "indexed" and path.endswith("summary.md"))
    raw = (vault / path).read_bytes()
    changed = raw[:-10] + b"something.\n"
    held = threading.Event()

    def change(method: str, asked: str) -> int:
        if method == "GET" and f"{path}?" in asked and not held.is_set():
            held.set()
            put(store.system, "bucket/some/where", {path: changed})
        return 0

    store.fault = change
    try:
        assert verdicts(store)[path][:2] == ("invalid", "hash-mismatch")
        assert held.is_set()
    finally:
        put(store.system, "bucket/some/where", {path: raw})


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
