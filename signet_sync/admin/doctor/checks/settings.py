"""Checks optional features: a language model, the history."""

from __future__ import annotations

import shutil
from importlib.util import find_spec

from signet_sync.admin.doctor.finding import Finding, fine, problem, warning
from signet_sync.admin.doctor.installation import Installation
from signet_sync.errors import SignetSyncError
from signet_sync.history.git import repository
from signet_sync.llm import installed, providers, synthesis
from signet_sync.settings.model import user_file


def model(target: Installation) -> list[Finding]:
    """Checks that the configured language model can be called; nothing is sent to it."""
    try:
        provider = synthesis.provider_for(target.settings, target.root, target.environ)
    except SignetSyncError as error:
        return [warning("language-model", f"none is used: {error.message}", error.hint)]
    if isinstance(provider, providers.CommandProvider) and shutil.which(provider.command[0]) is None:
        words = f"the program {provider.command[0]} does not exist or is not executable"
        return [warning("language-model", words, "name it by its full path in synthesis.command")]
    if isinstance(provider, providers.NullProvider):
        return [fine("language-model", "none; summaries are made by rules"), *_usable_models(target)]
    return [fine("language-model", provider.name)]


def _usable_models(target: Installation) -> list[Finding]:
    """Names each model of this machine with the settings that turn it on; a person decides."""
    if not installed.is_undecided(target.settings):
        return []
    where = user_file(target.environ)
    return [
        fine("language-model-found", f"{one.name} could be one", "\n".join((f"to use it, add to {where}:", *one.lines)))
        for one in installed.installed_models(target.environ)
    ]


def history(target: Installation) -> list[Finding]:
    """Checks that the history can be written if it is enabled, without opening the repository."""
    if not target.settings.history_enabled:
        return [fine("history", "off")]
    if find_spec("pygit2") is None:
        return [problem("history", "it is on, but the extra `git` is missing", "pip install 'signet-sync[git]'")]
    found = repository.inspect(target.root, target.folder.key)
    if found.state == "unsafe":
        return [problem("history", f"it is not written: {found.reason}", found.hint)]
    ours = found.state == "ours" or (found.state == "none" and not found.outer)
    if target.settings.history_adopt or ours:
        return [fine("history", "on")]
    return [warning("history", f"it is not written: {found.reason}", found.hint)]
