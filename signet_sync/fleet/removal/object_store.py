"""Puts tombstones into an object store and deletes objects from it, each only if nothing has changed in between.

This is all that is ever written there. Retries are those of the store's own library.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, Protocol

from signet_sync.errors import WorkspaceError, extra_hint
from signet_sync.fleet.places.object_stores import file_system
from signet_sync.formats.paths import MEMORY
from signet_sync.storage.remote import RemoteRoot

_CONFLICT = frozenset({"PreconditionFailed", "ConditionalRequestConflict", "409", "412"})
_GONE = frozenset({"NoSuchKey", "404"})
_UNKNOWN_OPERATION = frozenset({"NotImplemented", "MethodNotAllowed", "501"})


class Stored(NamedTuple):
    """An object as it was read: its bytes, None if it is larger than the limit, and the version that they belong to."""

    raw: bytes | None
    version: str


class ObjectStore(Protocol):
    """What a removal needs of a store; paths are relative to the workspace. All raise `OSError`."""

    def read(self, path: str, limit: int) -> Stored | None:
        """Reads an object of up to `limit` bytes; None if there is none."""

    def put(self, path: str, data: bytes, version: str | None) -> bool:
        """Writes an object if its version is still this one, None: if there is none. False if that has changed."""

    def delete(self, path: str, version: str) -> bool:
        """Deletes an object, if its version is still this one; False if not. One that is gone is deleted."""

    def kept_versions(self, paths: Iterable[str]) -> int | None:
        """Counts the older versions of some objects that the store keeps; None if it does not say."""


def obstacle(root: str, url: str) -> str:
    """Returns why nothing can be removed from a workspace, and what to do instead; empty if it can."""
    if not isinstance(root, RemoteRoot):
        there = filter(os.path.isdir, (root, os.path.join(root, MEMORY)))
        closed = [path for path in there if not os.access(path, os.W_OK | os.X_OK)]
        return f"{closed[0]} cannot be written; change its mode, or run this as its owner" if closed else ""
    scheme = url.partition(":")[0]
    if scheme.startswith("git+"):
        return "a revision of git does not change; remove the sessions in a clone, run git filter-repo, and push it"
    if "::" in url or scheme in ("zip", "tar"):
        return "an archive is only read; delete it, or remove the sessions where it was made and make it again"
    if scheme not in STORES:
        return f"{scheme}:// has no conditional deletion here; remove the sessions in a synced folder of it"
    return ""


def opened(url: str) -> ObjectStore:
    """Returns the store of a workspace's URL. Raises `WorkspaceError` if nothing can be removed there."""
    return STORES[url.partition(":")[0]](*file_system(url))


class _S3:
    """An S3 bucket, or what speaks its protocol: If-Match and If-None-Match, and a look right before a deletion.

    Some servers take a deletion and ignore its condition.
    """

    def __init__(self, fs: Any, base: str) -> None:
        from fsspec.asyn import sync

        self._fs = fs
        self._sync = sync
        self._bucket, _, prefix = base.partition("/")
        self._prefix = prefix.strip("/")

        async def connected() -> Any:
            await fs.set_session()
            return await fs.get_s3(self._bucket)

        client = sync(fs.loop, connected)
        for operation in ("PutObject", "DeleteObject"):
            if "IfMatch" not in client.meta.service_model.operation_model(operation).input_shape.members:
                raise WorkspaceError("this botocore knows no conditional deletion", hint=extra_hint("s3"))

    def read(self, path: str, limit: int) -> Stored | None:
        async def get() -> Stored:
            found = await self._fs._call_s3("get_object", Bucket=self._bucket, Key=self._key(path))
            async with found["Body"] as body:
                raw = await body.read() if found["ContentLength"] <= limit else None
            return Stored(raw, found["ETag"])

        try:
            stored: Stored = self._sync(self._fs.loop, get)
            return stored
        except Exception as error:  # noqa: BLE001  # s3fs passes on errors of aiohttp and botocore
            if _code(error) in _GONE:
                return None
            raise _plain(error) from None

    def put(self, path: str, data: bytes, version: str | None) -> bool:
        condition = {"IfNoneMatch": "*"} if version is None else {"IfMatch": version}
        return self._if_unchanged("put_object", path, Body=data, **condition)

    def delete(self, path: str, version: str) -> bool:
        current = self._version(path)
        if current != version:
            return current is None
        try:
            return self._if_unchanged("delete_object", path, IfMatch=version)
        except _NoCondition:  # it was looked at right before
            return self._if_unchanged("delete_object", path)

    def kept_versions(self, paths: Iterable[str]) -> int | None:
        count = 0
        for path in paths:
            key = self._key(path)
            try:
                found = self._call("list_object_versions", Prefix=key)
            except OSError:
                return None
            count += sum(1 for one in found.get("Versions", ()) if one["Key"] == key and not one["IsLatest"])
        return count

    def _version(self, path: str) -> str | None:
        try:
            version: str = self._call("head_object", Key=self._key(path))["ETag"]
            return version
        except FileNotFoundError:
            return None

    def _if_unchanged(self, method: str, path: str, **condition: Any) -> bool:
        try:
            self._call(method, Key=self._key(path), **condition)
        except FileNotFoundError:
            return method == "delete_object"
        except _Changed:
            return False
        return True

    def _call(self, method: str, **given: Any) -> Mapping[str, Any]:
        try:
            answer: Mapping[str, Any] = self._fs.call_s3(method, Bucket=self._bucket, **given)
            return answer
        except Exception as error:  # noqa: BLE001  # s3fs passes on errors of aiohttp and botocore
            code = _code(error)
            if code in _CONFLICT or isinstance(error, FileExistsError):
                raise _Changed from None
            if code in _UNKNOWN_OPERATION:
                raise _NoCondition(errno.EOPNOTSUPP, "the store cannot write on a condition") from None
            raise _plain(error) from None

    def _key(self, path: str) -> str:
        return f"{self._prefix}/{path}" if self._prefix else path


class _Changed(Exception):
    """The condition of a request did not hold."""


class _NoCondition(OSError):
    """A store that does not know an operation, or not with a condition."""


# By scheme: stores that take conditions.
STORES: dict[str, Callable[[Any, str], ObjectStore]] = {"s3": _S3, "s3a": _S3}


def _code(error: BaseException) -> str:
    """Returns the store's own code for an error; empty if there is none."""
    for one in (error, error.__cause__):
        response = getattr(one, "response", None)
        if isinstance(response, dict):
            return str(response.get("Error", {}).get("Code", ""))
    return "404" if isinstance(error, FileNotFoundError) else ""


def _plain(error: Exception) -> Exception:
    """Returns an error as one of the system, whose text holds no credentials and no text of an object."""
    if _code(error) in _GONE:
        return FileNotFoundError(errno.ENOENT, "it is gone")
    if isinstance(error, PermissionError):
        return PermissionError(errno.EACCES, "access denied")
    code = _code(error)
    return OSError(errno.EIO, f"the store does not answer: {code or type(error).__name__}")
