"""The deterministic sanitizer: newlines, control characters, secrets, body normalisation.

Contract: *Sanitizer* and *Secrets*. The rule table is part of the version: changing a rule means `v2` with a migration
note, because artifacts that were written under `v1` stay as they are.

How it works. Each rule belongs to a *look*: one cheap pass that says whether any of its rules is worth running. The
passes lean on what is fast in CPython: `str.find` and `str.replace` of one character (`memchr`), and `re` with a
pattern that opens with one literal character. Almost all tokens have a mark behind their prefix (`ghp_`, `sk-`, `SG.`),
so the marks are folded into one and looked at in one pass; everything that is assigned stands behind `:` or `=`, which
is the second. Only rules whose look fired run in full, in the order of the table, and the secret part of a match gives
way to `[REDACTED:<rule>]`: no length, no prefix, no hash of what stood there.

All patterns are linear: no run can be split in two ways, and a run that may be refused after it was read is bounded or
must start at a boundary, so that it is read once.

Decisions that a reader of the output may ask about:

* Documented examples (`AKIAIOSFODNN7EXAMPLE`) go like any other key: nobody is hurt, and there is no list to keep.
* An assigned value goes only if it looks like a secret: variables, calls, placeholders, numbers, dates, paths, chains
  of words, UUIDs, our own 16-character session tokens and anything with a blank in it stay.
* Of a URL only the password goes, of a webhook its path, of a header the credential, of a private key all of it.
* VT, FF, FS to US, NEL, LS and PS part words or lines and become a blank; every other control character but LF and
  tab leaves nothing behind, so that it cannot split a secret.
"""

from __future__ import annotations

import binascii
import re
from base64 import b64decode
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from signet_sync.contracts.bodies import normalize

SANITIZER_VERSION = "sanitize_transcript_v1"

Span = tuple[int, int]


def _found(match: re.Match[str]) -> Span | None:
    """The part named `secret`, or all of the match."""
    return match.span("secret") if "secret" in match.re.groupindex else match.span()


@dataclass(frozen=True, slots=True)
class Rule:
    """One row of the table.

    `look` names the first look that must have fired; each match holds one of `keywords`; `pattern` finds candidates,
    and `secret` gives the span to replace, or None for a look-alike.
    """

    name: str
    about: str
    look: str
    keywords: tuple[str, ...]
    pattern: re.Pattern[str]
    secret: Callable[[re.Match[str]], Span | None] = _found


# ── what a secret looks like ──

_ALNUM = "A-Za-z0-9"
_URLSAFE = "A-Za-z0-9_-"
_PIECES = re.compile(r"[-_.\n]")
# A line break inside a token: a wrapped terminal, a continued shell line, a quoted mail, a diff.
_BREAK = r"(?:[ \t]*+(?:\\[ \t]*+)?\n[ \t+>|]{0,8})?"


# `\\n` and `%20` in escaped text end a word too.
_AFTER_ESCAPE = r"(?:(?<=\\[nrt])|(?<=%[2-7][0-9A-F]))"


def _whole(literal: str, inside: str = _URLSAFE) -> str:
    """The literal, but not in the middle of a word.

    The literal comes first so that `re` can search for it; the look-behinds follow.
    """
    return rf"{literal}(?:(?<![{inside}]{literal})|(?<=\\[nrt]{literal})|(?<=%[2-7][0-9A-F]{literal}))"


def _wrapped(characters: str, least: int) -> str:
    """A run of at least `least` characters, 16 before the first break, that may be broken over lines until then."""
    return rf"(?=[{characters}]{{16}})(?:[{characters}]{_BREAK}){{{least - 1}}}[{characters}]+"


def _mixed(text: str) -> bool:
    return any(c.islower() for c in text) and any(c.isupper() for c in text) and any(c.isdigit() for c in text)


def _random(match: re.Match[str]) -> Span | None:
    """One unbroken piece of 20 characters, or a mixture of cases and digits; `sk-your-key-goes-here` is neither."""
    text = match[0]
    return match.span() if _mixed(text[3:]) or max(map(len, _PIECES.split(text))) >= 20 else None


def _decoded(text: str) -> bytes:
    """Base64 of either alphabet, cut to whole groups; nothing if it is none."""
    text = text.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        return b64decode(text[: len(text) // 4 * 4])
    except binascii.Error:
        return b""


def _key_block_base64(match: re.Match[str]) -> Span | None:
    return match.span() if b"PRIVATE" in _decoded(match[0][:64]) else None


def _snowflake(match: re.Match[str]) -> Span | None:
    """A Discord token opens with the bot's id, decimal digits in base64."""
    return match.span() if _decoded(match["id"]).isdigit() else None


_LONG_RUN = re.compile(r"[A-Za-z0-9+/=]{20}")


def _key_block(match: re.Match[str]) -> Span | None:
    """A block with key material in it; the mere names of its fences in a sentence are no secret."""
    return match.span() if match["cut"] or _LONG_RUN.search(match["body"]) else None


def _aws_secret(match: re.Match[str]) -> Span | None:
    return match.span("secret") if _mixed(match["secret"]) else None


_PLACEHOLDER = re.compile(
    r"""(?ix) ^\$[a-z_{(] | ^[%{<*\[(/~.@&|\\\#-] | \*{3} | x{4} | \.\.\.$ | … | ^arn: | ^[\w.+-]+@[\w-]+\.[\w.-]+$
    | your | example | placeholder | change[-_]?me | redacted | dummy | process\.env | os\.environ | getenv
    | secrets\.
    """
)
# Numbers, dates, versions, hosts with ports, digests that name their algorithm.
_NUMBERS = re.compile(
    r"[\d.,:_/+%-]+[a-z]{0,3}|v?\d+(?:\.\w+)+|\d{4}-\d\d-\d\d[T ].*|(?:sha|md)\d+[-:].*|0x[0-9a-f]+", re.I
)
_WORDS = re.compile(r"[A-Za-z]+\d{0,3}(?:[-_.:/][A-Za-z]*\d{0,3})*[.!?]?")
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.I)
_SESSION_TOKEN = re.compile(r"[a-z2-7]{16}")


def _plain(value: str) -> bool:
    return bool(_PLACEHOLDER.search(value) or _NUMBERS.fullmatch(value))


def _password_shaped(value: str) -> bool:
    """At least six characters, letters with digits or with a mark between them; no chain of words."""
    if len(value) < 6 or _plain(value) or not any(c.isalpha() for c in value):
        return False
    if _WORDS.fullmatch(value):
        return value.isalnum() and value[-1].isdigit()
    return any(c.isdigit() or c in "!#$^~@" for c in value[:-1])


def _token_shaped(value: str) -> bool:
    """At least ten characters of which six differ, letters and digits; no words, session token or UUID."""
    if len(value) < 10 or len(set(value)) < 6 or _plain(value) or _WORDS.fullmatch(value):
        return False
    if _SESSION_TOKEN.fullmatch(value) or _UUID.fullmatch(value):
        return False
    return any(c.isdigit() for c in value) and any(c.isalpha() for c in value)


def _credential(match: re.Match[str]) -> Span | None:
    """Basic holds `user:password` in base64; every other scheme something like a token."""
    secret = match["secret"]
    fits = b":" in _decoded(secret) if match["scheme"].lower() == "basic" else _token_shaped(secret)
    return match.span("secret") if fits else None


def _cookie(match: re.Match[str]) -> Span | None:
    values = [pair.partition("=")[2] for pair in match["secret"].split(";")]
    return match.span("secret") if any(_token_shaped(value) for value in values) else None


_SAMPLE_PASSWORDS = frozenset({"pass", "password", "passwd", "pwd", "pw", "secret", "token", "key", "port"})


def _login(match: re.Match[str]) -> Span | None:
    """What stands behind `user:`; neither the words of a description (`user:password@host`) nor a group's number."""
    secret = match["secret"]
    if secret.lower() in _SAMPLE_PASSWORDS or _PLACEHOLDER.search(secret) or (secret.isdigit() and len(secret) < 6):
        return None
    return match.span("secret")


# ── assignments ──

_PASSWORD_NAMES = ("password", "passwd", "passphrase", "pwd", "_pass", "-pass", "dbpass", "userpass")
_KEY_KINDS = ("api", "access", "secret", "private", "account", "auth", "signing", "encryption", "shared", "master")
_TOKEN_NAMES = (
    *("secret", "token", "credential", "credentials", "_auth", "authorization", "sharedaccesskey"),
    *(kind + joint + "key" for kind in _KEY_KINDS for joint in ("", "_", "-")),
)
_SECRET_NAMES = _PASSWORD_NAMES + _TOKEN_NAMES
_PAGE_NAMES = ("nexttoken", "next_token", "pagetoken", "page_token", "continuationtoken", "continuation_token")
# What stands between the name and the mark: quotes (escaped in JSON within JSON), a bracket, blanks, Markdown's stars.
_AROUND_NAME = " \t\"'`\\*"
_AROUND = r"[ \t\"'`\\*\]]"
# A quoted value, or a bare one up to a blank or a mark that ends values in code, YAML, shells and query strings,
# perhaps behind a type annotation. Its first 64 characters are looked at, and among them a digit or a strong mark is
# demanded here so that `re` refuses prose on its own.
_VALUE = (
    r"(?=[=:>~]?[ \t]*(?:\w{1,24}+[ \t][=:][ \t])?(?:[rbfu]?\\?[\"'`])?"
    r"(?=[^\s\"'`0-9!#$^~@]{0,63}+[0-9!#$^~@])(?P<secret>[^\s\"'`\\,;<>(){}\[\]&|*]{6,64}))"
)
_VALUE_TAIL = re.compile(r"[^\s\"'`\\,;<>(){}\[\]&|*]*")


def _name_before(text: str, at: int) -> str:
    """What the `:` or `=` at this place gives a value to, lower case, without what stands around it."""
    before = text[max(0, at - 40) : at].rstrip(_AROUND_NAME)
    if before[-2:] in ("']", '"]'):
        before = before[:-2].rstrip("\\")
    return before.lower()


def _names_secret(name: str) -> bool:
    """Whether it ends as a secret's name does; so do places in a list and AWS resources (`…:123:secret:Name`)."""
    if not name.endswith(_SECRET_NAMES) or name.endswith(_PAGE_NAMES):
        return False
    return not (name.endswith(":secret") and name[-8:-7].isdigit())


def _assigned(match: re.Match[str]) -> Span | None:
    """The value, if its name is a secret's and its shape too, and if it is neither called nor indexed."""
    text, value, (start, end) = match.string, match["secret"], match.span("secret")
    name = _name_before(text, match.start())
    if not _names_secret(name) or text[end : end + 1] in ("(", "[", "{", "<"):
        return None
    if not (_password_shaped(value) if name.endswith(_PASSWORD_NAMES) else _token_shaped(value)):
        return None
    rest = _VALUE_TAIL.match(text, end)
    return start, rest.end() if rest else end


# ── the table ──

_MARK, _ASSIGN, _A, _J, _K, _TILDE, _AT, _DAPI = "mark", "assign", "A", "J", "K", "~", "@", "dapi"


def _rule(
    name: str,
    about: str,
    look: str,
    keywords: str,
    pattern: str,
    secret: Callable[[re.Match[str]], Span | None] = _found,
) -> Rule:
    return Rule(name, about, look, tuple(keywords.split()), re.compile(pattern), secret)


_KEY_FENCE = r"[ +A-Z0-9%]{0,40}PRIVATE(?:[ +]|%20)KEY(?:(?:[ +]|%20)BLOCK)?-----"
_KEY_SEPARATOR = r"(?:[\s\"'+>,]|\\[rn\\])*"
_GITLAB = ("glpat-", "gldt-", "glrt-", "glcbt-", "glptt-", "glft-", "glsoat-", "glagent-", "glimt-", "gloas-")

# No name holds a word of `_SECRET_NAMES` at its end: `[REDACTED:github]: x` must not read as an assignment.
RULES: tuple[Rule, ...] = (
    _rule(
        "private-block",
        "private key in PEM, OpenSSH or PGP armour, whole; with CRLF, with escaped newlines, or cut off at its end",
        _MARK,
        "-----BEGIN",
        rf"-----BEGIN{_KEY_FENCE}(?:(?P<body>[^-]*(?:-(?!----)[^-]*)*)-{{5,6}}END{_KEY_FENCE}"
        rf"|(?P<cut>{_KEY_SEPARATOR}[A-Za-z0-9+/=]{{20,}}(?:{_KEY_SEPARATOR}[A-Za-z0-9+/=]{{16,}})*))",
        _key_block,
    ),
    _rule(
        "private-block-base64",
        "PEM private key in base64",
        _J,
        "LS0tLS1CRUdJT",
        rf"LS0tLS1CRUdJT[{_ALNUM}+/]{{40,}}={{0,2}}",
        _key_block_base64,
    ),
    _rule(
        "jwt",
        "JSON web token: signed, encrypted or cut after its claims",
        _J,
        "eyJ",
        rf"{_whole('eyJ')}[{_URLSAFE}]{{8,}}[.](?:eyJ[{_URLSAFE}]{{4,}}|[{_URLSAFE}]{{4,}}[.][{_URLSAFE}]{{8,}})"
        rf"(?:[.][{_URLSAFE}]+)*",
    ),
    _rule("jwt-base64", "JSON web token in base64", _K, "ZXlK", rf"{_whole('ZXlK')}[{_ALNUM}+/]{{60,}}={{0,2}}"),
    _rule(
        "github",
        "GitHub: personal, OAuth, user, server, refresh",
        _MARK,
        "ghp_ gho_ ghu_ ghs_ ghr_",
        rf"gh[pousr]_(?:{_wrapped(_ALNUM, 36)}|[{_ALNUM}]{{20,}})",
    ),
    _rule("github-fine", "GitHub: fine-grained", _MARK, "github_pat_", r"github_pat_[A-Za-z0-9_]{20,}"),
    _rule(
        "gitlab",
        "GitLab: personal, deploy, runner, CI, trigger, feed, SCIM, agent, mail, OAuth",
        _MARK,
        " ".join(_GITLAB),
        rf"gl(?:pat|[dr]t|cbt|ptt|ft|soat|agent|imt|oas)-[.{_URLSAFE}]{{18,}}",
    ),
    _rule("slack", "Slack", _MARK, "xox xapp-", rf"x(?:ox[a-z]|app)-[{_ALNUM}-]{{16,}}", _random),
    _rule(
        "slack-hook",
        "Slack: webhook",
        _MARK,
        "slack.com/",
        rf"[.]slack[.]com/(?:services|workflows|triggers)/(?P<secret>[{_ALNUM}+/_-]{{16,}})",
    ),
    _rule(
        "anthropic",
        "Anthropic",
        _MARK,
        "sk-ant-",
        rf"sk-ant-(?:{_wrapped(_URLSAFE, 80)}|[{_URLSAFE}]{{20,}})",
        _random,
    ),
    _rule(
        "openai",
        "OpenAI, and providers that took over its prefix",
        _MARK,
        "sk-",
        rf"{_whole('sk-')}(?:{_wrapped(_URLSAFE, 48)}|[{_URLSAFE}]{{20,}})",
        _random,
    ),
    _rule(
        "aws-pair",
        "AWS: secret beside its key id",
        _A,
        "AKIA ASIA",
        rf"A[KS]IA[A-Z0-9]{{16}}[^{_ALNUM}/+\n][^\n]{{0,60}}?(?:\n[^\n]{{0,40}}?)?"
        rf"(?<![{_ALNUM}/+])(?P<secret>[{_ALNUM}/+]{{40}})(?![{_ALNUM}/+=])",
        _aws_secret,
    ),
    _rule(
        "aws-id",
        "AWS: key id",
        _A,
        "AKIA ASIA ABIA ACCA",
        rf"{_whole('A(?:KIA|SIA|BIA|CCA)', _ALNUM)}[A-Z0-9]{{16}}(?![{_ALNUM}])",
    ),
    _rule("aws-bedrock", "AWS: Bedrock", _A, "ABSK", rf"ABSK[{_ALNUM}+/]{{90,}}={{0,2}}"),
    _rule("google", "Google: API", _A, "AIza", rf"AIza[{_URLSAFE}]{{32,}}"),
    _rule("google-client", "Google: OAuth client", _MARK, "GOCSPX-", rf"GOCSPX-[{_URLSAFE}]{{20,}}"),
    _rule("google-oauth", "Google: OAuth access", _MARK, "ya29.", rf"ya29[.][{_URLSAFE}]{{20,}}"),
    _rule(
        "azure-ad",
        "Azure: application",
        _TILDE,
        "Q~",
        rf"(?:(?<![~.{_URLSAFE}])|{_AFTER_ESCAPE})[~._{_ALNUM}]{{3}}[0-9]Q~[~.{_URLSAFE}]{{31,}}",
    ),
    _rule(
        "azure-sas",
        "Azure: signature of a shared access URL",
        _ASSIGN,
        "sig=",
        rf"[?&;]sig=(?P<secret>[{_ALNUM}%+/_-]{{24,}}={{0,2}})",
    ),
    _rule("stripe", "Stripe", _MARK, "k_live_ k_test_", rf"[sr]k_(?:live|test)_[{_ALNUM}]{{16,}}"),
    _rule("stripe-hook", "Stripe, Svix: webhook", _MARK, "whsec_", rf"whsec_[{_ALNUM}+/]{{20,}}={{0,2}}"),
    _rule("sendgrid", "SendGrid", _MARK, "SG.", rf"SG[.][{_URLSAFE}]{{16,32}}[.][{_URLSAFE}]{{16,}}"),
    _rule("twilio", "Twilio", _K, "SK", rf"{_whole('SK')}[0-9a-f]{{32}}(?![{_ALNUM}])"),
    _rule("mailgun", "Mailgun", _MARK, "key-", rf"{_whole('key-')}[0-9a-f]{{32}}(?![{_ALNUM}])"),
    _rule("telegram", "Telegram: bot", _ASSIGN, ":AA", rf":AA(?<=[0-9]{{8}}:AA)(?P<secret>[{_URLSAFE}]{{30,}})"),
    _rule(
        "discord",
        "Discord: bot",
        _MARK,
        ".",
        rf"(?:(?<![{_URLSAFE}])|{_AFTER_ESCAPE})(?P<id>[MNO][{_URLSAFE}]{{22,27}})[.][{_URLSAFE}]{{6,7}}[.][{_URLSAFE}]{{27,}}",
        _snowflake,
    ),
    _rule(
        "discord-hook",
        "Discord: webhook",
        _MARK,
        "/api/webhooks/",
        rf"[.]com/api/webhooks/[0-9]{{15,22}}/(?P<secret>[{_URLSAFE}]{{40,}})",
    ),
    _rule("npm", "npm", _MARK, "npm_", rf"npm_[{_ALNUM}]{{30,}}"),
    _rule("pypi", "PyPI", _MARK, "pypi-AgEI", rf"pypi-AgEI[{_URLSAFE}]{{40,}}"),
    _rule("hugging-face", "Hugging Face", _MARK, "hf_ api_org_", rf"(?:hf|api_org)_[{_ALNUM}]{{30,}}"),
    _rule("databricks", "Databricks", _DAPI, "dapi", rf"{_whole('dapi')}[0-9a-f]{{32}}(?![{_ALNUM}])"),
    _rule("digitalocean", "DigitalOcean", _MARK, "_v1_", r"do[opr]_v1_[0-9a-f]{60,}"),
    _rule("vault", "HashiCorp Vault", _MARK, "hvs. hvb. hvr.", rf"hv[sbr][.][{_URLSAFE}]{{24,}}"),
    _rule("age", "age: identity", _MARK, "AGE-SECRET-KEY-", r"AGE-SECRET-KEY-1[A-Z0-9]{50,}"),
    _rule("perplexity", "Perplexity", _MARK, "pplx-", rf"pplx-[{_ALNUM}]{{32,}}"),
    _rule("groq", "Groq", _MARK, "gsk_", rf"gsk_[{_ALNUM}]{{40,}}"),
    _rule("xai", "xAI", _MARK, "xai-", rf"xai-[{_ALNUM}]{{60,}}"),
    _rule("linear", "Linear", _MARK, "lin_api_ lin_oauth_", rf"lin_(?:api|oauth)_[{_ALNUM}]{{32,}}"),
    _rule("notion", "Notion", _MARK, "secret_ ntn_", rf"(?:secret|ntn)_[{_ALNUM}]{{40,}}"),
    _rule(
        "supabase",
        "Supabase",
        _MARK,
        "sbp_ sb_secret_",
        rf"sb(?:p_[0-9a-f]{{40,}}|_secret_[{_URLSAFE}]{{20,}})",
    ),
    _rule("docker", "Docker Hub", _MARK, "dckr_pat_", rf"dckr_pat_[{_URLSAFE}]{{20,}}"),
    _rule("grafana", "Grafana", _MARK, "glsa_", rf"glsa_[{_ALNUM}]{{32}}_[0-9a-f]{{8}}"),
    _rule("shopify", "Shopify", _MARK, "shp", r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32,}"),
    _rule("rubygems", "RubyGems", _MARK, "rubygems_", r"rubygems_[0-9a-f]{48,}"),
    _rule("postman", "Postman", _MARK, "PMAK-", r"PMAK-[0-9a-f]{24}-[0-9a-f]{34}"),
    _rule("atlassian", "Atlassian", _A, "ATATT3", rf"ATATT3[={_URLSAFE}]{{60,}}"),
    _rule(
        "authorization",
        "credential in an Authorization header: bearer, basic or of another scheme",
        _ASSIGN,
        "uthorization UTHORIZATION",
        rf"(?:[Aa]uthorization|AUTHORIZATION){_AROUND}{{0,3}}[=:]{_AROUND}{{0,4}}"
        rf"(?P<scheme>[A-Za-z-]{{3,20}})[ \t]+(?P<secret>[._~+/{_URLSAFE}]{{8,}}={{0,2}})",
        _credential,
    ),
    _rule(
        "cookie",
        "values of a Cookie or Set-Cookie header",
        _ASSIGN,
        "ookie OOKIE",
        rf"(?:[Cc]ookie|COOKIE){_AROUND}{{0,3}}:{_AROUND}{{0,4}}"
        r"(?P<secret>[^\s=;\"'\[]{1,64}=[^\s;\"'\[]{8,}(?:;[ \t]*[^\s;\"'\[]+)*)",
        _cookie,
    ),
    _rule(
        "curl-user",
        "password on a command line of curl",
        _MARK,
        "curl",
        r"-(?:u(?<=\s-u)|-user(?<=\s--user))[ =]{1,2}[\"']?[^\s:\"'\[]{1,64}:(?P<secret>[^\s\"'\[]{3,})",
        _login,
    ),
    _rule(
        "url-login",
        "password in a URL",
        _AT,
        "://",
        r"://[^\s:/?#@\"'`<>\[\]]{0,128}:(?P<secret>[^\s/?\"'`<>\[\]]{3,256})@(?=[\w\[$%{-])",
        _login,
    ),
    _rule(
        "assignment",
        "value that looks like a secret, given to a name that says so",
        _ASSIGN,
        "= :",
        f"[=:]{_VALUE}",
        _assigned,
    ),
)

# ── the looks ──


def _behind(*literals: str) -> str:
    """One of these stands before this place (`re` wants look-behinds of one width each)."""
    return "(?:" + "|".join(f"(?<={literal})" for literal in literals) + ")"


# `-` and `.` are folded into `_`, so that one literal leads to every token with a prefix.
_PREFIXES = _behind(
    *("gh[pousr]_", "gl(?:pat|cbt|ptt|oas|imt)_", "gl(?:dt|rt|ft)_", "glsoat_", "glagent_", "xox[a-z]_", "xapp_"),
    *("GOCSPX_", "ya29_", "[sr]k_(?:live|test)_", "whsec_", "SG_", "npm_", "pypi_", "hf_", "_org_", "do[opr]_v1_"),
    *("hv[sbr]_", "KEY_", "pplx_", "gsk_", "xai_", "lin_api_", "lin_oauth_", "secret_", "ntn_", "sbp_", "_pat_"),
    *("sk_ant_", "glsa_", "shp(?:at|ca|pa|ss)_", "gems_", "PMAK_"),
)
_DISCORD = rf"(?=[{_ALNUM}_]{{6,7}}_[{_ALNUM}_]{{27}})" + _behind(
    *(f"[MNO][{_ALNUM}_]{{{length}}}_" for length in range(22, 28))
)
_MARKED = re.compile(
    rf"_(?:(?<=[{_ALNUM}]_)(?=[{_ALNUM}_+/]{{16}})(?:{_PREFIXES}|(?<=sk_)(?<![a-mo-qsu-z]sk_)"
    rf"|(?<=key_)(?=[0-9a-f]{{32}})|{_DISCORD})"
    r"|BEGIN[ +%](?<=_____BEGIN.)|slack_com/|com/api/webhooks/|u[ =](?<=\s_u.)|user[ =](?<=\s__user.))"
)


def _marked(text: str) -> bool:
    return _MARKED.search(text.replace("-", "_").replace(".", "_")) is not None


# `=` is folded into `:`. The last three letters of every name that `_given` asks for, roughly first, since most words
# are refused by that; up to three quotes, blanks or brackets may stand between name and mark, more is looked at anyway.
_LAST_THREE = ("ord", "swd", "ase", "pwd", "ass", "ret", "ken", "key", "ial", "als", "uth", "ion", "kie", "sig")


def _either_case(letters: Iterable[str]) -> str:
    return "[" + "".join(sorted({case for letter in letters for case in (letter, letter.upper())})) + "]"


_ROUGHLY = "".join(map(_either_case, zip(*_LAST_THREE, strict=True)))
_EXACTLY = "(?:" + "|".join("".join(map(_either_case, ending)) for ending in _LAST_THREE) + ")"
_HEADERS = ("authorization", "cookie", "sig")
_HEADER_ENDS = "[ikIKsS][oiOI][negNEG]"
_GIVEN = re.compile(
    rf":(?:(?:(?<={_ROUGHLY}:)(?<={_EXACTLY}:)|(?<={_AROUND}:)(?:(?<={_ROUGHLY}{_AROUND}:)(?<={_EXACTLY}{_AROUND}:)"
    rf"|(?<={_AROUND}{{2}}:)(?:(?<={_EXACTLY}{_AROUND}{{2}}:)|(?<={_AROUND}{{3}}:))))"
    rf"(?:{_VALUE}|" + "|".join(rf"(?<={_HEADER_ENDS}{_AROUND}{{{n}}}:)" for n in range(4)) + "))"
    rf"|:(?<=[0-9]:)(?=AA[{_URLSAFE}]{{30}})"
)


def _given(text: str) -> bool:
    for match in _GIVEN.finditer(text.replace("=", ":")):
        at = match.start()
        name = _name_before(text, at)
        if name.endswith(_HEADERS) or (match["secret"] and _names_secret(name)) or text.startswith(":AA", at):
            return True
    return False


_LITERALS = {
    _A: re.compile(r"A(?=(?:KI|SI|BI|CC)A[A-Z0-9]{16}|Iza|BSK|TATT3)"),
    _J: re.compile(r"J(?:(?<=eyJ)|(?<=CRUdJ))"),
    _K: re.compile(r"K(?:(?<=ZXlK)|(?<=SK)(?=[0-9a-f]{32}))"),
    _TILDE: re.compile(r"~(?<=Q~)"),
    _AT: re.compile(r"@"),
    _DAPI: re.compile(r"dapi(?=[0-9a-f]{32})"),
}


def _looks(text: str) -> set[str]:
    """The looks that fired. A rule matches only where its look fires (held by a test)."""
    fired = {literal for literal, pattern in _LITERALS.items() if literal in text and pattern.search(text)}
    if _marked(text):
        fired.add(_MARK)
    if _given(text):
        fired.add(_ASSIGN)
    return fired


# ── the work ──


def _candidates(text: str) -> list[Rule]:
    """The rules that may match, in the order of the table."""
    fired = _looks(text)
    if not fired:
        return []
    return [rule for rule in RULES if rule.look in fired and any(word in text for word in rule.keywords)]


def _spans(rule: Rule, text: str) -> Iterator[Span]:
    search, at = rule.pattern.search, 0
    while match := search(text, at):
        span = rule.secret(match)
        # A pattern may only look at its secret: what was found once is not read again.
        at = max(match.end(), span[1]) if span else match.end()
        if span:
            yield span


def _apply(rules: Iterable[Rule], text: str, counts: dict[str, int]) -> str:
    for rule in rules:
        parts: list[str] = []
        end = 0
        for start, stop in _spans(rule, text):
            parts += text[end:start], f"[REDACTED:{rule.name}]"
            end = stop
        if parts:
            counts[rule.name] = counts.get(rule.name, 0) + len(parts) // 2
            text = "".join(parts) + text[end:]
    return text


def redact(text: str) -> tuple[str, dict[str, int]]:
    """The text with every secret replaced by `[REDACTED:<rule>]`, and how often each rule did so.

    Where nothing was found the very same object comes back. Idempotent: it goes on until a look finds nothing; each
    round takes text away outside the marks and no rule reaches into a mark, so that it ends (in practice at once).
    """
    counts: dict[str, int] = {}
    while rules := _candidates(text):
        redacted = _apply(rules, text, counts)
        if redacted is text:
            break
        text = redacted
    return text, counts


def suspects(text: str) -> bool:
    """Whether `redact` would replace anything (note `secret-suspected`)."""
    return any(True for rule in _candidates(text) for _ in _spans(rule, text))


# ── control characters ──

# VT, FF, the separators FS to US, NEL, LS and PS part words or lines: a blank takes their place. The others, and the
# bidirectional embeddings, overrides and isolates, leave nothing behind, so that they cannot split a secret either.
_PARTING = "\v\f\x1c\x1d\x1e\x1f\x85\u2028\u2029"
_ASCII_CONTROLS = tuple(chr(c) for c in (*range(9), *range(11, 32), 127))
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_REPLACED = {
    **dict.fromkeys((*range(9), *range(11, 32), *range(127, 160), *range(0x202A, 0x202F), *range(0x2066, 0x206A))),
    **{ord(c): " " for c in _PARTING},
}


def _has_controls(text: str) -> bool:
    if text.isascii():
        # Thirty searches for one character are five times as fast as one search for thirty.
        return any(map(text.__contains__, _ASCII_CONTROLS))
    return _UNSAFE.search(text) is not None


def _without_controls(text: str) -> str:
    """Newlines to LF, then no C0 but LF and tab, no DEL, no C1, no bidi control, no lone surrogate (U+FFFD)."""
    if not _has_controls(text):
        return text
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text.translate(_REPLACED).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def sanitize_transcript_v1(text: str) -> str:
    """Newlines, control characters, secrets, body normalisation, in this order, for every text of many lines we write.

    Pure, deterministic, idempotent and total: any `str` will do, lone surrogates become U+FFFD.
    """
    return normalize(redact(_without_controls(text))[0])


def sanitize_normalized(text: str) -> str:
    """`sanitize_transcript_v1` for a body that is normalised already: the same result, the same object when clean."""
    clean = redact(_without_controls(text))[0]
    return text if clean is text else normalize(clean)


def sanitize_line(text: str) -> str:
    """The same for a value of one line (sentence, project, key): newlines and tabs become blanks, none at the ends.

    Secrets are looked for before and after that: a token broken over two lines is known only before, `password:`
    above its value only after.
    """
    text = redact(_without_controls(text))[0]
    if "\n" in text or "\t" in text:
        text = redact(text.replace("\n", " ").replace("\t", " "))[0]
    return text.strip(" ")
