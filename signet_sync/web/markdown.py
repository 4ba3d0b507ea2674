"""Renders Markdown of the vault as HTML that cannot run: no tag of a file, and links only to pages of ours.

The library escapes all text; nh3 then leaves only the tags and attributes named here. Each block can be linked to by
the number of its first line.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

import nh3
from markdown_it import MarkdownIt
from markdown_it.common.utils import escapeHtml
from markdown_it.renderer import RendererHTML
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markupsafe import Markup

# A longer line is shown without markup.
MARKED_UP = 2_000

_TAGS = {"a", "blockquote", "br", "code", "em", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p", "pre", "span"}
_TAGS |= {"strong", "table", "tbody", "td", "th", "thead", "tr", "ul"}
_ATTRIBUTES = {"*": {"class", "id"}, "a": {"href"}, "ol": {"start"}, "pre": {"tabindex"}}
_WIKILINK = re.compile(r"\[\[([^\[\]|]+)(?:\|([^\[\]]*))?\]\]")
_HANDLE = re.compile(r"(?<!\S)\^([a-z]-[a-z2-7]+)(?!\S)")
_SPECIAL = re.compile(r"[\\`*_\[^]")


_PARAMETER = re.compile(r"\{(\w+)(?::\w+)?\}")
_AS_BYTES = "surrogateescape"


@dataclass(frozen=True, slots=True)
class LinkTarget:
    """A view and its parameters."""

    view: str
    given: Mapping[str, str]


class Links:
    """The function `url` of templates: `url('session', session=token, page=2)`.

    Parameters of the path are given by name, others become the query; None is left out. `agent` chooses an agent other
    than the one that is shown.
    """

    def __init__(self, paths: Mapping[str, str], agent: str, usual: str) -> None:
        self._paths = paths
        self._agent = agent
        self._usual = usual

    def __contains__(self, name: str) -> bool:
        return name in self._paths

    def __call__(self, name: str, /, **given: object) -> str:
        """Returns the address. Raises `KeyError` for a missing view or parameter."""
        path = _PARAMETER.sub(
            lambda match: quote(str(given.pop(match[1])), safe="", errors=_AS_BYTES), self._paths[name]
        )
        agent = given.pop("agent", self._agent)
        if agent != self._usual and name != "static":
            given["agent"] = agent
        query = urlencode({key: str(value) for key, value in given.items() if value is not None}, errors=_AS_BYTES)
        return f"{path}?{query}" if query else path


class Prose:
    """A parsed text of Markdown, its lines counted from `first`.

    `targets` are the destinations of its links, as written, and the ids of its handles.
    """

    def __init__(self, text: str, first: int = 1, *, inline: bool = False) -> None:
        self.text = text
        self._shown = bool(text.strip())
        self._lines: list[int] = []  # of its blocks
        self._end = first + text.rstrip("\n").count("\n")
        self.targets: set[str] = set()
        self._tokens = (_markdown.parseInline if inline else _markdown.parse)(text)
        if any(token.level >= _markdown.options.maxNesting - 1 for token in self._tokens):
            # The library leaves out what is nested deeper.
            self._tokens = [Token("fence", "code", 0, content=text, map=[0, text.count("\n") + 1])]
        for token in self._tokens:
            if token.type in ("heading_open", "heading_close"):
                token.tag = f"h{min(int(token.tag[1]) + 2, 6)}"  # below those of the page
            if token.map is not None and token.type in _NUMBERED and not token.hidden:
                line = first + token.map[0]
                if line not in self._lines:
                    self._lines.append(line)
                    token.attrs["id"] = f"L{line}"
            self._read_links(token.children or ())

    def _read_links(self, tokens: Sequence[Token]) -> None:
        """Notes where links lead; the end of a link gets its target and its words."""
        target, words = "", ""
        for token in tokens:
            if token.type == "link_open":
                target, words = str(token.attrs["href"]), ""
                self.targets.add(target)
            elif token.type == "link_close":
                token.meta = {"target": target, "words": words}
            words += token.content

    def __bool__(self) -> bool:
        return self._shown

    def html(
        self, url: Links, links: Mapping[str, LinkTarget] | None = None, mark: str = "L", asked: int | None = None
    ) -> Markup:
        """Returns HTML in which links have the addresses of `links`, if any; others are text.

        Anchors of blocks begin with `mark`; the one with the line that is asked for begins at the place `here`.
        """
        addresses = {name: url(to.view, **to.given) for name, to in (links or {}).items() if to.view in url}
        html = str(_markdown.renderer.render(self._tokens, _markdown.options, {"addresses": addresses}))
        # No text of a file contains an unescaped quotation mark.
        found = [one for one in self._lines if asked is not None and one <= asked <= self._end]
        if found:
            line = max(found)
            html = re.sub(rf'(<[^>]*id="L{line}"[^>]*>)', r'\1<span id="here"></span>', html, count=1)
        html = html.replace(' id="L', f' id="{mark}')
        return Markup(nh3.clean(html, tags=_TAGS, attributes=_ATTRIBUTES, url_schemes=set(), link_rel=None))  # noqa: S704


# Blocks that have an anchor.
_NUMBERED = ("paragraph_open", "heading_open", "list_item_open", "blockquote_open", "fence")


class _Markdown(MarkdownIt):
    """Keeps links as written: the page decides which of them have a target."""

    def normalizeLink(self, url: str) -> str:
        return url

    def validateLink(self, url: str) -> bool:
        return True


def _inline(state: StateCore) -> None:
    """Parses the text of blocks line by line; a line so long that this would take minutes is shown as it is."""
    for token in (one for one in state.tokens if one.type == "inline"):
        token.children = []
        for number, line in enumerate(token.content.split("\n")):
            token.children += [Token("softbreak", "br", 0)] if number else []
            if len(line) <= MARKED_UP and _SPECIAL.search(line):
                state.md.inline.parse(line, state.md, state.env, token.children)
            else:
                token.children.append(Token("text", "", 0, content=line))


def _wikilink(state: StateInline, silent: bool) -> bool:
    found = _WIKILINK.match(state.src, state.pos, state.posMax)
    return found is not None and _push_link(state, silent, found, found[2] or found[1])


def _handle(state: StateInline, silent: bool) -> bool:
    found = _HANDLE.match(state.src, state.pos, state.posMax)
    return found is not None and _push_link(state, silent, found, found[0])


def _push_link(state: StateInline, silent: bool, found: re.Match[str], words: str) -> bool:
    if not silent:
        state.push("link_open", "a", 1).attrs = {"href": found[1]}
        state.push("text", "", 0).content = words
        state.push("link_close", "a", -1)
    state.pos = found.end()
    return True


def _link_open(_: RendererHTML, tokens: Sequence[Token], at: int, options: Any, env: Any) -> str:
    address = env["addresses"].get(tokens[at].attrs["href"])
    return f'<a href="{escapeHtml(address)}">' if address else ""


def _link_close(_: RendererHTML, tokens: Sequence[Token], at: int, options: Any, env: Any) -> str:
    target, words = tokens[at].meta["target"], tokens[at].meta["words"]
    if target in env["addresses"]:
        return "</a>"
    return "" if words in (target, f"^{target}") else f' <span class="target">({escapeHtml(target)})</span>'


def _fence(_: RendererHTML, tokens: Sequence[Token], at: int, options: Any, env: Any) -> str:
    place = f' id="{tokens[at].attrs["id"]}"' if "id" in tokens[at].attrs else ""
    return f'<pre tabindex="0"{place}><code>{escapeHtml(tokens[at].content)}</code></pre>'


_markdown = _Markdown("zero", {"html": False, "breaks": True, "maxNesting": 20}).enable(
    ["blockquote", "fence", "heading", "hr", "list", "table", "backticks", "emphasis", "escape", "link"]
)
_markdown.core.ruler.at("inline", _inline)
_markdown.inline.ruler.before("link", "wikilink", _wikilink)
_markdown.inline.ruler.before("link", "handle", _handle)
_markdown.add_render_rule("fence", _fence)
_markdown.add_render_rule("link_open", _link_open)
_markdown.add_render_rule("link_close", _link_close)
