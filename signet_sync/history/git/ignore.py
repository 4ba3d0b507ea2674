"""Parses git's ignore rules, because libgit2 would follow links and open pipes named `.gitignore`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

_LONGEST = 4096  # characters of a rule; a path has no more
_LONGEST_NAME = 255  # characters of a name; no file system allows more
_CLASSES = {
    "alnum": "a-zA-Z0-9",
    "alpha": "a-zA-Z",
    "blank": r" \t",
    "cntrl": r"\x00-\x1f\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": r"!-/:-@\[-`{-~",
    "space": r" \t\n\r\f\v",
    "upper": "A-Z",
    "xdigit": "0-9a-fA-F",
}


@dataclass(frozen=True, slots=True)
class IgnoreRule:
    """One line: a pattern for the name, or for the path from the rule's folder; `kept` if it began with `!`."""

    pattern: re.Pattern[str]
    of_names: bool
    kept: bool
    folders_only: bool


@dataclass(frozen=True, slots=True)
class Layer:
    """The rules of one file: `where` is its folder with a slash at its end, empty for the root.

    `names` and `paths` match whatever any of the rules matches: for almost every file these two suffice.
    """

    where: str
    rules: tuple[IgnoreRule, ...]
    names: re.Pattern[str]
    paths: re.Pattern[str]

    def verdict(self, path: str, is_folder: bool) -> bool | None:
        """Returns whether the last matching rule ignores the path; None if none matches."""
        relative = path[len(self.where) :]
        name = relative.rpartition("/")[2]
        if not self.names.fullmatch(name) and not self.paths.fullmatch(relative):
            return None
        for rule in reversed(self.rules):
            if is_folder or not rule.folders_only:
                text = name if rule.of_names else relative
                if rule.pattern.fullmatch(text):
                    return not rule.kept
        return None


def ignored(path: str, is_folder: bool, layers: Iterable[Layer]) -> bool:
    """Returns whether a path is ignored; the first layer with a matching rule decides."""
    for layer in layers:
        verdict = layer.verdict(path, is_folder)
        if verdict is not None:
            return verdict
    return False


def layer(where: str, text: str, *, any_case: bool = False) -> Layer | None:
    """Parses the rules of a `.gitignore` in a folder (`""` or `a/b/`); None if it contains none."""
    flags = re.DOTALL | (re.IGNORECASE if any_case else 0)
    rules = []
    for line in text.removeprefix("\ufeff").split("\n"):
        parsed = _parsed(line.removesuffix("\r"))
        if parsed is None:
            continue
        source, of_names, kept, folders_only = parsed
        try:
            rules.append(IgnoreRule(re.compile(source, flags), of_names, kept, folders_only))
        except re.error:
            continue  # such as a range from z to a, which matches nothing in git, either
    if not rules:
        return None
    names, paths = (_any([rule for rule in rules if rule.of_names is of_names], flags) for of_names in (True, False))
    return Layer(where, tuple(rules), names, paths)


def _any(rules: list[IgnoreRule], flags: int) -> re.Pattern[str]:
    # Without rules: a pattern that matches nothing.
    return re.compile("|".join(f"(?:{rule.pattern.pattern})" for rule in rules) or "(?!)", flags)


def _parsed(line: str) -> tuple[str, bool, bool, bool] | None:
    """Returns a line's regular expression; whether it is for names, begins with `!`, and is only for folders."""
    bare = line.rstrip(" ")
    line = f"{bare} " if bare.endswith("\\") and len(bare) < len(line) else bare
    if not line or line.startswith("#") or len(line) > _LONGEST:
        return None
    kept = line.startswith("!")
    line = line[kept:]
    folders_only = line.endswith("/")
    line = line.removesuffix("/")
    of_names = "/" not in line  # at any depth
    names = line.removeprefix("/").split("/")
    source = _name(line) if of_names else _path(["**" if _is_any_depth(name) else name for name in names])
    return None if source is None else (source, of_names, kept, folders_only)


def _is_any_depth(name: str) -> bool:
    return len(name) > 1 and not name.strip("*")


def _path(names: list[str]) -> str | None:
    """Translates a pattern, part by part, to a regular expression; None if it matches nothing in git.

    Linear in the path, whatever the pattern: after a wildcard the first match is as good as any later one, so all but
    the last are never retried (atomic groups).
    """
    if names[-1] == "**":
        inside = _path([*names[:-1], "*"]) if len(names) > 1 else ""
        return None if inside is None else f"{inside}(?:/.+)?" if inside else ".+"
    runs: list[list[str]] = [[]]
    for name in names:
        if name == "**":
            runs.append([])
            continue
        translated = _name(name)
        if translated is None:
            return None
        runs[-1].append(translated)
    source = "".join(f"{name}/" for name in runs[0]) if len(runs) > 1 else "/".join(runs[0])
    for run in runs[1:-1]:
        source += f"(?>(?:[^/]+/)*?{''.join(f'{name}/' for name in run)})"
    return source + ("(?:[^/]+/)*" + "/".join(runs[-1]) if len(runs) > 1 else "")


def _name(glob: str) -> str | None:
    """Translates the pattern of one name to a regular expression; None if it matches nothing."""
    runs = [""]
    at = least = 0
    while at < len(glob):
        character = glob[at]
        least += character != "*"
        if least > _LONGEST_NAME:
            return None
        if character == "*":
            runs += [""] if runs[-1] or len(runs) == 1 else []
            at += 1
        elif character == "[":
            found = _bracket(glob, at)
            if found is None:
                return None
            runs[-1] += found[0]
            at = found[1]
        elif character == "\\" and at + 1 == len(glob):
            return None
        else:
            at += character == "\\"
            runs[-1] += "[^/]" if character == "?" else re.escape(glob[at])
            at += 1
    if not glob:
        return None
    first, *rest = runs
    if not rest:
        return first
    return first + "".join(f"(?>[^/]*?{run})" for run in rest[:-1]) + f"[^/]*{rest[-1]}"


def _bracket(glob: str, start: int) -> tuple[str, int] | None:
    """Returns a set of characters and the position after it; None if it is not closed."""
    if "]" not in glob[start + 1 :]:
        return None
    at = start + 1
    negated = glob[at : at + 1] in ("!", "^") and at < len(glob)
    at += negated
    members: list[str] = []
    first, begin = True, ""  # the last member, if it may begin a range
    while at < len(glob):
        character = glob[at]
        if character == "]" and not first:
            inner = "".join(members)
            return (f"(?!/)[{'^' if negated else ''}{inner}]", at + 1)
        first = False
        if character == "[" and glob.startswith("[:", at) and (end := glob.find(":]", at)) > 0:
            known = _CLASSES.get(glob[at + 2 : end])
            if known is None:
                return None
            members.append(known)
            at, begin = end + 2, ""
            continue
        ranged = bool(begin) and character == "-" and glob[at + 1 : at + 2] not in ("]", "")
        at += ranged
        at += glob[at] == "\\" and at + 1 < len(glob)
        # For a reversed range git matches only the first character.
        if not ranged or begin <= glob[at]:
            members.append(f"{'-' if ranged else ''}{re.escape(glob[at])}")
        at, begin = at + 1, "" if ranged else glob[at]
    return None
