"""The lists of docs/settings.md are made from the model; a test holds and writes the first."""

from __future__ import annotations

from doc_pages import ROOT, generated

from signet_sync.settings.model import ALL_SETTINGS, Setting, environment_name
from signet_sync.settings.model_choice import SERVERS

PAGE = ROOT / "docs" / "settings.md"


def written(default: object) -> str:
    """A default as TOML has it, texts without their quotes."""
    if default in ((), ""):
        return "[]" if default == () else '""'
    return str(default).lower() if isinstance(default, bool) else str(default)


def line(field: Setting) -> str:
    assert environment_name(field) == f"SIGNET_{field.key.replace('.', '_').upper()}"
    return f"* `{field.key}` (`{written(field.default)}`{'' if field.workspace else ', *own*'}): {field.doc}\n"


def test_the_settings_page_is_what_the_model_says() -> None:
    generated(PAGE, settings="".join(map(line, ALL_SETTINGS)))


def test_the_page_names_every_server_with_its_address_and_key() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for name, (url, key) in SERVERS.items():
        assert "".join(f"| {f'`{it}`' if it else '–'} " for it in (name, url, key)) in page
