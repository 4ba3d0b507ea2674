"""Finds packages that code imports and commands install."""

from __future__ import annotations

import re
from collections.abc import Iterator

from signet_sync.facts.tokens import Named, package_of
from signet_sync.formats.lazy_pattern import late

_PYTHON = frozenset(("", "py", "python", "python3", "pycon"))
_SCRIPT = frozenset(("", "js", "javascript", "ts", "typescript", "jsx", "tsx", "mjs", "cjs", "vue", "svelte"))
_PYTHON_IMPORT = late(
    r"^(?:>>>)?[ \t]*+(?:from[ \t]++(\w++)[\w.]*+[ \t]++import\b|import[ \t]++([\w., \t]++)$)", re.ASCII | re.MULTILINE
)
_SCRIPT_IMPORT = late(
    r"""(?:^[ \t]*+import[ \t]++|\bfrom[ \t]++|\brequire\(|\bimport\()['"]([@\w][\w@./:-]{0,200})['"]""",
    re.ASCII | re.MULTILINE,
)
# The standard library; listed here, so that every version of Python finds the same packages.
_STANDARD = frozenset(
    ["__future__", "abc", "argparse", "array", "ast", "asyncio", "base64", "bisect", "calendar", "collections",
     "concurrent", "configparser", "contextlib", "copy", "csv", "ctypes", "dataclasses", "datetime", "decimal",
     "difflib", "email", "enum", "errno", "fcntl", "fnmatch", "fractions", "functools", "gc", "getpass", "glob",
     "graphlib", "gzip", "hashlib", "heapq", "hmac", "html", "http", "importlib", "inspect", "io", "ipaddress",
     "itertools", "json", "keyword", "locale", "logging", "lzma", "math", "mimetypes", "multiprocessing", "operator",
     "os", "pathlib", "pickle", "platform", "plistlib", "pprint", "queue", "random", "re", "secrets", "select",
     "selectors", "shlex", "shutil", "signal", "site", "smtplib", "socket", "sqlite3", "ssl", "stat", "statistics",
     "string", "struct", "subprocess", "sys", "sysconfig", "tarfile", "tempfile", "textwrap", "threading", "time",
     "timeit", "tkinter", "token", "tokenize", "tomllib", "traceback", "types", "typing", "unicodedata", "unittest",
     "urllib", "uuid", "venv", "warnings", "weakref", "xml", "zipfile", "zlib", "zoneinfo"]
)  # fmt: skip
_BUILT_IN = frozenset(
    ["assert", "buffer", "child_process", "cluster", "crypto", "dns", "events", "fs", "http", "http2", "https",
     "module", "net", "os", "path", "perf_hooks", "process", "querystring", "readline", "stream", "string_decoder",
     "timers", "tls", "tty", "url", "util", "v8", "vm", "worker_threads", "zlib"]
)  # fmt: skip

_INSTALLS: dict[str, frozenset[str]] = {
    **dict.fromkeys(("pip", "pip3", "pipx", "apt", "apt-get", "brew"), frozenset(("install",))),
    **dict.fromkeys(("uv", "poetry"), frozenset(("add", "install"))),
    **dict.fromkeys(("npm", "pnpm", "yarn", "bun"), frozenset(("install", "i", "add"))),
    "cargo": frozenset(("add", "install")),
    "go": frozenset(("get", "install")),
}
_COMMAND = late(rf"(?<![\w./-])({'|'.join(map(re.escape, _INSTALLS))})[ \t]++", re.ASCII)
_ENDS = late(r"&&|[|;#`\n…]|\s\d?[<>]| -- ")
# Options whose value is the next word.
_WITH_VALUE = frozenset(
    ["-r", "--requirement", "-e", "--editable", "-c", "--constraint", "-i", "--index-url", "--extra-index-url", "-t",
     "--target", "--prefix", "--registry", "--features", "-F", "-p", "--package", "--group", "--git", "--path",
     "--branch", "--tag", "--rev", "--version", "-w", "--workspace", "--filter", "--root", "--extra", "--python"]
)  # fmt: skip
ARGUMENTS, COMMAND_LENGTH = 20, 1_000


def imported(code: str, language: str) -> Iterator[tuple[int, Named]]:
    """Yields packages that code imports, with their offset; neither its own modules nor standard ones."""
    if language in _SCRIPT and ("import" in code or "require(" in code):
        for found in _SCRIPT_IMPORT.finditer(code):
            package = _of_script(found[1])
            if package is not None:
                yield found.start(1), package
    if language in _PYTHON and "import" in code:
        for found in _PYTHON_IMPORT.finditer(code):
            for name in found[2].split(",", ARGUMENTS)[:ARGUMENTS] if found[2] else (found[1],):
                module = name.split(" as ", 1)[0].strip().partition(".")[0]
                package = package_of(module) if module and module not in _STANDARD else None
                if package is not None:
                    yield found.start(), package


def _of_script(source: str) -> Named | None:
    if source.startswith(("@/", "node:")):
        return None
    name = "/".join(source.split("/", 2)[: 2 if source.startswith("@") else 1])
    return package_of(name) if name not in _BUILT_IN else None


def installed(code: str) -> Iterator[tuple[int, Named]]:
    """Yields packages that command lines install or add, with the offset of the command."""
    if not (" install" in code or " add " in code or " get " in code or " i " in code):
        return
    command = _COMMAND.search(code)
    while command is not None:
        arguments = _ENDS.split(code[command.end() : command.end() + COMMAND_LENGTH], maxsplit=1)[0]
        words = arguments.split()[: ARGUMENTS + 8]
        while words and (words[0].startswith("-") or (words[0] == "pip" and command[1] == "uv")):
            words = words[1:]
        if words and words[0] in _INSTALLS[command[1]]:
            for package in _arguments(words[1:]):
                yield command.start(), package
        command = _COMMAND.search(code, command.end() + len(arguments))


def _arguments(words: list[str]) -> Iterator[Named]:
    value = False
    for word in words[:ARGUMENTS]:
        option = word.startswith("-")
        package = None if value or option or word.startswith((".", "/", "~", "$")) else package_of(word)
        value = option and word in _WITH_VALUE
        if package is not None:
            yield package
