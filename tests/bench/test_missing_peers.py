"""Rows whose peers or other requirements are not there: their notes say how to get them."""

from __future__ import annotations

import shutil
import sys

import pytest

from benchmarks import CASES, linkages, peers, robots, rows_hardware, rows_realtime
from benchmarks.rows import measure_case
from benchmarks.rows_fmu_parts import CASES as FMU_PARTS
from tests.bench.named_rows import TINY, named

IN_BROWSER = [case for case in CASES if case.name in ("first picture", "slider") or case.name.startswith("page ")]
# row -> the package
MISSING = {
    "chain 10": "pinocchio",
    "loops four_bar": "pinocchio",
    "loops four_bar mujoco": "mujoco",
    "fmu tick ur5_sim": "fmpy",
    FMU_PARTS[0].name: "fmpy",
}
ALONE = {
    "forward_dynamics ur5": "pinocchio",
    "inverse_dynamics ur5": "pinocchio",
    "native inverse ur5": "pinocchio",
    "tick ur5_sim rk4": "mujoco",
}


def why_not(name: str) -> str:
    """The note of a row that was not measured."""
    row = measure_case(named(name), TINY)
    assert (row.ours, row.other, row.ratio, row.met, row.runs) == (None, None, None, None, 0)
    return row.note


@pytest.mark.parametrize("name", MISSING)
def test_a_missing_peer_is_reported_in_its_row(name, monkeypatch):
    monkeypatch.setitem(sys.modules, MISSING[name], None)
    assert why_not(name) == f"{MISSING[name]} is not installed: pip install 'cosim[test]'"


@pytest.mark.parametrize("name", ALONE)
def test_our_figure_is_there_without_the_peer(name, monkeypatch):
    monkeypatch.setitem(sys.modules, ALONE[name], None)
    row = measure_case(named(name), TINY)
    assert row.note.startswith(f"{ALONE[name]} is not installed: pip install 'cosim[test]'")
    assert row.ours is not None and row.ours > 0 and row.runs == TINY.pairs
    assert (row.other, row.ratio, row.met) == (None, None, None)


def test_drake_is_installed_beside_the_others(monkeypatch):
    monkeypatch.setitem(sys.modules, "pydrake", None)
    row = measure_case(named("contact drake cube slides"), TINY)
    assert row.note.startswith("pydrake is not installed: pip install --target FOLDER --no-deps drake, and FOLDER in ")
    assert row.ours is not None and (row.other, row.ratio) == (None, None)


@pytest.mark.parametrize("name", ["tick virtual", "tick compiled", "tick serial", "1 kHz", "stop"])
def test_hardware_rows_need_packages(name, monkeypatch):
    def absent(package):
        raise peers.MissingPeer(package)

    monkeypatch.setattr(rows_hardware, "import_peer", absent)
    package = "serial" if "serial" in name else "can"
    assert why_not(f"hardware {name}") == f"{package} is not installed: pip install 'cosim[test]'"


@pytest.mark.parametrize("name", ["native inverse ur5", "exported inverse ur5", FMU_PARTS[0].name])
def test_what_has_to_be_compiled_needs_a_compiler(name, monkeypatch):
    monkeypatch.setenv("CC", "no-such-compiler")
    row = measure_case(named(name), TINY)
    assert row.note == "no C compiler: install gcc or clang, or set CC"
    assert (row.ours is None) is name.startswith("fmu") and row.other is None


def test_a_compiler_that_fails_is_reported(monkeypatch, tmp_path):
    broken = tmp_path / "cc"
    broken.write_text("#!/bin/sh\necho 'disk full' >&2\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("CC", str(broken))
    assert measure_case(named("native inverse ur5"), TINY).note == f"{broken} failed: disk full"


@pytest.mark.parametrize("name", ["batch ur5 native", "loops two_arms", "loops talos"])
def test_missing_robots_are_reported_in_their_rows(name, monkeypatch, tmp_path):
    monkeypatch.setattr(peers.sysconfig, "get_path", lambda name: str(tmp_path))
    for made in (robots.load_robot, linkages.two_arms, linkages.standing):
        made.cache_clear()
    assert why_not(name) == "example-robot-data is not installed: pip install 'cosim[test]'"


@pytest.mark.parametrize("name", [case.name for case in IN_BROWSER if case.unit != "kB"])
def test_without_a_browser_a_row_names_what_is_missing(name, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert why_not(name) == "no browser: install chromium"


@pytest.mark.parametrize("name", [case.name for case in rows_realtime.CASES[:3]])
def test_a_missing_cyclictest_is_reported_in_the_rows(name, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert why_not(name) == "cyclictest is not installed: apt-get install rt-tests"


@pytest.mark.parametrize("name", [case.name for case in rows_realtime.CASES])
def test_where_threads_cannot_be_bound_nothing_is_measured(name, monkeypatch):
    monkeypatch.delattr(rows_realtime.os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(rows_realtime, "_runs", {})
    assert why_not(name) == "real-time runs need Linux"
