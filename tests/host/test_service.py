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

from signet_sync.errors import SignetSyncError, UsageError
from signet_sync.host import service, service_manager, systemd

ROOT = Path(__file__).resolve().parents[2]
NASTY = 'My "vau\'t" 100%h $HOME ${x}\\y\\x41: ü – 日本 ;#'
UNIT_KINDS: list[service_manager.Kind] = ["systemd", "systemd-system"]

needs_analyze = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="systemd-analyze is not here to judge the units"
)

ANSWERS = """\
case "$*" in
  *show*) printf 'ActiveState=active\\nSubState=running\\nUnitFileState=enabled\\nExecMainStatus=0\\n' ;;
  *) ;;
esac
"""
REFUSES_NAMESPACES = """\
if [ -e "$XDG_CONFIG_HOME/systemd/user/signet-sync.service.d/10-without-user-namespaces.conf" ]
then state=active code=0
else state=failed code=218
fi
case "$*" in
  *show*) echo "ActiveState=$state"; echo "ExecMainStatus=$code" ;;
  *restart*) [ $code = 0 ] || { echo "Job failed." >&2; exit 1; } ;;
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
        self.state = self.home / ".local/state/signet-sync"
        self.environ = {
            "HOME": str(self.home),
            "PATH": str(self.bin),
            "XDG_CONFIG_HOME": str(self.home / "cfg"),
            "XDG_RUNTIME_DIR": str(folder),
        }
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

    def install(self, workspace: Path | None = None, **more: bool) -> service_manager.ServiceChange:
        chosen = str(workspace or self.workspace)
        return service.install(
            executable=[sys.executable, "-m", "signet_sync"],
            workspace=chosen,
            state=str(self.state),
            name=service.service_name(chosen, default=str(self.workspace)),
            environ=self.environ,
            **more,
        )


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    monkeypatch.setattr(systemd, "SYSTEM_UNITS", str(tmp_path / "system"))
    monkeypatch.setattr(sys, "platform", "linux")
    return Machine(tmp_path)


@pytest.fixture
def mac(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> Machine:
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(fcntl, "F_FULLFSYNC", 51, raising=False)  # Linux refuses it, as some file systems of a Mac do
    machine.program("launchctl", 'case "$*" in print*) echo "  state = running" ;; esac\n')
    return machine


def analyze(scope: str, runtime: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["systemd-analyze", *([scope] if scope else []), "--no-pager", *arguments],
        env=os.environ | {"XDG_RUNTIME_DIR": str(runtime), "LC_ALL": "C.UTF-8"},
        capture_output=True,
        text=True,
        check=False,
    )


def exposure(scope: str, runtime: Path, unit: Path) -> float:
    judged = analyze(scope, runtime, "security", "--offline=true", str(unit))
    found = re.search(r"Overall exposure level for .*: ([\d.]+)", judged.stdout)
    assert found, judged.stderr
    return float(found[1])


def assert_clean(scope: str, runtime: Path, unit: Path) -> None:
    judged = analyze(scope, runtime, "verify", "--man=no", str(unit))
    assert (judged.returncode, judged.stdout, judged.stderr) == (0, "", "")


def rendered(kind: service_manager.Kind, folder: Path, workspace: str, executable: list[str] | None = None) -> Path:
    path = folder / service_manager.TEMPLATES[kind].replace("@", "@tess")
    path.write_text(
        service.render(
            kind,
            executable=executable or [sys.executable, "-I", "-m", "signet_sync"],
            workspace=workspace,
            state="/home/tess/.local/state/signet-sync",
            name="signet-sync",
            environment={"XDG_STATE_HOME": "/home/tess/" + NASTY},
        )
    )
    return path


# ── the shipped units ──


@needs_analyze
@pytest.mark.parametrize(
    ("scope", "file"),
    [("--user", "signet-sync.service"), ("", "signet-sync.service"), ("", "signet-sync@.service")],
)
def test_shipped_units_are_clean_and_hardened(scope: str, file: str, tmp_path: Path) -> None:
    unit = ROOT / "systemd" / file
    assert_clean(scope, tmp_path, unit)
    assert exposure(scope, tmp_path, unit) <= 2.0


@needs_analyze
@pytest.mark.parametrize("file", ["signet-sync.service", "signet-sync@.service"])
def test_documented_drop_ins_are_clean(file: str, tmp_path: Path) -> None:
    shutil.copy(ROOT / "systemd" / file, tmp_path)
    folder = tmp_path / (file + ".d")
    folder.mkdir()
    blocks = re.findall(r"```ini\n(.*?)```", (ROOT / "systemd/README.md").read_text(), re.DOTALL)
    assert len(blocks) >= 3
    for number, block in enumerate(blocks):
        (folder / f"{number}.conf").write_text(block)
    assert_clean("--user", tmp_path, tmp_path / file)


@pytest.mark.parametrize("file", ["signet-sync.service", "signet-sync@.service"])
def test_shipped_units_promise_what_the_agent_needs(file: str) -> None:
    lines = (ROOT / "systemd" / file).read_text().splitlines()
    for wanted in (
        "Type=notify",
        "Restart=on-failure",
        "OOMPolicy=continue",
        "RestartPreventExitStatus=2 4",
        "SuccessExitStatus=75",
        "RestartForceExitStatus=75",
        "ExecReload=/bin/kill -HUP $MAINPID",
        "PrivateNetwork=yes",
        "ProtectHome=tmpfs",
        "ProtectSystem=strict",
    ):
        assert wanted in lines
    for told in ("WatchdogSec=", "RestartSec=", "StartLimitIntervalSec=", "StartLimitBurst="):
        assert any(line.startswith(told) and line != f"{told}0" for line in lines), told


def test_shipped_plist_is_valid() -> None:
    unit = plistlib.loads((ROOT / "launchd/dev.signet-sync.agent.plist").read_bytes())
    assert unit["Label"] == "dev.signet-sync.agent"
    assert unit["ProgramArguments"][-3:] == ["--workspace", "@HOME@/.agents", "run"]
    assert unit["KeepAlive"] == {"SuccessfulExit": False}
    assert unit["ThrottleInterval"] >= 10
    assert unit["Umask"] == 0o077
    assert unit["StandardOutPath"].startswith("@HOME@/Library/Logs/")
    assert unit["StandardErrorPath"]


def test_units_of_an_installed_package_are_found(tmp_path: Path) -> None:
    package = tmp_path / "signet_sync"
    shutil.copytree(ROOT / "signet_sync", package, ignore=shutil.ignore_patterns("__pycache__", "units"))
    (package / "host/units").mkdir()
    (package / "host/units/signet-sync.service").write_text("from the wheel")
    asked = "from signet_sync.host.service_manager import template; print(template('signet-sync.service'))"
    ended = subprocess.run([sys.executable, "-c", asked], cwd=tmp_path, env={}, capture_output=True, text=True)
    assert ended.stdout == "from the wheel\n", ended.stderr


def test_every_unit_is_part_of_the_package() -> None:
    built = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    shipped = {
        path.relative_to(ROOT).as_posix()
        for place in ("systemd/*.service", "launchd/*.plist")
        for path in ROOT.glob(place)
    }
    assert shipped == set(built["force-include"])
    named = {*service_manager.TEMPLATES.values(), *systemd.FAILURE_TEMPLATES.values()}
    assert {f"signet_sync/host/units/{name}" for name in named} == set(built["force-include"].values())


def test_an_unknown_unit_is_told() -> None:
    with pytest.raises(SignetSyncError, match="not part of this installation"):
        service_manager.template("other.service")


# ── names and quoting ──


def test_names_keep_workspaces_apart(tmp_path: Path) -> None:
    default, vault, twin = (tmp_path / place for place in ("agents", "a/Mein Täg-Buch!", "b/Mein Täg-Buch!"))
    names = [service.service_name(str(p), default=str(default)) for p in (default, vault, twin)]
    assert names[0] == "signet-sync"
    assert re.fullmatch(r"signet-sync-mein-t-g-buch-[0-9a-f]{8}", names[1])
    assert len(set(names)) == 3
    assert re.fullmatch(r"signet-sync-workspace-[0-9a-f]{8}", service.service_name("/日本", default="/x"))


def test_a_symlink_is_the_workspace_it_names(tmp_path: Path) -> None:
    (tmp_path / "vault").mkdir()
    (tmp_path / "link").symlink_to("vault")
    assert service.service_name(str(tmp_path / "link"), default=str(tmp_path / "vault")) == "signet-sync"


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
        service.render("launchd", executable=["/bin/x", text], workspace="/w", state="/s", name="signet-sync")


# ── rendering ──


@needs_analyze
@pytest.mark.parametrize("kind", UNIT_KINDS)
@pytest.mark.parametrize("workspace", ["/home/tess/.agents", "/srv/" + NASTY, "/home/tess/ends with \\"])
def test_rendered_units_are_clean_and_hardened(kind: service_manager.Kind, workspace: str, tmp_path: Path) -> None:
    unit = rendered(kind, tmp_path, workspace)
    scope = "--user" if kind == "systemd" else ""
    assert_clean(scope, tmp_path, unit)
    assert exposure(scope, tmp_path, unit) <= 2.0


@needs_analyze
@pytest.mark.parametrize("kind", UNIT_KINDS)
def test_the_unit_that_tells_of_a_failure_is_clean(kind: service_manager.Kind, tmp_path: Path) -> None:
    shipped = systemd.FAILURE_TEMPLATES[kind]
    instance = "signet-sync-notes-0a1b2c3d.service" if kind == "systemd" else "tess"
    unit = tmp_path / shipped.replace("@", f"@{instance}")
    program = tmp_path / NASTY.replace("'", "").replace('"', "").replace("\\", "") / "signet-sync"
    program.parent.mkdir()
    shutil.copy("/bin/true", program)
    unit.write_text(
        systemd.render_failure(kind, executable=[str(program)], environment={"SIGNET_CONFIG": "/home/tess/" + NASTY})
    )
    scope = "--user" if kind == "systemd" else ""
    assert_clean(scope, tmp_path, unit)
    assert_clean(scope, tmp_path, ROOT / "systemd" / shipped)
    assert f"OnFailure={shipped.split('@')[0]}@%" in service_manager.template(service_manager.TEMPLATES[kind])


def test_a_notification_gets_through_the_sandbox_only_where_it_is_wanted() -> None:
    def unit(kind: service_manager.Kind, **more: bool) -> str:
        return service.render(kind, executable=["/usr/bin/x"], workspace="/w", state="/s", name="n", **more)

    assert "BindPaths=-%t/bus\n" in unit("systemd", desktop=True)
    assert "%t/bus" not in unit("systemd")
    assert "%t/bus" not in unit("systemd-system", desktop=True), "a unit of the system has another %t"


@needs_analyze
@pytest.mark.parametrize("folder", ["100% of $HOME {x}: ü – 日本 ;#", "tess's", 'a"b', "a\\x41"])
def test_systemd_starts_a_program_wherever_it_is(folder: str, tmp_path: Path) -> None:
    program = tmp_path / folder / "signet-sync"
    program.parent.mkdir()
    shutil.copy("/bin/true", program)
    unit = rendered("systemd", tmp_path, "/srv/vault", [str(program)])
    assert_clean("--user", tmp_path, unit)
    program.unlink()
    through_a_shell = ":/bin/sh -c" in unit.read_text()
    missed = "not executable" in analyze("--user", tmp_path, "verify", "--man=no", str(unit)).stderr
    assert missed is not through_a_shell


@pytest.mark.parametrize("kind", UNIT_KINDS)
def test_rendering_changes_nothing_else(kind: service_manager.Kind, tmp_path: Path) -> None:
    filled = {"Description", "ExecStartPre", "ExecStart", "Environment", "BindPaths", "BindReadOnlyPaths"}

    def kept(text: str) -> list[str]:
        return [line for line in text.partition("\n\n")[2].splitlines() if line.partition("=")[0] not in filled]

    assert kept(rendered(kind, tmp_path, "/srv/v").read_text()) == kept(
        service_manager.template(service_manager.TEMPLATES[kind])
    )


def test_the_sandbox_shows_workspace_state_settings_and_program(machine: Machine) -> None:
    link = machine.home / "link"
    link.symlink_to(machine.workspace)
    program = Path("/home/ada/tools/bin/signet-sync")
    unit = service.render(
        "systemd",
        executable=[str(program)],
        workspace=str(link),
        state=str(machine.state),
        name="signet-sync",
    )
    assert f"BindPaths=-{machine.workspace}\nBindPaths=-{machine.state}\nBindPaths=-%t/systemd/notify\n" in unit
    assert f"BindReadOnlyPaths=-{machine.home}/.config/signet-sync\n" in unit
    assert f"BindReadOnlyPaths=-{program.parent}\n" in unit
    assert "%h/.agents" not in unit
    assert str(link) not in unit


def test_moved_settings_are_seen_in_the_sandbox() -> None:
    def unit(environment: dict[str, str]) -> str:
        return service.render(
            "systemd",
            executable=["/usr/bin/x"],
            workspace="/w",
            state="/s",
            name="n",
            environment=environment,
        )

    assert "BindReadOnlyPaths=-/cfg/signet-sync\n" in unit({"XDG_CONFIG_HOME": "/cfg"})
    moved = unit({"XDG_CONFIG_HOME": "/cfg", "SIGNET_CONFIG": "/my own.toml"})
    assert 'BindReadOnlyPaths="-/my own.toml"\n' in moved
    assert 'Environment="SIGNET_CONFIG=/my own.toml"\n' in moved


def test_rendered_plist_holds_exact_paths() -> None:
    workspace = "/Users/tess/" + NASTY + "<&>"
    text = service.render(
        "launchd",
        executable=["/opt/x/bin/signet-sync"],
        workspace=workspace,
        state="/s",
        name="signet-sync-notes-0a1b2c3d",
        environment={"SIGNET_CONFIG": "/c.toml"},
    )
    unit = plistlib.loads(text.encode())
    assert unit["Label"] == "dev.signet-sync.agent.notes-0a1b2c3d"
    assert unit["ProgramArguments"] == ["/opt/x/bin/signet-sync", "--workspace", workspace, "run"]
    assert unit["EnvironmentVariables"]["SIGNET_CONFIG"] == "/c.toml"
    assert unit["StandardErrorPath"].endswith("/Library/Logs/signet-sync-notes-0a1b2c3d.log")
    assert "@HOME@" not in text


@pytest.mark.parametrize("executable", [[], ["signet-sync"], ["./signet-sync"]])
def test_the_program_needs_an_absolute_path(executable: list[str]) -> None:
    with pytest.raises(UsageError):
        service.render("systemd", executable=executable, workspace="/w", state="/s", name="signet-sync")


# ── installing with systemd ──


def test_install_writes_enables_and_starts(machine: Machine) -> None:
    machine.program("systemctl", ANSWERS)
    machine.program("loginctl", "echo Linger=no\n")
    done = machine.install()
    unit = machine.units / "signet-sync.service"
    assert (done.kind, done.path, done.running) == ("systemd", str(unit), True)
    told = machine.units / "signet-sync-failed@.service"
    assert done.steps == (
        f"wrote {unit}",
        f"wrote {told}",
        "enabled signet-sync.service",
        "started signet-sync.service",
    )
    assert [call for call in machine.calls() if " show" not in call] == [
        "systemctl --user daemon-reload",
        "systemctl --user enable signet-sync.service",
        "systemctl --user restart signet-sync.service",
    ]
    assert stat.S_IMODE(unit.stat().st_mode) == 0o644
    assert f"Environment=XDG_CONFIG_HOME={machine.home}/cfg\n" in unit.read_text()
    assert sorted(os.listdir(machine.units)) == ["signet-sync-failed@.service", "signet-sync.service"]
    assert "lingering" in done.by_hand[0]
    assert done.by_hand[1].startswith("loginctl enable-linger ")


def test_install_again_says_that_the_unit_is_up_to_date(machine: Machine) -> None:
    machine.program("systemctl", ANSWERS)
    machine.install()
    inode = (machine.units / "signet-sync.service").stat().st_ino
    assert machine.install().steps[0].endswith("is up to date")
    assert (machine.units / "signet-sync.service").stat().st_ino == inode


def test_lingering_is_switched_on_when_wanted(machine: Machine) -> None:
    machine.program("systemctl", ANSWERS)
    machine.program("loginctl", 'case "$*" in show-user*) echo Linger=no ;; esac\n')
    assert service.lingering(machine.environ) is False
    done = machine.install(linger=True)
    assert done.by_hand == ()
    assert any(call.startswith("loginctl enable-linger ") for call in machine.calls())
    machine.program("loginctl", "echo Linger=yes\n")
    assert service.lingering(machine.environ) is True
    assert machine.install().by_hand == ()


def test_lingering_is_unknown_without_logind(machine: Machine) -> None:
    assert service.lingering(machine.environ) is None
    machine.program("loginctl", UNREACHABLE)
    assert service.lingering(machine.environ) is None


def test_a_refused_lingering_is_left_to_the_person(machine: Machine) -> None:
    machine.program("systemctl", ANSWERS)
    machine.program("loginctl", 'echo "Could not enable linger: Access denied" >&2; exit 1\n')
    done = machine.install(linger=True)
    assert done.running
    assert done.by_hand[0] == "# not done: Could not enable linger: Access denied"
    assert done.by_hand[1].startswith("loginctl enable-linger ")


def test_a_workspace_that_is_not_there_yet_is_waited_for(machine: Machine) -> None:
    machine.program("systemctl", ANSWERS)
    later = machine.home / "later"
    done = machine.install(later)
    assert done.steps[-1].endswith(f"it waits for {later}")
    assert any(call.startswith("systemctl --user restart --no-block ") for call in machine.calls())
    assert not later.exists()


def test_refused_user_namespaces_relax_the_sandbox(machine: Machine) -> None:
    machine.program("systemctl", REFUSES_NAMESPACES)
    done = machine.install()
    drop_in = machine.units / "signet-sync.service.d/10-without-user-namespaces.conf"
    assert done.running
    assert any(str(drop_in) in step for step in done.steps)
    assert "PrivateUsers=no\nCapabilityBoundingSet=~\n" in drop_in.read_text()
    gone = service.uninstall(name="signet-sync", environ=machine.environ)
    assert not drop_in.parent.exists()
    assert not gone.by_hand or gone.running


@needs_analyze
def test_the_relaxing_drop_in_is_clean(machine: Machine, tmp_path: Path) -> None:
    machine.program("systemctl", REFUSES_NAMESPACES)
    machine.install()
    assert_clean("--user", tmp_path, machine.units / "signet-sync.service")


def test_another_failure_to_start_is_left_to_the_person(machine: Machine) -> None:
    machine.program("systemctl", 'case "$*" in *restart*) echo "Job failed." >&2; exit 1 ;; esac\n')
    done = machine.install()
    assert not done.running
    assert done.by_hand[:3] == (
        "# not done: Job failed.",
        "systemctl --user status signet-sync.service",
        "journalctl --user -e -u signet-sync.service",
    )
    assert not (machine.units / "signet-sync.service.d").exists()


@pytest.mark.parametrize("systemctl", [None, UNREACHABLE, "broken"])
def test_without_systemd_the_person_is_told_what_to_do(machine: Machine, systemctl: str | None) -> None:
    if systemctl == "broken":
        machine.program("systemctl", "", shebang="#!/nonexistent\n")
    elif systemctl:
        machine.program("systemctl", systemctl)
    done = machine.install()
    assert not done.running
    units = ("signet-sync.service", "signet-sync-failed@.service")
    assert done.steps == tuple(f"wrote {machine.units}/{unit}" for unit in units)
    assert done.by_hand[0].startswith("# not done: ")
    assert done.by_hand[1:3] == (
        "systemctl --user daemon-reload",
        "systemctl --user enable --now signet-sync.service",
    )
    run = f"{sys.executable} -m signet_sync --workspace {machine.workspace} run"
    assert f"nohup {run} >/dev/null 2>&1 &" in done.by_hand
    assert done.by_hand[-1].endswith("| crontab -")
    assert f"@reboot {run}" in done.by_hand[-1]


def test_commands_for_the_person_survive_the_shell(machine: Machine) -> None:
    workspace = machine.home / NASTY
    workspace.mkdir()
    machine.program("crontab", 'case "$1" in -) cat >> "$0.saved" ;; esac\n')
    for line in machine.install(workspace).by_hand:
        if line.endswith("| crontab -"):
            subprocess.run(["sh", "-c", line], env={"PATH": f"{machine.bin}:/usr/bin:/bin"}, check=True)
    saved = (machine.bin / "crontab.saved").read_text()
    command = saved.removeprefix("@reboot ").replace("\\%", "%")
    assert shlex.split(command, comments=False)[-3:] == ["--workspace", str(workspace), "run"]
    assert not re.search(r"(?<!\\)%", saved)


def test_several_workspaces_side_by_side(machine: Machine) -> None:
    machine.program("systemctl", ANSWERS)
    other = machine.home / NASTY
    other.mkdir()
    (machine.home / "cfg/systemd/user").mkdir(parents=True)
    for foreign in ("signet.service", "signet-sync-backup.service", "signet-sync.timer"):
        (machine.units / foreign).write_text("[Service]\nExecStart=/bin/true\n")
    machine.install()
    machine.install(other)
    states = service.installed(machine.environ)
    assert [(state.workspace, state.enabled, state.active) for state in states] == [
        (str(machine.workspace), True, True),
        (str(other), True, True),
    ]
    service.uninstall(name=states[1].name, environ=machine.environ)
    assert [state.name for state in service.installed(machine.environ)] == ["signet-sync"]
    shared = machine.units / "signet-sync-failed@.service"
    assert shared.exists(), "the unit that is left needs it"
    service.uninstall(name="signet-sync", environ=machine.environ)
    assert not shared.exists()


def test_a_unit_that_was_copied_by_hand_is_listed(machine: Machine) -> None:
    machine.units.mkdir(parents=True)
    shutil.copy(ROOT / "systemd/signet-sync.service", machine.units)
    (state,) = service.installed(machine.environ)
    assert (state.name, state.workspace) == ("signet-sync", str(machine.workspace))
    assert (state.enabled, state.active) == (None, None)


def test_waiting_to_be_tried_again_is_not_active(machine: Machine) -> None:
    machine.program(
        "systemctl", "printf 'ActiveState=activating\\nSubState=auto-restart\\nUnitFileState=disabled\\n'\n"
    )
    machine.install()
    (state,) = service.installed(machine.environ)
    assert (state.enabled, state.active) == (False, False)


def test_uninstall_keeps_what_is_not_ours(machine: Machine) -> None:
    machine.program("systemctl", ANSWERS)
    machine.install()
    own = machine.units / "signet-sync.service.d/network.conf"
    own.parent.mkdir()
    own.write_text("[Service]\nPrivateNetwork=no\n")
    machine.log.unlink()
    done = service.uninstall(name="signet-sync", environ=machine.environ)
    assert done.steps == (
        "stopped signet-sync.service",
        f"removed {machine.units}/signet-sync.service",
        f"removed {machine.units}/signet-sync-failed@.service",
    )
    assert machine.calls()[:2] == [
        "systemctl --user disable --now signet-sync.service",
        "systemctl --user daemon-reload",
    ]
    assert own.exists()
    assert machine.workspace.exists()
    again = service.uninstall(name="signet-sync", environ=machine.environ)
    assert (again.path, again.by_hand) == (None, ())


def test_uninstall_without_systemd_removes_the_file(machine: Machine) -> None:
    machine.install()
    done = service.uninstall(name="signet-sync", environ=machine.environ)
    assert not (machine.units / "signet-sync.service").exists()
    assert "systemctl --user disable --now signet-sync.service" in done.by_hand


# ── the system's units ──


def test_a_system_unit_needs_root(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    machine.program("systemctl", ANSWERS)
    machine.environ["SUDO_USER"] = "tess"
    done = machine.install(system=True)
    assert (done.path, done.steps, done.running) == (None, (), False)
    assert machine.calls() == []
    assert "service print --system | sudo tee" in done.by_hand[1]
    assert "service print --system --on-failure | sudo tee" in done.by_hand[2]
    assert done.by_hand[3:] == (
        "sudo systemctl daemon-reload",
        "sudo systemctl enable --now signet-sync@tess.service",
    )
    gone = service.uninstall(name="signet-sync", system=True, environ=machine.environ)
    assert gone.by_hand[0] == "sudo systemctl disable --now signet-sync@tess.service"


def test_a_system_unit_runs_as_the_user_who_called_sudo(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    machine.program("systemctl", ANSWERS)
    machine.environ["SUDO_USER"] = "tess"
    done = machine.install(system=True)
    assert done.path == systemd.SYSTEM_UNITS + "/signet-sync@tess.service"
    assert done.running
    assert "systemctl restart signet-sync@tess.service" in machine.calls()
    text = Path(done.path).read_text()
    assert "User=%i\n" in text
    assert f"ExecStartPre=+:runuser -u %i -- mkdir -p -m 0700 {machine.state}\n" in text
    (state,) = service.installed(machine.environ)
    assert (state.name, state.workspace) == ("signet-sync@tess", str(machine.workspace))
    service.uninstall(name="signet-sync", system=True, environ=machine.environ)
    assert service.installed(machine.environ) == []
    assert os.listdir(systemd.SYSTEM_UNITS) == []


def test_an_instance_of_the_shipped_template_is_listed(machine: Machine) -> None:
    folder = Path(systemd.SYSTEM_UNITS)
    (folder / "multi-user.target.wants").mkdir(parents=True)
    shutil.copy(ROOT / "systemd/signet-sync@.service", folder)
    (folder / "multi-user.target.wants/signet-sync@ann.service").symlink_to("../signet-sync@.service")
    (state,) = service.installed(machine.environ)
    assert (state.name, state.workspace) == ("signet-sync@ann", "/home/ann/.agents")


def test_a_user_name_that_no_unit_can_carry_is_refused(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    machine.environ["SUDO_USER"] = "../evil"
    with pytest.raises(UsageError):
        machine.install(system=True)


# ── launchd ──


def test_launchd_install_list_and_uninstall(mac: Machine) -> None:
    other = mac.home / "notes"
    other.mkdir()
    done = mac.install()
    mac.install(other)
    plist = mac.home / "Library/LaunchAgents/dev.signet-sync.agent.plist"
    assert (done.kind, done.path, done.running, done.by_hand) == ("launchd", str(plist), True, ())
    assert f"launchctl bootstrap gui/{os.getuid()} {plist}" in mac.calls()
    assert plistlib.loads(plist.read_bytes())["RunAtLoad"] is True
    states = service.installed(mac.environ)
    assert [(state.workspace, state.active) for state in states] == [
        (str(mac.workspace), True),
        (str(other), True),
    ]
    for state in states:
        service.uninstall(name=state.name, environ=mac.environ)
    assert service.installed(mac.environ) == []
    assert f"launchctl bootout gui/{os.getuid()}/dev.signet-sync.agent" in mac.calls()


def test_launchd_refusal_is_left_to_the_person(mac: Machine) -> None:
    mac.program("launchctl", 'echo "Bootstrap failed: 125" >&2; exit 125\n')
    done = mac.install()
    assert not done.running
    assert done.by_hand == (
        "# not done: Bootstrap failed: 125",
        f"launchctl bootstrap gui/{os.getuid()} {done.path}",
    )


def test_launchd_has_no_system_unit(mac: Machine) -> None:
    done = mac.install(system=True)
    assert (done.path, done.steps) == (None, ())
    assert done.by_hand[-1].endswith("service install")
