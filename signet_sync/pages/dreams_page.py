"""Composes and publishes DREAMS.md: which memories are in MEMORY.md because they were recalled often."""

from __future__ import annotations

from collections.abc import Sequence

from signet_sync.errors import SignetSyncError, reason
from signet_sync.formats import managed_block
from signet_sync.formats.body import text_sha256
from signet_sync.formats.handle import handle
from signet_sync.formats.paths import dream_page
from signet_sync.formats.snapshot import PAGE_LIMIT, Found
from signet_sync.formats.timestamps import day_of, iso
from signet_sync.memories.score import Dream, SweepView, order
from signet_sync.memories.store import memories, promotions
from signet_sync.pages import page_files
from signet_sync.pages.sections import plain
from signet_sync.pages.store import pages
from signet_sync.storage import files, writing
from signet_sync.sync.workspace import Pass, Request, Workspace
from signet_sync.text.phrases import count_noun

TITLE = "# DREAMS.md — Dream Diary"
INTRO = """\
What is looked up again and again, by different questions, rises into the *Dreamed* section of MEMORY.md by itself. This
page tells, sweep by sweep and oldest first, what rose and why.

Something should not have risen? `signet-sync forget ID` takes the memory away, here and everywhere else. Its ID stands
at the end of its line, after the `^`."""
NOTHING = "Nothing has risen yet."


def diary(sweeps: Sequence[SweepView]) -> str:
    """Returns the generated text of DREAMS.md: an entry for each sweep that promoted, oldest first."""
    entries: list[str] = []
    for sweep in sweeps:
        if sweep.promoted <= 0 and not sweep.dreams:
            continue
        bullets = [_tell(dream) for dream in sorted(sweep.dreams, key=lambda dream: order(dream.memory))]
        promoted, at = max(sweep.promoted, len(bullets)), iso(sweep.at_us)
        counts = (
            f"- candidates: {sweep.candidates}\n- promoted: {promoted}\n- skipped (already promoted): {sweep.skipped}"
        )
        gone = [f"- {promoted - len(bullets)} forgotten since"] if promoted > len(bullets) else []
        head = f"## Dreamed {at[:10]} {at[11:16]} UTC\n\n{counts}\n\n### Promoted\n\n"
        entries.append(head + "\n".join([*bullets, *gone]))
    return "\n\n".join([TITLE, INTRO, *(entries or [NOTHING])])


def _tell(dream: Dream) -> str:
    """Returns `- … — found 5 times by 3 different queries on 3 days, last on …; score 0.67 ^m-…`."""
    memory = dream.memory
    queries, days = count_noun(memory.queries, "query", "different queries"), count_noun(memory.unique_days, "day")
    why = f"found {count_noun(memory.recall_count, 'time')} by {queries} on {days}"
    why += f", last on {day_of(memory.last_us)}; score {memory.score:.2f}"
    return f"- {plain(dream.text) or '…'} — {why} {handle(memory.memory_id)}"


# Change this when the same rows give a different DREAMS.md.
_VERSION = "5"


def update(run: Pass, agent_id: str) -> None:
    """Makes DREAMS.md equal to the promotion history; without one, only lines of forgotten memories go."""
    workspace, database, path = run.workspace, run.database, dream_page(agent_id)
    history, before = promotions.fingerprint(database, agent_id), pages.page_state(database, path)
    inputs = text_sha256(f"{_VERSION} {history}")
    known = before is not None and before[1:3] == (page_files.signature_at(workspace.root, path), inputs)
    if known and not any(agent == agent_id for agent, _ in memories.list_unscrubbed(database)):
        return
    found = files.read(workspace.root, path, PAGE_LIMIT)
    if not history:  # lost, or all of it another machine's
        if isinstance(found, Found):
            gone = [one.encode() for one in page_files.find_forgotten(database, agent_id, found.raw)]
            rest = managed_block.drop_lines(found.raw, lambda line: any(one in line for one in gone))
            if rest != found.raw:
                writing.replace(workspace.root, path, rest, found.raw)
        return
    folders: set[str] = set()
    text = diary(promotions.sweeps(database, agent_id))
    state, _ = page_files.publish(run, agent_id, path, text, folders, inputs=inputs)
    writing.sync_folders(workspace.root, folders)
    with database.transaction():
        pages.store_page(database, path, state)


def remove_forgotten(workspace: Workspace, now_us: int) -> str:
    """Removes forgotten memories from every DREAMS.md, from entries of other machines too.

    Returns why a page that cannot be written now still contains one, or "".
    """
    forgotten = memories.list_unscrubbed(workspace.database)
    trouble = ""
    for agent_id in sorted({agent_id for agent_id, _ in forgotten}):
        path = dream_page(agent_id)
        found = files.read(workspace.root, path, PAGE_LIMIT)
        ids = [memory_id.encode() for agent, memory_id in forgotten if agent == agent_id]
        if not (isinstance(found, Found) and any(memory_id in found.raw for memory_id in ids)):
            continue
        try:
            update(Pass(workspace, Request(now_us)), agent_id)
        except (OSError, SignetSyncError) as error:
            trouble = f"{path}: the page could not be written: {reason(error)}"
    return trouble
