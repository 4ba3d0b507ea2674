"""Reads and writes frontmatter: a strict fast path for the written form, safe YAML events for everything else.

Both paths return the same: scalars are text as written (or None), lists are lists; the models type them, not YAML's
guesses. Nothing is composed or constructed: reading stops at the first alias, anchor, tag, duplicate key, second
document or fifth level.
"""

import json
import re
import sys
from collections.abc import Mapping
from functools import cache
from json.decoder import scanstring as _scanstring  # type: ignore[attr-defined]
from types import MappingProxyType
from typing import Any, NamedTuple

from signet_sync.formats.body import fix_surrogates, normalize, utf8
from signet_sync.formats.lazy_pattern import late

HEAD_LIMIT = 64 * 1024
MAX_DEPTH = 4

Value = Any  # str | None | list[Value] | dict[str, Value]: what frontmatter may hold
Scalar = str | int | float | bool | None

_CLOSING = late(r"\n---[ \t]*(?:\n|\Z)")
_OPENING = late(r"---[ \t]*\n")
_KEY_LINE = late(r"""\s*(?:(?:"[^"\n]*"|'[^'\n]*')\s*|[^\s:#'"\[\]{}&*!|>%@`,?-][^:\n]*):(?:\s|\Z)""")
_QUOTED_LINE = late(r'([^\W\d]\w*:|  -) (".*")', re.ASCII)
_KEY_LIMIT = 1000  # YAML finds no keys longer than 1,024 characters, and both paths must agree
_NUMBER = late(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?", re.ASCII)
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
# C0 is escaped by JSON already; PyYAML cannot read these raw, or some readers would end a line at them.
_UNSAFE = late("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff]")
_TAG = late("<(?=[A-Za-z/!?])")


class FrontmatterProblem(ValueError):
    """Frontmatter that cannot be read; `code` is the verdict's code, the message is for a person."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class Document(NamedTuple):
    """The parts of a file: head, body after the closing fence (newlines LF), oddities of its bytes, fields as text.

    Only `parse` reads the fields.
    """

    head: str
    body: str
    bom: bool
    crlf: bool
    fields: Mapping[str, Value] = MappingProxyType({})


def split(text: str) -> tuple[str, str]:
    """Splits a text with LF newlines into frontmatter and body; raises `FrontmatterProblem` if it has no frontmatter.

    A fence is `---` with optional trailing blanks, the closing one may end the file. Prose between two horizontal rules
    is not frontmatter.
    """
    opening = _OPENING.match(text)
    if opening is None:
        if text.startswith("version https://git-lfs.github.com/spec/"):
            what = "a Git-LFS pointer stands in its place: `git lfs pull` fetches the file itself"
            raise FrontmatterProblem("frontmatter-missing", what)
        raise FrontmatterProblem("frontmatter-missing", "the file does not open with a `---` line")
    start = opening.end()
    closing = _CLOSING.search(text, start - 1)
    if closing is None:
        raise FrontmatterProblem("frontmatter-missing", "the frontmatter is never closed by a `---` line")
    head = text[start : closing.start()] if closing.start() >= start else ""
    return head, text[closing.end() :]


def parse(raw: bytes) -> Document:
    """Parses a whole file.

    Raises `FrontmatterProblem` with code `not-utf8`, `frontmatter-missing` or `frontmatter-invalid`.
    """
    source = open_source(raw)
    return source._replace(fields=read(source.head))


def open_source(raw: bytes) -> Document:
    """Splits a file into frontmatter and body. Raises `FrontmatterProblem`: `not-utf8` or `frontmatter-missing`."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise FrontmatterProblem("not-utf8", f"line {line}: byte {error.start} is not UTF-8") from None
    bom = text.startswith("\ufeff")
    if bom:
        text = text[1:]
    crlf = "\r" in text
    if crlf:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    head, body = split(text)
    return Document(head, body, bom, crlf)


def read(head: str) -> dict[str, Value]:
    """Reads the fields of frontmatter. Raises `FrontmatterProblem`."""
    large = len(head) > HEAD_LIMIT or (len(head) > HEAD_LIMIT // 4 and len(utf8(head)) > HEAD_LIMIT)
    fields = None if large else read_written(head)
    if fields is not None:
        return fields
    lead = head.lstrip(" \t\n")
    if not lead or _KEY_LINE.match(lead.split("\n", 1)[0]) is None:
        raise FrontmatterProblem("frontmatter-missing", "what follows the opening `---` is prose, not `key: value`")
    if large:
        raise FrontmatterProblem("frontmatter-invalid", "the frontmatter is larger than 64 KiB")
    return read_yaml(head)


def read_written(head: str) -> dict[str, Value] | None:
    """Reads by the fast path: `key: <JSON scalar>`, `key:` or an item after two spaces; None if any line differs."""
    fields: dict[str, Value] = {}
    items: list[Value] | None = None
    last = ""
    for line in head.split("\n"):
        key, colon, value = line.partition(": ")
        if colon and key.isidentifier() and key.isascii() and len(key) <= _KEY_LIMIT:
            items = None
        elif line.startswith("  - "):
            if items is None:
                if not last or fields[last] is not None:
                    return None
                items = fields[last] = []
            key, value = "", line[4:]
        elif line.endswith(":") and line[:-1].isidentifier() and line.isascii() and len(line) <= _KEY_LIMIT:
            last = line[:-1]
            if last in fields:
                return None
            fields[last] = None
            items = None
            continue
        else:
            return None
        if value.startswith('"'):
            try:
                scalar, end = _scanstring(value, 1, True)
            except ValueError:
                return None
            if end != len(value):
                return None
            if "\\u" in value:
                scalar = fix_surrogates(scalar)
        elif value == "null":
            scalar = None
        elif value in ("true", "false") or _NUMBER.fullmatch(value):
            scalar = value
        else:
            return None
        if key:
            if key in fields:
                return None
            fields[key] = scalar
            last = ""
        elif items is not None:
            items.append(scalar)
    return fields


def read_yaml(head: str) -> dict[str, Value]:
    """Reads by the full path: PyYAML's events, one by one, strings only."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    walker = _Walker()
    mark = None
    try:
        for event in yaml.parse(_make_escapes_safe(head), Loader=loader):
            mark = event.start_mark
            walker.take(event)
    except FrontmatterProblem as refused:
        raise FrontmatterProblem(refused.code, f"{_where(mark)}{refused}") from None
    except yaml.YAMLError as error:
        problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "not YAML"
        raise FrontmatterProblem("frontmatter-invalid", f"{_where(_mark_of(error))}{problem}") from None
    except (UnicodeError, ValueError, RecursionError):
        raise FrontmatterProblem("frontmatter-invalid", "it holds characters that YAML cannot hold") from None
    if not isinstance(walker.result, dict):
        raise FrontmatterProblem("frontmatter-invalid", "the frontmatter is not a list of `key: value` lines")
    return walker.result


def _where(mark: Any) -> str:
    """Returns the line of the file of a YAML mark: behind the fence, counted from 1."""
    return f"line {mark.line + 2}: " if mark is not None else ""


def _mark_of(error: Any) -> Any:
    """Returns the mark to show to a person: a quote or bracket that is never closed, else where YAML stopped."""
    block = (getattr(error, "context", None) or "while parsing a block").startswith("while parsing a block")
    return getattr(error, "problem_mark" if block else "context_mark", None)


def _make_escapes_safe(head: str) -> str:
    """Returns the lines of frontmatter; in those of the written form escapes are such that YAML and JSON agree."""
    if _is_safe(head) and "\\" not in head:
        return f"{head}\n"
    return "".join(f"{_make_line_safe(line)}\n" for line in head.split("\n"))


def _make_line_safe(line: str) -> str:
    match = _QUOTED_LINE.fullmatch(line)
    if match is None:
        return line
    try:
        text, end = _scanstring(match[2], 1, True)
    except ValueError:
        return line
    return f"{match[1]} {scalar_text(fix_surrogates(text))}" if end == len(match[2]) else line


class _Walker:
    """Builds plain text, lists and mappings from events; refuses everything that could hide or multiply content."""

    def __init__(self) -> None:
        self.result: Value = None
        self._stack: list[tuple[Value, str | None]] = []
        self._documents = 0

    def take(self, event: Any) -> None:
        kind = type(event).__name__
        if kind == "ScalarEvent":
            self._plain(event)
            # A plain scalar has no style: None in the Python parser, "" in the C one.
            null = not event.style and event.value in _NULLS and not self._awaits_key()
            self._put(None if null else fix_surrogates(event.value), is_key=True)
        elif kind in ("MappingStartEvent", "SequenceStartEvent"):
            self._plain(event)
            if len(self._stack) >= MAX_DEPTH:
                raise FrontmatterProblem("frontmatter-invalid", f"it is nested deeper than {MAX_DEPTH} levels")
            container: Value = {} if kind == "MappingStartEvent" else []
            self._put(container, is_key=False)
            self._stack.append((container, None))
        elif kind in ("MappingEndEvent", "SequenceEndEvent"):
            self._stack.pop()
        elif kind == "AliasEvent":
            raise FrontmatterProblem("frontmatter-invalid", "aliases (`*name`) are not allowed")
        elif kind == "DocumentStartEvent":
            self._documents += 1
            if self._documents > 1 or event.tags or event.version:
                raise FrontmatterProblem("frontmatter-invalid", "several documents or YAML directives are not allowed")

    def _plain(self, event: Any) -> None:
        if event.anchor is not None:
            raise FrontmatterProblem("frontmatter-invalid", "anchors (`&name`) are not allowed")
        if event.tag is not None:
            raise FrontmatterProblem("frontmatter-invalid", "tags (`!name`) are not allowed")

    def _awaits_key(self) -> bool:
        return bool(self._stack) and isinstance(self._stack[-1][0], dict) and self._stack[-1][1] is None

    def _put(self, value: Value, *, is_key: bool) -> None:
        if not self._stack:
            self.result = value
            return
        container, key = self._stack[-1]
        if isinstance(container, list):
            container.append(value)
        elif key is None:
            if not is_key or not isinstance(value, str):
                raise FrontmatterProblem("frontmatter-invalid", "a key is not a plain text")
            if value == "<<":
                raise FrontmatterProblem("frontmatter-invalid", "merge keys (`<<`) are not allowed")
            if value in container:
                raise FrontmatterProblem("frontmatter-invalid", f"the key `{value[:60]}` stands there twice")
            self._stack[-1] = (container, value)
        else:
            container[key] = value
            self._stack[-1] = (container, None)


def scalar_text(value: Scalar) -> str:
    """Writes one value: JSON on one line, with everything escaped that YAML cannot hold raw or that opens HTML."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    text = json.dumps(value, ensure_ascii=False)
    # Readers of Markdown that know no frontmatter show it as a paragraph.
    text = _TAG.sub(r"\\u003c", text) if "<" in text else text
    return text if _is_safe(text) else _UNSAFE.sub(lambda m: f"\\u{ord(m[0]):04x}", text)


def _is_safe(text: str) -> bool:
    return (text.isascii() and "\x7f" not in text) or _UNSAFE.search(text) is None


class Raw(str):
    """Lines that are written back as they are: unknown keys of a manifest that we rewrite."""

    __slots__ = ()


def serialize(fields: Mapping[str, Any]) -> str:
    """Writes fields as frontmatter, with both fences and no newline at the end."""
    lines = ["---"]
    for key, value in fields.items():
        if isinstance(value, Raw):
            lines.append(value)
        elif isinstance(value, (list, tuple)):
            lines.append(f"{key}:")
            lines.extend(f"  - {scalar_text(item)}" for item in value)
        else:
            lines.append(f"{key}: {scalar_text(value)}")
    lines.append("---")
    return "\n".join(lines)


def write(fields: Mapping[str, Any], body: str) -> bytes:
    """Writes a whole file: frontmatter, LF, body, LF."""
    return utf8(f"{serialize(fields)}\n{body}\n")


def handler() -> Any:
    """Makes a handler for python-frontmatter: `frontmatter.load(path, handler=handler())` reads and writes as we do.

    The library strips bodies when it reads, so hashes are never computed from its `content`.
    """
    from frontmatter.default_handlers import BaseHandler

    class SignetHandler(BaseHandler):
        FM_BOUNDARY, START_DELIMITER, END_DELIMITER = re.compile(r"^---[ \t]*$", re.MULTILINE), "---", "---"
        split = staticmethod(split)
        load = staticmethod(lambda fm, **_: read(fm))
        export = staticmethod(lambda metadata, **_: serialize(metadata)[4:-4])
        format = staticmethod(lambda post, **_: f"{serialize(post.metadata)}\n{post.content}\n")

    return SignetHandler()


_NEXT_ENTRY = late(r"\n(?=[^\s#-])")


def unknown_entries(head: str, known: frozenset[str]) -> list[tuple[str, Raw]]:
    """Lists the top-level entries of frontmatter that have unknown keys, each as it is written if that stands alone."""
    written = read_written(head)
    if written is not None and known.issuperset(written):
        return []
    entries = {entry.partition(":")[0].strip(" \"'"): entry for entry in _NEXT_ENTRY.split(head)}
    return [(key, _entry(key, value, entries.get(key, ""))) for key, value in read(head).items() if key not in known]


def _entry(key: str, value: Value, written: str) -> Raw:
    try:
        if written[:1] not in " {" and read(written) == {key: value}:
            return Raw(written)
    except FrontmatterProblem:
        pass
    # Indented, in a flow mapping, or a text over lines that look like keys.
    plain = json.dumps({key: value}, ensure_ascii=False)[1:-1]
    return Raw(_UNSAFE.sub(lambda m: f"\\u{ord(m[0]):04x}", plain))


# ── the line that a problem is about ──

_LINE = late(r"\bline (\d+)")
_NAMED = late(r"the (?:field|key) `?([A-Za-z_]\w*)|^(?:[\w-]+\.)*([\w-]+) ", re.ASCII)


def line_of(raw: bytes, message: str) -> int:
    """Returns the line, from 1, of what a message names: a line, a field, a setting; else 1."""
    if (found := _LINE.search(message)) is not None:
        return min(int(found[1]), raw.count(b"\n") + 1)
    named = _NAMED.search(message)
    if named is None:
        return 1
    assigned = re.compile(rf"[\w.\"' -]*\b{re.escape(named[1] or named[2])}[\"']?\s*[=:]".encode())
    lines = raw[:HEAD_LIMIT].split(b"\n")
    return next((number for number, line in enumerate(lines, 1) if assigned.match(line)), 1)


# ── the bytes of a file in its seal, compressed ──


@cache
def _load_zstd() -> Any:
    """Loads what only those need who seal or unseal a file."""
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd
    return zstd


@cache
def _packer() -> Any:
    """Returns one compressor for all frames: making it takes as long as compressing a small file."""
    return _load_zstd().ZstdCompressor(1)


def pack_seal(raw: bytes) -> bytes:
    """Compresses bytes for a seal."""
    packer = _packer()
    packed: bytes = packer.compress(raw, packer.FLUSH_FRAME)
    return packed


def unpack_seal(packed: bytes | None) -> bytes | None:
    """Returns the sealed bytes, or None if they are lost, deleted or damaged."""
    if not packed:
        return None
    zstd = _load_zstd()
    try:
        raw: bytes = zstd.decompress(packed)
    except zstd.ZstdError:
        return None
    return raw


def body_of_seal(packed: bytes | None) -> str | None:
    """Returns the normalised body of a sealed file, or None if its bytes do not hold one."""
    raw = unpack_seal(packed)
    if raw is None:
        return None
    try:
        return normalize(open_source(raw).body)
    except FrontmatterProblem:
        return None
