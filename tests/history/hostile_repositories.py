"""Booby-trapped repositories: programs that leave a mark when they are run, and pipes that hold whoever opens them."""

import os
import shutil


class Traps:
    """Programs that leave a mark when they are run, and pipes that hold whoever opens them."""

    def __init__(self, folder):
        self.folder = folder
        (folder / "marks").mkdir(parents=True)
        self.pipe = folder / "pipe"
        os.mkfifo(self.pipe)

    def program(self, name):
        path = self.folder / name
        path.write_text(f'#!/bin/sh\n: > "{self.folder}/marks/{name}"\nexit 1\n')
        path.chmod(0o755)
        return path

    def fired(self):
        return sorted(path.name for path in (self.folder / "marks").iterdir())


# ── programs: they are not run ──

HOOKS = (
    *("pre-commit", "prepare-commit-msg", "commit-msg", "post-commit", "post-checkout", "post-index-change"),
    *("reference-transaction", "post-rewrite", "pre-auto-gc", "fsmonitor-watchman", "pre-push"),
)


def hooks(past, traps):
    (past.root / ".git/hooks").mkdir(exist_ok=True)
    for name in HOOKS:
        shutil.copy(traps.program(name), past.root / ".git/hooks" / name)


def linked_hooks(past, traps):
    shutil.rmtree(past.root / ".git/hooks", ignore_errors=True)
    for name in HOOKS:
        traps.program(name)
    (past.root / ".git/hooks").symlink_to(traps.folder)


def submodule(past, traps):
    past.put(
        ".gitmodules", f'[submodule "x"]\n\tpath = x\n\turl = ext::{traps.program("submodule")}\n\tupdate = !false\n'
    )
    past.put("x/.git", f"gitdir: {traps.pipe}\n")


def attributes(past, traps):
    past.put(".gitattributes", "* filter=t diff=t merge=t\n")
    (past.root / ".git/info/attributes").write_text("* filter=t diff=t merge=t\n")


def config(*lines, then=None):
    """A trap that consists of lines of the config; `{run}` is a program, `{hooks}` a folder with them."""

    def arm(past, traps):
        for name in HOOKS:
            traps.program(name)
        text = "\n".join(lines).format(run=traps.program("program"), hooks=traps.folder, pipe=traps.pipe)
        with open(past.root / ".git/config", "a") as handle:
            handle.write(text + "\n")
        if then is not None:
            then(past, traps)

    return arm


RUN = {
    "hooks": hooks,
    "hooks in a linked folder": linked_hooks,
    "core.hooksPath": config("[core]", "hooksPath = {hooks}"),
    "filter clean": config('[filter "t"]', "clean = {run}", "required", then=attributes),
    "filter process": config('[filter "t"]', "process = {run}", "required = true", then=attributes),
    "fsmonitor": config("[core]", "fsmonitor = {run}"),
    "external diff": config("[diff]", "external = {run}", '[diff "t"]', "command = {run}", then=attributes),
    "textconv": config('[diff "t"]', "textconv = {run}", "cachetextconv = true", then=attributes),
    "gpg": config("[gpg]", "program = {run}", "[commit]", "gpgsign = true", "[user]", "signingkey = x"),
    "pager and editor": config("[core]", "pager = {run}", "editor = {run}", "[sequence]", "editor = {run}"),
    "templates": config("[init]", "templateDir = {pipe}"),
    "submodule": submodule,
}


# ── what leads elsewhere, or would hold us: it is refused ──


def pointing(past, traps):
    (past.root / ".git").rename(traps.folder / "elsewhere")
    (past.root / ".git").write_text(f"gitdir: {traps.folder}/elsewhere\n")


def linked(name):
    def arm(past, traps):
        place = past.root / name
        place.rename(traps.folder / "elsewhere")
        place.symlink_to(traps.folder / "elsewhere")

    return arm


def piped(name):
    def arm(past, traps):
        place = past.root / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.unlink(missing_ok=True)
        os.mkfifo(place)

    return arm


def written(name, text):
    def arm(past, traps):
        place = past.root / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text.format(pipe=traps.pipe, folder=traps.folder))

    return arm


REFUSED = {
    "include of a pipe": config("[include]", "path = {pipe}"),
    "include, spelt oddly": config('  [ InCluDe ]  ; "x"', "\tPATH={pipe}"),
    "includeIf": config('[includeIf "gitdir:/**"]', "path = {pipe}"),
    "include behind a continued line": config("[core]", "x = y\\", "[include]", "path = {pipe}"),
    "core.worktree": config("[core]", "worktree = {hooks}"),
    "core.excludesFile": config("[core]", "excludesFile = {pipe}"),
    "core.attributesFile": config("[core]", "attributesFile = {pipe}"),
    "extensions.worktreeConfig": config("[extensions]", "worktreeConfig = true"),
    "extensions.partialClone": config("[extensions]", "partialClone = origin"),
    "a format of the future": config("[core]", "repositoryFormatVersion = 2"),
    "config.worktree": written(".git/config.worktree", "[core]\n\tworktree = /\n"),
    "alternates": written(".git/objects/info/alternates", "{pipe}\n"),
    "commondir": written(".git/commondir", "{folder}\n"),
    "gitdir": written(".git/gitdir", "{folder}\n"),
    ".git file pointing outside": pointing,
    ".git symlink": linked(".git"),
    "config symlink": linked(".git/config"),
    "index symlink": linked(".git/index"),
    "branch symlink": linked(".git/refs/heads/main"),
    "HEAD pipe": piped(".git/HEAD"),
    "log pipe": piped(".git/logs/HEAD"),
    "object pipe": piped(".git/objects/ab/cdef"),
    ".git pipe": lambda past, traps: (shutil.rmtree(past.root / ".git"), os.mkfifo(past.root / ".git")),
    ".git empty": lambda past, traps: (shutil.rmtree(past.root / ".git"), (past.root / ".git").mkdir()),
}
