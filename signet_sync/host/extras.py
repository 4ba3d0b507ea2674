"""Adds optional features to the environment that runs signet-sync: with pipx, uv or pip, whichever made it."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import sys
import sysconfig
import tomllib
from importlib import metadata
from typing import Any, NamedTuple

from signet_sync.errors import ConfigError, UsageError

PURPOSES = {
    "mcp": "memory as tools for agents (signet-sync mcp)",
    "ui": "the page in a browser (signet-sync ui)",
    "git": "the history of the workspace (signet-sync history)",
    "llm": "a server as provider of summaries",
    "embeddings": "recall by similar meaning, from a server",
    "fastembed": "recall by similar meaning, on this machine",
    "model2vec": "recall by similar meaning, on this machine, small models",
    "fleet": "many workspaces at once (signet-sync fleet)",
    "s3": "workspaces on S3, for fleet",
}
_PACKAGE = "signet-sync"


def requirements(extra: str) -> list[str]:
    """Returns what an extra needs, as `mcp<3,>=2.3`, from the metadata of the installed package."""
    found = [line.partition(";") for line in metadata.requires(_PACKAGE) or ()]
    wanted = f"extra=='{extra}'"
    return [
        requirement.strip()
        for requirement, _, condition in found
        if wanted in condition.replace('"', "'").replace(" ", "")
    ]


def is_installed(extra: str) -> bool:
    """Returns whether every package of an extra is there, of whatever version."""
    for requirement in requirements(extra):
        name = re.split(r"[\[<>=!~ ]", requirement, maxsplit=1)[0]
        try:
            metadata.distribution(name)
        except metadata.PackageNotFoundError:
            return False
    return True


def command_to_add(extras: list[str]) -> list[str]:
    """Returns the program and arguments that add extras to this environment.

    Raises `UsageError` for an extra that does not exist, `ConfigError` where nothing may be installed: a Python that
    the system manages, or one without an installer.
    """
    for extra in extras:
        if extra not in PURPOSES:
            raise UsageError(f"there is no extra {extra}", hint=f"one of: {', '.join(PURPOSES)}", code="unknown-extra")
    wanted = list(dict.fromkeys(one for extra in extras for one in requirements(extra)))
    if os.path.exists(os.path.join(sys.prefix, "pipx_metadata.json")):
        # The environment of pipx is named after the package, or with its `--suffix`.
        return ["pipx", "inject", os.path.basename(sys.prefix), *wanted]
    if (receipt := _uv_receipt()) is not None:
        # uv makes the environment of a tool anew; what is not named again would go.
        ours, *others = receipt.requirements
        python = ["--python", receipt.python] if receipt.python else []
        more = [word for one in (*others, *wanted) for word in ("--with", one)]
        return ["uv", "tool", "install", "--force", *python, ours, *more]
    if sys.prefix == sys.base_prefix and os.path.exists(
        os.path.join(sysconfig.get_path("stdlib"), "EXTERNALLY-MANAGED")
    ):
        raise ConfigError(
            "the system manages this Python, so that nothing can be added to it",
            path=sys.prefix,
            hint=f"pipx install '{_PACKAGE}[{','.join(extras)}]'",
            code="managed-python",
        )
    if importlib.util.find_spec("pip") is not None:
        return [sys.executable, "-m", "pip", "install", *wanted]
    if shutil.which("uv"):
        return ["uv", "pip", "install", "--python", sys.executable, *wanted]
    raise ConfigError(
        "this environment has neither pip nor uv",
        path=sys.prefix,
        hint=f"install {', '.join(wanted)} into it",
        code="no-installer",
    )


class _Receipt(NamedTuple):
    """What uv was asked to install as this tool, ourselves first, and for which Python."""

    requirements: list[str]
    python: str


def _uv_receipt() -> _Receipt | None:
    """Returns None if uv did not make this environment, or its receipt cannot be read."""
    try:
        with open(os.path.join(sys.prefix, "uv-receipt.toml"), "rb") as file:
            tool = tomllib.load(file)["tool"]
        asked = sorted((one.get("name") != _PACKAGE, _as_argument(one)) for one in tool.get("requirements", ()))
        return _Receipt([text for _, text in asked] or [_PACKAGE], str(tool.get("python", "")))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _as_argument(requirement: dict[str, Any]) -> str:
    """Returns a requirement of a receipt as it is written on a command line."""
    name = f"{requirement.get('name', '')}"
    if given := requirement.get("extras"):
        name += f"[{','.join(given)}]"
    for key, scheme in (("directory", "file://"), ("path", "file://"), ("editable", "file://"), ("git", "git+")):
        if key in requirement:
            return f"{name} @ {scheme}{requirement[key]}"
    return f"{name} @ {requirement['url']}" if "url" in requirement else f"{name}{requirement.get('specifier', '')}"
