"""A run directory from a stranger: nothing in it is executed, whichever command reads it."""

import json
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from shutil import copytree

import pytest

from tests.command_line import call
from tests.resumable import STOPPED, Kill, Killer, only
from tests.sweep.results.stored import paper_module
from vefl_sim import Run, resume, simulate, with_settings
from vefl_sim.cli.main import main
from vefl_sim.core.errors import ExperimentError
from vefl_sim.experiment.kinds import FAMILIES
from vefl_sim.experiment.toml import as_toml, load_resolved, to_toml, validated
from vefl_sim.records.identity import Identity
from vefl_sim.sweep.points import load_sweep
from vefl_sim.sweep.results.store import Store

KEYS = [*(key for key in FAMILIES if key != "data.partition"), "model.factory"]
SHORT = with_settings(STOPPED, "run.rounds=3", "learning.kind=none", "scheme.selected=3")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    """A finished run, and one that was stopped after a checkpoint."""
    folder = tmp_path_factory.mktemp("honest")
    with pytest.raises(Kill):
        simulate(SHORT, out=folder / "stopped", watcher=Killer(3))
    return {"done": simulate(SHORT, out=folder / "done"), "stopped": only(folder / "stopped")}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current directory, which is also on the path, as under `python -m`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    for name in [
        name for name in sys.modules if name.partition(".")[0] in ("runs", "evil", "linked", "mine", "lying_around")
    ]:
        del sys.modules[name]


def bomb(folder: Path, *files: str) -> Callable[[], bool]:
    """Write modules that leave a file behind when they are executed; returns whether one was."""
    mark = folder.parents[1] / "executed"
    for file in files:
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(f"open({str(mark)!r}, 'w')\nx = lambda *_: None\n")
    return mark.exists


def hostile(run: Run, here: Path, part: str, *keys: str) -> Path:
    """A copy of a run in ./runs that names a part for some keys, with digests that fit, as a stranger would make it."""
    path = copytree(run.path, here / "runs" / "evilrun")
    tables = load_resolved(path / "resolved.toml").model_dump(exclude_none=True)
    for table, _, name in (key.partition(".") for key in keys):
        tables[table] = tables[table] | {name: part}
    experiment = validated(tables)
    (path / "resolved.toml").write_text(as_toml(experiment))
    versions = json.loads((path / "versions.json").read_text())
    versions["parts"] = {part: "0" * 16, **versions["parts"]}
    versions["configuration"] = Identity.recorded(experiment, versions["parts"]).configuration
    (path / "versions.json").write_text(json.dumps(versions))
    return path


def command(*arguments: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main([*arguments])
    assert ended.value.code in (0, 1, 2)


PACKAGES = ("evil.py", "__init__.py", "../__init__.py")
"""The module of a part and the packages above it, which Python executes before it."""


@pytest.mark.parametrize("state", ["stopped", "done"])
def test_no_command_executes_a_part_of_a_run(state: str, runs: dict[str, Run], here: Path) -> None:
    path = hostile(runs[state], here, "runs.evilrun.evil:x", *KEYS)
    executed = bomb(path, *PACKAGES)
    for arguments in (["runs", "runs"], ["verify", "runs/evilrun"], ["trace", "evilrun"], ["resume", "runs/evilrun"]):
        command(*arguments)
    command("report", "evilrun")
    command("trace", "evilrun", "--why", "--cv", "1", "--round", "1")
    command("trace", "evilrun", "--perfetto")
    assert (path / "timeline.perfetto-trace").stat().st_size
    command("runs/evilrun/resolved.toml", "--dry-run")
    assert not executed()


@pytest.mark.parametrize("state", ["stopped", "done"])
def test_a_run_that_names_code_which_lies_around_does_not_execute_it(
    state: str, runs: dict[str, Run], here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The module is where Python finds it; the run was not started with its source."""
    hostile(runs[state], here, "lying_around:x", *KEYS)
    executed = bomb(here / "runs" / "evilrun", "../../lying_around.py")
    for arguments in (["verify", "evilrun"], ["resume", "evilrun"], ["evaluate", "evilrun"], ["report", "evilrun"]):
        command(*arguments)
        assert not executed(), arguments
    assert "cannot be resumed" in capsys.readouterr().err or state == "done"


@pytest.mark.parametrize("key", KEYS)
def test_no_part_of_a_run_is_resumed(
    key: str, runs: dict[str, Run], here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    executed = bomb(hostile(runs["stopped"], here, "runs.evilrun.evil:x", key), *PACKAGES)
    command("resume", "runs/evilrun")
    sentence = capsys.readouterr().err.splitlines()[-1]
    assert f'{key} = "runs.evilrun.evil:x"' in sentence
    assert "no code is loaded from a run" in sentence
    assert not executed()


def test_verify_says_what_it_did_not_compare(
    runs: dict[str, Run], here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hostile(runs["done"], here, "no_such_module:x", "mac.scheduler")
    command("verify", "evilrun")
    printed = capsys.readouterr().out
    assert "the part was not compared: mac.scheduler" in printed
    assert "there is no module 'no_such_module'" in printed
    assert "WRONG" not in printed
    assert "C1–C6           ok" in printed


def test_verify_reads_no_device_that_never_ends(
    runs: dict[str, Run], here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = copytree(runs["done"].path, here / "runs" / "evilrun")
    (here / "endless.xml").symlink_to("/dev/zero")
    toml = path / "resolved.toml"
    toml.write_text(toml.read_text().replace('file = ""', 'file = "endless.xml"'))
    command("verify", "evilrun")
    assert "not checked: endless.xml cannot be read: it is not a file" in capsys.readouterr().out


def test_figures_and_stored_results_execute_no_part_of_a_run(
    runs: dict[str, Run], here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "sweep.toml").write_text(to_toml(SHORT) + '\n[sweep]\nradio.prbs = [4]\n[figure]\nkind = "cost"\n')
    [point] = load_sweep(here / "sweep.toml").points
    path = hostile(runs["done"], here, "runs.evilrun.evil:x", "scheme.kind")
    executed, lines = bomb(path, *PACKAGES), list[str]()
    collector = paper_module("collector")
    assert collector.add_runs(Store(here / "results"), collector.runs_in([path]), [point], lines.append) == 0
    assert "it belongs to none of the points" in lines[0]
    versions = json.loads((path / "versions.json").read_text()) | {"configuration": point.digest}
    (path / "versions.json").write_text(json.dumps(versions))  # so that it is taken for the run of the point
    path.rename(path.with_name(point.identity.directory))
    command("figure", "sweep.toml")
    assert "error" not in capsys.readouterr().err
    assert [*here.rglob("*.csv")]
    assert not executed()


def symbolic_link(run: Path, here: Path) -> str:
    (here / "linked.py").symlink_to(run / "evil.py")
    return "linked"


def linked_folder(run: Path, here: Path) -> str:
    (here / "linked").symlink_to(run)
    return "linked.evil"


def folder_on_the_path(run: Path, here: Path) -> str:
    sys.path.insert(0, str(run / "deep"))
    return "evil"


def archive_on_the_path(run: Path, here: Path) -> str:
    with zipfile.ZipFile(run / "code.zip", "w") as archive:
        archive.write(run / "evil.py", "evil.py")
    sys.path.insert(0, str(run / "code.zip"))
    return "evil"


def compiled_module(run: Path, here: Path) -> str:
    import py_compile

    py_compile.compile(str(run / "evil.py"), str(run / "compiled.pyc"))
    sys.path.insert(0, str(run))
    return "compiled"


def extension_module(run: Path, here: Path) -> str:
    (run / "extension.so").write_bytes(b"\x7fELF")
    sys.path.insert(0, str(run))
    return "extension"


def link_out_of_the_run(run: Path, here: Path) -> str:
    (here / "mine.py").write_text((run / "evil.py").read_text())
    (run / "link.py").symlink_to(here / "mine.py")
    return "runs.evilrun.link"


def marked_by_versions_alone(run: Path, here: Path) -> str:
    bomb(run.parent / "other", "evil.py")
    (run.parent / "other" / "versions.json").write_text("{}")
    return "runs.other.evil"


WAYS = [
    symbolic_link, linked_folder, folder_on_the_path, archive_on_the_path, compiled_module, extension_module,
    link_out_of_the_run, marked_by_versions_alone,
]  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
def test_no_way_leads_into_a_run(way: Callable[[Path, Path], str], runs: dict[str, Run], here: Path) -> None:
    path = copytree(runs["stopped"].path, here / "runs" / "evilrun")
    executed = bomb(path, "evil.py", "deep/evil.py")
    with pytest.raises(ExperimentError, match="no code is loaded from a run"):
        with_settings(SHORT, f"scheme.kind={way(path, here)}:x")
    assert not executed()


@pytest.mark.slow
def test_parts_are_searched_in_the_given_folder(
    here: Path, tmp_path_factory: pytest.TempPathFactory, capsys: pytest.CaptureFixture[str]
) -> None:
    source = "from vefl_sim.optimize.rat.edf import edf\n\ndef mine(backlog, limit):\n    return edf(backlog, limit)\n"
    (here / "mine.py").write_text(source)
    with pytest.raises(Kill):
        simulate(with_settings(SHORT, "mac.scheduler=mine:mine"), out=here / "runs", watcher=Killer(3))
    run = only(here / "runs")
    own = tmp_path_factory.mktemp("own")
    (here / "mine.py").rename(own / "mine.py")
    bomb(here / "a" / "b", "mine.py")
    (here / "a" / "b" / "mine.py").rename(here / "mine.py")
    del sys.modules["mine"]
    command("resume", str(run.path), "--parts", str(own / "missing"))
    assert "is not a folder" in capsys.readouterr().err
    command("resume", str(run.path), "--parts", str(own))
    assert f'# mac.scheduler = "mine:mine" would be loaded from {own / "mine.py"}' in capsys.readouterr().err
    assert run.is_done
    assert resume(run, parts=own).is_done
    assert not (here / "executed").exists()
    assert str(own) not in sys.path


@pytest.mark.slow
def test_the_current_directory_is_left_if_it_is_a_run_or_holds_runs(runs: dict[str, Run], here: Path) -> None:
    """`python -m` searches it before the standard library."""
    path = copytree(runs["done"].path, here / "runs" / "evilrun")
    names = ("typing.py", "random.py", "json.py", "typer.py")
    executed = bomb(path, *names, "tables/typing.py", "tables/random.py", *(f"../{name}" for name in names))
    for folder in (path, path / "tables", path.parent):
        process = subprocess.run(
            [sys.executable, "-m", "vefl_sim", "verify", str(path)], cwd=folder, capture_output=True, text=True
        )
        assert "made by this version of vefl_sim" in process.stdout, process.stderr
        assert not executed()


def test_names_of_runs_do_not_act_on_the_terminal(tmp_path: Path) -> None:
    (tmp_path / "\x1b[2Jgone").mkdir()
    (tmp_path / "\x1b[2Jgone" / "resolved.toml").write_text("")
    shown = call("runs", tmp_path).stdout
    assert "\\x1b[2Jgone" in shown
    assert "\x1b" not in shown
