"""Units of the operating system: judged by systemd and by plistlib, installed into temporary folders."""

from __future__ import annotations

import fcntl
import os
import plistlib
import re
import shlex
import shutil
import stat
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signet_sync.errors import UsageError
from signet_sync.host import launchd, service, service_manager, systemd

ROOT = Path(__file__).resolve().parents[2]
NASTY = 'My "vau\'t" 100%h $HOME ${x}\\y\\x41: ü – 日本 ;#'
UNIT = "signet-sync.service"

needs_analyze = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="systemd-analyze is not here to judge the units"
)

ANSWERS = """\
case "$*" in
  *show*) printf 'ActiveState=active\\nSubState=running\\nUnitFileState=enabled\\n' ;;
  *) ;;
esac
"""
UNREACHABLE = 'echo "Failed to connect to bus: No medium found" >&2; exit 1\n'


class Machine:
    """A person's home, and a PATH of only those programs that a test puts there; each logs its calls."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.bin = folder / "bin"
        self.log = folder / "calls"
        self.workspace = self.home / ".agents"
        self.environ = {
            "HOME": str(self.home), "PATH": str(self.bin), "XDG_CONFIG_HOME": str(self.home / "cfg"),
            "XDG_RUNTIME_DIR": str(folder),
        }  # fmt: skip
        for made in (self.bin, self.workspace):
            made.mkdir(parents=True)

    @property
    def units(self) -> Path:
        return self.home / "cfg/systemd/user"

    def program(self, name: str, script: str, shebang: str = "#!/bin/sh\n") -> None:
        path = self.bin / name
        path.write_text(f'{shebang}echo "{name} $*" >> {shlex.quote(str(self.log))}\n{script}')
        path.chmod(0o755)

    def calls(self) -> list[str]:
        return self.log.read_text().splitlines() if self.log.exists() else []

    def install(self, workspace: Path | None = None) -> service_manager.ServiceChange:
        chosen = str(workspace or self.workspace)
        return service.install(
            executable=[sys.executable, "-m", "signet_sync"],
            workspace=chosen,
            name=service.service_name(chosen, default=str(self.workspace)),
            environ=self.environ,
        )


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    monkeypatch.setattr(sys, "platform", "linux")
    return Machine(tmp_path)


@pytest.fixture
def mac(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> Machine:
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(fcntl, "F_FULLFSYNC", 51, raising=False)  # Linux refuses it, as some file systems of a Mac do
    machine.program("launchctl", 'case "$*" in print*) echo "  state = running" ;; esac\n')
    return machine


def assert_clean(runtime: Path, unit: Path) -> None:
    judged = subprocess.run(
        ["systemd-analyze", "--user", "--no-pager", "verify", "--man=no", str(unit)],
        env=os.environ | {"XDG_RUNTIME_DIR": str(runtime), "LC_ALL": "C.UTF-8"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (judged.returncode, judged.stdout, judged.stderr) == (0, "", "")


def rendered(workspace: str = "/w", executable: str = sys.executable, network: bool = False, **environment: str) -> str:
    return systemd.render([executable, "--workspace", workspace, "run"], environment, network=network)


@needs_analyze
def test_the_shipped_unit_is_clean_alone_and_with_each_documented_drop_in(tmp_path: Path) -> None:
    assert_clean(tmp_path, ROOT / "systemd" / UNIT)
    shutil.copy(ROOT / "systemd" / UNIT, tmp_path)
    folder = tmp_path / (UNIT + ".d")
    folder.mkdir()
    blocks = re.findall(r"```ini\n(.*?)```", (ROOT / "systemd/README.md").read_text(), re.DOTALL)
    assert blocks
    for number, block in enumerate(blocks):
        (folder / f"{number}.conf").write_text(block)
    assert_clean(tmp_path, tmp_path / UNIT)


def test_every_unit_is_part_of_the_package() -> None:
    built = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    shipped = {
        path.relative_to(ROOT).as_posix()
        for place in ("systemd/*.service", "launchd/*.plist")
        for path in ROOT.glob(place)
    }
    assert shipped == set(built["force-include"])
    names = {"dev.signet-sync.agent.plist", UNIT}
    assert {f"signet_sync/host/units/{name}" for name in names} == set(built["force-include"].values())


def test_names_keep_workspaces_apart(tmp_path: Path) -> None:
    default, vault, twin = (tmp_path / place for place in ("agents", "a/Mein Täg-Buch!", "b/Mein Täg-Buch!"))
    names = [service.service_name(str(p), default=str(default)) for p in (default, vault, twin)]
    assert names[0] == "signet-sync"
    assert re.fullmatch(r"signet-sync-mein-t-g-buch-[0-9a-f]{8}", names[1])
    assert len(set(names)) == 3
    assert re.fullmatch(r"signet-sync-workspace-[0-9a-f]{8}", service.service_name("/日本", default="/x"))


@given(st.text(st.characters(exclude_categories=["Cc", "Cs"]), min_size=1))
def test_quoted_words_mean_what_was_meant(text: str) -> None:
    # Within double quotes the shell's rules for `\` and `"` are systemd's; only the specifiers come on top.
    quoted = systemd.systemd_quote(text)
    assert not re.search(r"(?<!%)(%%)*%(?!%)", quoted)
    assert shlex.split(quoted.replace("%%", "%")) == [text]


@pytest.mark.parametrize("text", ["/a\nb", "/a\x00", "/a\x7f", "/a\x85", "/\udcff"])
def test_what_a_unit_cannot_name_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        systemd.systemd_quote(text)
    with pytest.raises(UsageError):
        launchd.render(["/bin/x", text], "signet-sync", {})


# ── rendering ──


@needs_analyze
@pytest.mark.parametrize("workspace", ["/home/tess/.agents", "/srv/" + NASTY, "/home/tess/ends with \\"])
def test_rendered_units_are_clean(workspace: str, tmp_path: Path) -> None:
    program = tmp_path / "100% of $HOME {x}: ü – 日本 ;#" / "signet-sync"
    program.parent.mkdir()
    shutil.copy("/bin/true", program)
    unit = tmp_path / "signet-sync.service"
    unit.write_text(rendered(workspace, str(program), XDG_STATE_HOME="/home/tess/" + NASTY))
    assert_clean(tmp_path, unit)
    assert systemd.read_command(str(unit), {}) == [str(program), "--workspace", workspace, "run"]


def test_only_who_asks_a_model_has_a_network() -> None:
    assert "RestrictAddressFamilies=AF_UNIX\n" in rendered()
    assert "RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6\n" in rendered(network=True)


def test_a_link_is_resolved_and_moved_settings_are_passed_on(machine: Machine) -> None:
    machine.program("systemctl", ANSWERS)
    machine.environ["SIGNET_CONFIG"] = "/my own.toml"
    link = machine.home / "link"
    link.symlink_to(machine.workspace)
    unit = Path(machine.install(link).path or "").read_text()
    assert f"--workspace {machine.workspace} run\n" in unit and str(link) not in unit
    assert 'Environment="SIGNET_CONFIG=/my own.toml"\n' in unit


def test_rendered_plist_holds_exact_paths() -> None:
    workspace = "/Users/tess/" + NASTY + "<&>"
    run = ["/opt/x/bin/signet-sync", "--workspace", workspace, "run"]
    text = launchd.render(run, "signet-sync-notes-0a1b2c3d", {"SIGNET_CONFIG": "/c.toml"})
    unit = plistlib.loads(text.encode())
    assert unit["Label"] == "dev.signet-sync.agent.notes-0a1b2c3d"
    assert unit["ProgramArguments"] == run
    assert unit["EnvironmentVariables"]["SIGNET_CONFIG"] == "/c.toml"
    assert unit["StandardErrorPath"].endswith("/Library/Logs/signet-sync-notes-0a1b2c3d.log")
    assert "@HOME@" not in text


@pytest.mark.parametrize("program", ["/o'brien/signet-sync", '/a"b/x', "/a\\x41"])
def test_a_program_that_systemd_does_not_start_is_refused(program: str) -> None:
    with pytest.raises(UsageError):
        rendered(executable=program)


# ── installing with systemd ──


def test_install_writes_enables_and_starts(machine: Machine) -> None:
    machine.program("systemctl", ANSWERS)
    machine.program("loginctl", "echo Linger=no\n")
    done = machine.install()
    unit = machine.units / "signet-sync.service"
    assert (done.kind, done.path, done.running) == ("systemd", str(unit), True)
    assert done.steps == [f"wrote {unit}", "enabled signet-sync.service", "started signet-sync.service"]
    assert [call for call in machine.calls() if " show" not in call] == [
        "systemctl --user daemon-reload",
        "systemctl --user enable signet-sync.service",
        "systemctl --user restart signet-sync.service",
    ]
    assert stat.S_IMODE(unit.stat().st_mode) == 0o644
    assert f"Environment=XDG_CONFIG_HOME={machine.home}/cfg\n" in unit.read_text()
    assert os.listdir(machine.units) == ["signet-sync.service"]
    assert "lingering" in done.by_hand[0]
    assert done.by_hand[1].startswith("loginctl enable-linger ")


@pytest.mark.parametrize("systemctl", [None, UNREACHABLE, "broken"])
def test_without_systemd_the_person_is_told_what_to_do(machine: Machine, systemctl: str | None) -> None:
    if systemctl == "broken":
        machine.program("systemctl", "", shebang="#!/nonexistent\n")
    elif systemctl:
        machine.program("systemctl", systemctl)
    done = machine.install()
    assert not done.running and not machine.units.exists() and not service.list_installed(machine.environ)
    assert (done.path, done.steps) == (None, ["neither systemd nor launchd answers here; no service was installed"])
    run = f"{sys.executable} -m signet_sync --workspace {machine.workspace} run"
    assert f"nohup {run} >/dev/null 2>&1 &" in done.by_hand


def test_several_workspaces_side_by_side(machine: Machine) -> None:
    machine.program("systemctl", ANSWERS)
    other = machine.home / NASTY
    other.mkdir()
    (machine.home / "cfg/systemd/user").mkdir(parents=True)
    for foreign in ("signet.service", "signet-sync-backup.service", "signet-sync.timer"):
        (machine.units / foreign).write_text("[Service]\nExecStart=/bin/true\n")
    machine.install()
    machine.install(other)
    states = service.list_installed(machine.environ)
    assert [(state.workspace, state.active) for state in states] == [(str(machine.workspace), True), (str(other), True)]
    service.uninstall(name=states[1].name, environ=machine.environ)
    assert [state.name for state in service.list_installed(machine.environ)] == ["signet-sync"]


def test_uninstall_keeps_what_is_not_ours(machine: Machine) -> None:
    machine.program("systemctl", ANSWERS)
    machine.install()
    own = machine.units / "signet-sync.service.d/network.conf"
    own.parent.mkdir()
    own.write_text("[Service]\nRestrictAddressFamilies=AF_INET\n")
    machine.log.unlink()
    done = service.uninstall(name="signet-sync", environ=machine.environ)
    assert done.steps == ["stopped signet-sync.service", f"removed {machine.units}/signet-sync.service"]
    assert machine.calls()[:2] == [
        "systemctl --user disable --now signet-sync.service",
        "systemctl --user daemon-reload",
    ]
    assert own.exists()
    assert machine.workspace.exists()
    again = service.uninstall(name="signet-sync", environ=machine.environ)
    assert (again.path, again.by_hand) == (None, [])


def test_launchd_install_list_and_uninstall(mac: Machine) -> None:
    other = mac.home / "notes"
    other.mkdir()
    done = mac.install()
    mac.install(other)
    plist = mac.home / "Library/LaunchAgents/dev.signet-sync.agent.plist"
    assert (done.kind, done.path, done.running, done.by_hand) == ("launchd", str(plist), True, [])
    assert f"launchctl bootstrap gui/{os.getuid()} {plist}" in mac.calls()
    assert plistlib.loads(plist.read_bytes())["RunAtLoad"] is True
    states = service.list_installed(mac.environ)
    assert [(state.workspace, state.active) for state in states] == [(str(mac.workspace), True), (str(other), True)]
    for state in states:
        service.uninstall(name=state.name, environ=mac.environ)
    assert service.list_installed(mac.environ) == []
    assert f"launchctl bootout gui/{os.getuid()}/dev.signet-sync.agent" in mac.calls()
