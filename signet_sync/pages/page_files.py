"""Reads and writes the files of pages: merges generated text into what is there, and swaps it in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext, suppress

from signet_sync.errors import SignetSyncError, WorkspaceError
from signet_sync.formats import managed_block
from signet_sync.formats.body import text_sha256
from signet_sync.formats.lazy_pattern import late
from signet_sync.formats.paths import DEFAULT_AGENT, MEMORY, agent_folder, head_page, log_pages, page_agent
from signet_sync.formats.snapshot import PAGE_LIMIT, Found, Signature, Trouble
from signet_sync.memories.store import memories
from signet_sync.pages.conflict_copies import keep_copy, tree
from signet_sync.pages.store import pages
from signet_sync.pages.store.pages import PageLease, PageState
from signet_sync.storage import files, writing
from signet_sync.storage.database.connection import Database
from signet_sync.sync.store import counts as counts_store
from signet_sync.sync.store import tombstones as tombstones_store
from signet_sync.sync.workspace import Pass, Workspace

_MEMORY = late(rb"\^(m-[a-z0-9]+)")
_RETRIED = "this will be retried automatically"


def signature_at(root: str, path: str) -> Signature | None:
    """Returns the signature of a page's file; None if there is none."""
    status = files.status_of(root, path)
    return files.signature_of(status) if status is not None else None


def block_of_ours(root: str, path: str) -> bytes | None:
    """Returns the bytes of a page that contains a block of ours."""
    found = files.read(root, path, PAGE_LIMIT)
    if isinstance(found, Found) and managed_block.BEGIN in found.raw and not managed_block.is_signets(found.raw):
        return found.raw
    return None


def vault_is_away(workspace: Workspace) -> bool:
    """Returns whether the vault disappeared during a pass: no page is created on an unmounted disk's mount point.

    The next full pass detects it and halts.
    """
    return files.status_of(workspace.root, MEMORY) is None and counts_store.count_indexed(workspace.database) > 0


def shows_removed(workspace: Workspace, agent_id: str, page: bytes) -> bool:
    """Returns whether a page written by another machine shows a removed session or a forgotten memory."""
    database = workspace.database
    return bool(
        find_forgotten(database, agent_id, page)
        or tombstones_store.find_named(database, agent_id, page)
        or tombstones_store.find_removed(database, agent_id, page)
    )


def find_forgotten(database: Database, agent_id: str, page: bytes) -> frozenset[str]:
    """Returns the ids of forgotten memories that a page shows."""
    return memories.find_forgotten(database, agent_id, {found.decode() for found in _MEMORY.findall(page)})


def write(
    workspace: Workspace,
    path: str,
    text: str,
    now_us: int,
    folders: set[str],
    lease: PageLease | None,
) -> tuple[Signature | None, bool]:
    """Merges text into the file on disk and swaps it in; displaced bytes are kept first, or merged again.

    Returns the file's signature, and whether bytes were written; adds its folder to `folders`, which the caller syncs.
    Raises `LeaseBusy` if the lease was lost before.
    """
    for _ in range(5):
        if lease is not None:
            lease.require()
        found = files.read(workspace.root, path, PAGE_LIMIT)
        if isinstance(found, Trouble) and found.code != "gone":
            raise SignetSyncError(found.message, path=path, hint="check the file; it is left as it is")
        existing = found.raw if isinstance(found, Found) else None
        merged = managed_block.merge(existing, text)
        signets = merged.keep is not None and merged.keep[0] == "signet"
        if signets and existing and shows_removed(workspace, page_agent(path) or DEFAULT_AGENT, existing):
            merged = merged._replace(keep=None)  # Signet can make its page again
        if merged.data == existing:
            return (found.signature if isinstance(found, Found) else None), False
        if merged.keep is not None:
            if writing.is_being_written(workspace.root, path):
                # Half of a save looks like a damaged block; it is not worth a copy.
                raise WorkspaceError("another process is writing this page", path=path, hint=_RETRIED)
            if files.read(workspace.root, path, PAGE_LIMIT) != found:
                continue
            keep_copy(workspace, path, *merged.keep, now_us)
        folders.add(path.rpartition("/")[0])
        if existing is None and vault_is_away(workspace):
            raise WorkspaceError("the vault disappeared during the pass", path=path, hint=_RETRIED)
        with nullcontext() if lease is None else workspace.database.transaction():
            if lease is not None:
                lease.require()  # until the swap: to take it over needs the lock that this transaction holds
            if existing is None:
                # A file that appears meanwhile is newer than ours: create the page only if the path is still free.
                with suppress(FileExistsError):
                    return writing.create_once(workspace.root, path, merged.data, sync_folder=False), True
                continue
            replaced = writing.replace(workspace.root, path, merged.data, existing, sync_folder=False)
        if replaced.displaced is None:
            return replaced.signature, True
        # An editor saved between our read and the swap: its file is back in place and is merged like any other.
    raise SignetSyncError("the page kept changing while it was written", path=path, hint=_RETRIED)


def publish(
    run: Pass,
    agent_id: str,
    path: str,
    text: str,
    folders: set[str],
    *,
    inputs: str = "",
    lease: PageLease | None = None,
) -> tuple[PageState, bool]:
    """Makes a page show a text; returns the state to be stored, and whether bytes were written.

    `inputs` names what the text is made of, where it is not the text itself. A page that another machine's agent wrote
    stays as long as ours would repeat what it said last: otherwise two machines whose rows differ would replace each
    other's page for ever. Only the daemon yields so.
    """
    workspace, inputs = run.workspace, inputs or text_sha256(text)
    before, present = pages.page_state(run.database, path), signature_at(workspace.root, path)
    same = before is not None and before.inputs_sha256 == inputs
    if before is not None and same and before.signature == present:
        return before, False
    if same and run.request.settle_seconds > 0:
        found = files.read(workspace.root, path, PAGE_LIMIT)
        whole = isinstance(found, Found) and managed_block.read_generated(found.raw) is not None
        if isinstance(found, Found) and whole and not shows_removed(workspace, agent_id, found.raw):
            return PageState(agent_id, found.signature, inputs, None), False
    signature, changed = write(workspace, path, text, run.request.now_us, folders, lease)
    return PageState(agent_id, signature, inputs, None), changed


def withdraw(workspace: Workspace, path: str) -> None:
    """Removes our block from a page that has nothing to show; the user's text stays, an empty page is deleted.

    Raises `WorkspaceError` if the page was saved meanwhile, `OSError`.
    """
    found = files.read(workspace.root, path, PAGE_LIMIT)
    if isinstance(found, Found):
        rest = managed_block.drop_block(found.raw)
        if rest is None:
            saved = not writing.retract(workspace.root, path, found.raw)
            writing.remove_empty_folders(workspace.root, path.rpartition("/")[0])
        else:
            saved = rest != found.raw and writing.replace(workspace.root, path, rest, found.raw).displaced is not None
        if saved:
            raise refuse_changed(path)
    with workspace.database.transaction():
        pages.forget_page(workspace.database, path)


def refuse_changed(path: str) -> WorkspaceError:
    """Returns the error for a page that was saved between our read and our write."""
    return WorkspaceError("the page changed while it was being written", path=path, hint=_RETRIED)


# ── pages without rows ──


def strays(workspace: Workspace) -> Iterator[tuple[str, str, bytes]]:
    """Yields agent, path and bytes of generated pages without rows to show, of any machine and age."""
    known = counts_store.agents(workspace.database)
    for agent_id in sorted({DEFAULT_AGENT, *known, *files.list_names(workspace.root, "agents", "")}):
        expected = log_pages(agent_id, pages.days(workspace.database, agent_id))
        if agent_id in known:
            expected.add(head_page(agent_id))
        present = [head_page(agent_id), *tree(workspace.root, f"{agent_folder(agent_id)}ledger")]
        for path in present:
            if path in expected or page_agent(path) != agent_id:
                continue
            if (raw := block_of_ours(workspace.root, path)) is not None:
                yield agent_id, path, raw
