"""Lists all commands, by group, and what is said where people look for one that is not needed."""

from typing import NamedTuple


class Listed(NamedTuple):
    """Says where a command is and what the overview shows of it.

    `module` is one of `signet_sync.cli` and contains a click command of the same name ("-" as "_"; a name of Python's
    has "_" at its end). No module may be called `run`: it would replace `main.run`.
    """

    module: str
    group: str
    help: str


# The first group `--help` lists: at most 12 commands.
EVERYDAY = "everyday"
HIDDEN = "hidden"
_GROUPS: dict[str, dict[str, tuple[str, str]]] = {
    EVERYDAY: {
        "setup": ("setup", "Set everything up: a few questions, each with a good default."),
        "demo": ("init", "Create, index and show a workspace of sample sessions."),
        "hooks": ("hooks", "Connect coding agents, so that their sessions are captured."),
        "status": ("status", "Show the agent's state, what is indexed and what is wrong."),
        "recall": ("recall", "Answer a question from sessions, statements, memories, entities."),
        "open": ("recall", "Show a session, or list the newest ones."),
        "remember": ("memory", "Remember a text: MEMORY.md shows it, recall finds it."),
        "forget": ("memory", "Forget a memory, to the last byte."),
        "statements": ("memory", "Say that a statement is done, not true, or to be kept."),
        "ui": ("serve", "View the workspace in a browser, on this machine only."),
    },
    "memory": {
        "context": ("context", "Print the context that a session gets at its start."),
        "handoff": ("context", "Print what another agent needs to go on, or start it with that."),
        "expand": ("recall", "Follow a handle of MEMORY.md down to the transcript."),
        "pin": ("memory", "Pin a memory, statement or project to the top of MEMORY.md."),
        "dream": ("memory", "Promote memories that are recalled often into MEMORY.md."),
        "entity": ("entity", "Manage files about the user, parts and relationships."),
    },
    "vault": {
        "reindex": ("reindex", "Run one full pass: validate, index, write MEMORY.md."),
        "check": ("check", "Validate the files without writing anything."),
        "violations": ("check", "List, restore or accept sealed files that changed."),
        "import": ("import_", "Import past sessions of a harness into the vault."),
        "restore": ("import_", "Give a session back to its harness, which resumes it."),
        "remove": ("remove", "Remove a session for good, to the last byte."),
        "redact": ("remove", "Remove secrets from sealed files, to the last byte."),
        "history": ("backup", "List and compare commits of the workspace, or delete them."),
        "checkpoint": ("backup", "Commit the workspace as it is now."),
    },
    "service": {
        "service": ("service", "Install the agent as a systemd or launchd service."),
        "run": ("service", "Run the background agent, which updates index and MEMORY.md."),
        "doctor": ("status", "Check the installation end to end."),
        "logs": ("status", "Show the last lines of a log."),
        "settings": ("settings", "Show, explain or change settings."),
    },
    "more": {
        "backup": ("backup", "Create, list and restore backups of what no file contains."),
        "migrate": ("import_", "Bring over what another program remembers."),
        "fleet": ("fleet", "Share, ask, check and clean many workspaces."),
        "eject": ("service", "Detach signet-sync from a workspace; the vault stays."),
    },
    # What harnesses, scripts and other programs call; `--help` leaves it out.
    HIDDEN: {
        "mcp": ("serve", "Serve an agent's memory as MCP tools over stdio."),
        "init": ("init", "Create an empty workspace."),
        "render": ("context", "Print or write an agent's MEMORY.md."),
        "hook": ("programs", "Handle an event of a harness's hook (called by harnesses)."),
        "note": ("programs", "Hand work over to the next session (called by agents)."),
        "session": ("programs", "Write a session's end or compaction into the vault."),
        "transcript": ("programs", "Record the turns of a running session."),
    },
}
COMMANDS: dict[str, Listed] = {
    name: Listed(module, group, text) for group, listed in _GROUPS.items() for name, (module, text) in listed.items()
}
GROUPS: tuple[str, ...] = tuple(group for group in _GROUPS if group != HIDDEN)

# What people look for and no command is needed for.
INSTEAD = {
    "export": "everything is plain files: copy the workspace's folder; `signet-sync backup create FILE` saves what no"
    " file contains",
    "uninstall": "`signet-sync eject --dry-run` shows what `signet-sync eject` would take away and what stays; then"
    " uninstall the package",
}
