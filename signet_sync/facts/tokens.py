"""Recognises names in single tokens: paths, issues, people."""

from __future__ import annotations

import re
from collections.abc import Iterator

from signet_sync.formats.lazy_pattern import late

# Letters of scripts that separate words by blanks; a path also ends between two Chinese characters.
_LETTERS = "A-Za-z0-9\u00c0-\u024f\u0370-\u03ff\u0400-\u04ff"
_WITHIN = rf"{_LETTERS}_./@~+#:-"
# Only a word with one of `./#@` before a letter or digit can be one of these names. Searching for that sign and going
# back to the start of its word is three times as fast as trying every word.
_SIGN = late(rf"[./#@](?=[{_LETTERS}_])")
_TOKEN = late(rf"[{_LETTERS}_~+:-]*+[./#@]++(?=[{_LETTERS}_])[{_WITHIN}]*+")
_REST = late(rf"[{_WITHIN}]*+")
# Next to these a token is a part of something longer: a variable, a placeholder, a shortened name, a call.
_CUT_BEFORE, _CUT_AFTER = frozenset("$%{}\\<>?…"), frozenset("$%{\\…(")
_END = ".,:;!?-+~#@"

NAME_LENGTH = 240

Named = tuple[str, str]  # a name as written, and the norm by which equal names are found

_EXTENSIONS = frozenset(
    ["py", "pyi", "ts", "tsx", "js", "jsx", "mjs", "cjs", "rs", "go", "rb", "java", "kt", "kts", "c", "h", "cc",
     "cpp", "hpp", "cs", "swift", "php", "sh", "bash", "zsh", "fish", "toml", "yaml", "yml", "json", "jsonl", "md",
     "mdx", "rst", "txt", "sql", "css", "scss", "html", "htm", "vue", "svelte", "proto", "lock", "cfg", "ini",
     "conf", "env", "tf", "nix", "xml", "csv", "ipynb", "lua", "ex", "exs", "erl", "hs", "ml", "scala", "clj",
     "dart", "zig", "service", "plist", "db", "sqlite", "log", "patch", "diff", "svg", "png", "jpg", "pdf"]
)  # fmt: skip
# Endings that also occur in prose: `process.env`, `order.by`.
_ONLY_IN_FOLDERS = frozenset(("env", "log", "lock", "service", "db", "conf", "diff", "patch", "ml", "ex", "c", "h"))
_PLAIN_EXTENSIONS = _EXTENSIONS - _ONLY_IN_FOLDERS
_FILES = frozenset(
    ["Dockerfile", "Makefile", "Justfile", "Procfile", "Gemfile", "Rakefile", "LICENSE", ".env", ".gitignore",
     ".gitattributes", ".dockerignore", ".editorconfig", ".npmrc", "uv.lock", "poetry.lock", "yarn.lock",
     "Cargo.lock"]
)  # fmt: skip
_FRAMEWORKS = frozenset(
    ["node", "next", "vue", "nuxt", "express", "three", "d3", "react", "ember", "backbone", "chart", "p5", "alpine",
     "solid"]
)  # fmt: skip
_ROOTS = frozenset(
    ["src", "lib", "libs", "tests", "docs", "app", "apps", "packages", "scripts", "crates", "cmd", "pkg", "internal",
     "benchmarks", "platform", "surfaces", "integrations", "runtimes", "plugins", "memorybench", ".github", ".",
     "..", "~"]
)  # fmt: skip
_SYSTEM_ROOTS = frozenset(
    ["home", "Users", "root", "etc", "var", "usr", "opt", "srv", "tmp", "mnt", "private", "Applications", "Library"]
)  # fmt: skip
_OTHERS_CODE = frozenset(("site-packages", "dist-packages", "node_modules", ".venv", "venv", ".git", "__pycache__"))

_KEY_SIGN = late(r"-(?<=[A-Z0-9]-)\d", re.ASCII)  # in every key, and in few texts without one
# The look-behind comes second, so that the search moves from capital to capital.
_ISSUE_KEY = late(r"([A-Z](?<![\w./#-].)[A-Z0-9]{1,9})-\d{1,6}(?![\w/-])", re.ASCII)
# Standards, encodings and models that look like issue keys.
_NO_TRACKERS = frozenset(
    ["UTF", "SHA", "ISO", "RFC", "HTTP", "GPT", "CVE", "CWE", "AES", "RSA", "TLS", "SSL", "PEP", "IP", "IPV", "BASE",
     "UTC", "GMT", "ECMA", "IEEE", "ANSI", "COVID", "ES", "MD", "WCAG", "MP", "PR", "MR", "CP", "HMAC", "CRC", "RS",
     "HS", "EC", "ED", "UCS", "DIN", "EN", "LC", "COM", "USB", "ARM", "X86", "HTML", "CSS", "OPUS", "CLAUDE",
     "GEMINI", "LLAMA", "QWEN", "MPEG", "AVC", "H"]
)  # fmt: skip
_NUMBER = late(r"#(\d{1,6})", re.ASCII)
_REMOTE_NUMBER = late(r"([\w.-]{1,60}/[\w.-]{1,100})#(\d{1,6})", re.ASCII)
_ISSUE_URL = late(
    r"https?://[\w.:-]{1,100}/([\w.-]{1,60}/[\w.-]{1,100})(?:/-)?/(?:issues|pull|pulls|discussions|merge_requests)/(\d{1,7})"
    r"(?![\w])",
    re.ASCII,
)

_HANDLE = late(r"@([A-Za-z0-9][A-Za-z0-9_-]{1,38})", re.ASCII)
# What follows an `@` in code and in chats without being a person.
_NOBODY = frozenset(
    ["media", "import", "param", "params", "returns", "return", "throws", "see", "todo", "property", "dataclass",
     "pytest", "override", "deprecated", "latest", "next", "here", "channel", "everyone", "all", "team",
     "staticmethod", "classmethod", "fixture", "test", "types", "ts-ignore", "ts-expect-error", "keyframes",
     "supports", "charset", "apply", "tailwind", "app", "component", "injectable"]
)  # fmt: skip

_NAME_END = late(r"\s*[:：(（,]|\s+[–—-]\s|\s*[–—]\s")
_PARTICLES = frozenset(
    ["von", "van", "der", "den", "de", "da", "di", "do", "dos", "del", "della", "la", "le", "el", "al", "bin", "ibn",
     "ter", "ten", "zu"]
)  # fmt: skip
_ROLES = frozenset(
    ["owner", "owners", "reviewer", "reviewers", "team", "teams", "lead", "leads", "maintainer", "maintainers",
     "contact", "contacts", "customer", "customers", "author", "authors", "qa", "support", "design", "designer",
     "stakeholder", "stakeholders", "note", "notes", "todo", "user", "users", "client", "clients", "everyone",
     "nobody", "none", "unknown", "all", "assistant", "human", "system", "manager", "engineering", "ops", "security",
     "legal", "product", "maintained", "reviewed", "approved"]
)  # fmt: skip
_PROGRAMS = frozenset(
    ["claude", "copilot", "codex", "gemini", "cursor", "devin", "aider", "opencode", "chatgpt", "openclaw", "amp",
     "jules"]
)  # fmt: skip


def tokens(text: str) -> Iterator[re.Match[str]]:
    """Yields words that may be names, none longer than twice `NAME_LENGTH`. Linear."""
    end = 0
    sign = _SIGN.search(text)
    while sign is not None:
        before = text[max(end, sign.start() - 2 * NAME_LENGTH) : sign.start()][::-1]
        start = sign.start() - _end(_REST.match(before))
        token = _TOKEN.match(text, start)
        end = token.end() if token is not None else _end(_REST.match(text, start))
        if token is not None and end - start <= 2 * NAME_LENGTH:
            yield token
        sign = _SIGN.search(text, end)


def _end(found: re.Match[str] | None) -> int:
    return found.end() if found is not None else 0


def trimmed(token: str) -> str:
    """Removes punctuation and emphasis around a token."""
    token = token.lstrip("~") if token.startswith("~~") else token
    return token.rstrip(_END)


def is_piece(token: str, before: str, after: str) -> bool:
    """Checks whether a token between two characters (empty at an end) is a part of something longer.

    An asterisk on both sides is emphasis, otherwise part of a pattern.
    """
    if before in _CUT_BEFORE or after in _CUT_AFTER:
        return True
    return (after == "*" != before) or (before == "*" and token.startswith((".", "/")))


def path_of(token: str, project: str | None) -> Named | None:
    """Returns name and norm of a path; None for other tokens.

    The name of a path in the project is relative to it; the norm includes the project, because equal names in two
    projects are two files.
    """
    if not 3 < len(token) <= NAME_LENGTH or "://" in token or token.startswith(("-", "//", ".../")):
        return None
    path = token.partition(":")[0].partition("#")[0].rstrip(_END)
    if "@" in path.replace("/@", "/") or not _looks_like_path(path):
        return None
    root = project.rstrip("/") if project else ""
    if root and path == root:
        return None
    if root and path.startswith(f"{root}/"):
        path = path[len(root) + 1 :]
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if not parts or not _OTHERS_CODE.isdisjoint(parts):
        return None
    name = "/".join(parts)
    if path.startswith("/"):
        return f"/{name}", f"/{name}"
    elsewhere = parts[0] in ("..", "~") or not root
    return name, name if elsewhere else f"{root}/{name}"


def _looks_like_path(path: str) -> bool:
    folders, _, last = path.rpartition("/")
    stem, dot, extension = last.rpartition(".")
    if not folders:
        return last in _FILES or (
            bool(dot)
            and len(stem) > 1
            and extension in _PLAIN_EXTENSIONS
            and not (extension == "js" and stem.casefold() in _FRAMEWORKS)
        )
    if (dot and stem and extension in _EXTENSIONS) or last in _FILES:
        return True
    first = path.split("/", 2)
    return len(last) > 1 and (first[0] in _ROOTS or (not first[0] and first[1] in _SYSTEM_ROOTS and len(first) > 2))


def issue_of(token: str, project: str | None) -> Named | None:
    """Returns name and norm of an issue; None for other tokens. A bare number refers to the project."""
    if token.startswith("#"):
        number = _NUMBER.fullmatch(token)
        return numbered(number[1], project) if number else None
    remote = _REMOTE_NUMBER.fullmatch(token) or _ISSUE_URL.match(token)
    return (name := f"{remote[1]}#{remote[2]}", name.casefold()) if remote else None


def issue_keys(text: str) -> Iterator[re.Match[str]]:
    """Yields keys of issue trackers, such as `LAN-7`."""
    found = _ISSUE_KEY.finditer(text) if _KEY_SIGN.search(text) else ()
    return (key for key in found if key[1] not in _NO_TRACKERS)


def numbered(number: str, project: str | None) -> Named:
    """Returns name and norm of an issue of the project, given by its number."""
    name = f"#{int(number)}"
    return name, f"{project.rstrip('/') if project else ''}{name}"


def handle_of(token: str) -> Named | None:
    """Returns name and norm of a handle such as `@ada`; None for other tokens."""
    found = _HANDLE.fullmatch(token)
    if found is None or found[1].casefold() in _NOBODY or found[1].casefold() in _PROGRAMS:
        return None
    return token, token.casefold()


def person_of(words: str) -> Named | None:
    """Returns name and norm if the words are a person's full name; otherwise None."""
    name = " ".join(words.split())
    parts = name.split(" ")
    if not 1 < len(name) <= 60 or len(parts) > 4 or parts[0].casefold() in _PROGRAMS or name.endswith("]"):
        return None
    if not all(map(_is_part_of_name, parts)) or all(part in _PARTICLES for part in parts):
        return None
    return None if any(part.casefold() in _ROLES for part in parts) else (name, name.casefold())


def _is_part_of_name(part: str) -> bool:
    letters = part.replace("'", "").replace("’", "").replace("-", "").removesuffix(".")
    return letters.isalpha() and (not letters[0].islower() or part in _PARTICLES)


def person_at_start(text: str) -> Named | None:
    """Returns name and norm of the person that an item under a heading of people describes.

    Forms are `Ada: …`, `Ada (…)`, `**Ada** – …`, `Ada, …` and the same with `@ada`.
    """
    plain = text[:120].replace("*", "").replace("__", "").strip()
    end = _NAME_END.search(plain)
    if end is None:
        return None
    words = plain[: end.start()]
    return handle_of(words) if words.startswith("@") else person_of(words)
