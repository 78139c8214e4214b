"""Mistakes in FMUs and in what is given to them: one line with the file, what is wrong, and the fix."""

from __future__ import annotations

import ctypes
import re
import shutil
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from cosim.core.errors import InputError, RunError
from cosim.simulation.fmi import FmuPart
from cosim.simulation.fmi.description import DESCRIPTION
from tests.fmi import fmus
from tests.fmi.fmus import opened
from tests.kit.refusals import raised

pytestmark = fmus.needs_gcc
THEIRS: list[object] = []  # loggers, which live as long as the process


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """The current folder, so that messages have short paths."""
    monkeypatch.chdir(tmp_path)
    return Path()


def archive(name: str, files: Mapping[str, str]) -> Path:
    with zipfile.ZipFile(name, "w") as written:
        for file, text in files.items():
            written.writestr(file, text)
    return Path(name)


def message(*arguments, **options) -> str:
    """The error of an FMU that does not open."""
    error = raised(InputError, opened, *arguments, **options)
    assert error.exit_code == 2
    return str(error)


def start_of(*arguments, inputs=None, **options) -> str:
    """The error of one that does not start."""
    part = opened(*arguments, **options)
    error = raised(InputError, part.start, 0.0, inputs or {})
    part.close()
    return str(error)


def changed(path: Path, name: str, change) -> Path:
    """A copy of an FMU; change: name of a file, data -> data."""
    with zipfile.ZipFile(path) as read, zipfile.ZipFile(name, "w") as written:
        for file in read.namelist():
            written.writestr(file, change(file, read.read(file)))
    return Path(name)


PLATFORM = r"\b(linux64|x86_64-linux|aarch64-linux)\b"


def test_files_that_are_no_fmu(folder, said):
    Path("text.fmu").write_text("no archive")
    for path in ("texd.fmu", "text.fmu", folder, archive("a.fmu", {"readme": ""})):
        said(message(path))
    fixed = 'variability="fixed"'
    unfit = fmus.description("ball", 2).replace(f'"parameter" {fixed} initial="exact"', f'"independent" {fixed}', 1)
    for text in ("<a>\n<b>\n</a>", "<html/>", '<fmiModelDescription fmiVersion="1.0"/>', unfit):
        said(message(archive("b.fmu", {DESCRIPTION: text})))


def test_a_damaged_archive(folder, said):
    path = fmus.build(folder, "ball", 2)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 255
    path.write_bytes(bytes(data))
    said(message(path), PLATFORM)


def test_fmus_that_this_machine_cannot_run(folder, monkeypatch, said):
    said(message(fmus.build(folder, "ball", 2, platform="win64")), PLATFORM)
    said(message(fmus.build(folder, "ball", 3, platform="aarch64-darwin")), PLATFORM)
    said(message(archive("bare.fmu", {DESCRIPTION: fmus.description("ball", 2)})), PLATFORM)
    said(message(fmus.build(folder, "ball", 2, interfaces="")))
    steps = fmus.build(folder, "ball", 2, interfaces="CoSimulation")
    said(message(steps, interface="model exchange"))
    said(message(steps, interface="cosimulation"))
    monkeypatch.setitem(sys.modules, "fmpy", None)
    said(message(steps))


@pytest.mark.parametrize("identifier", ["../../../tmp/other", "a/b", "..", "a\\\\b", "/tmp/other"])
def test_a_binary_outside_the_archive_is_not_loaded(folder, identifier):
    described = re.sub(
        'modelIdentifier="[^"]*"', lambda _: f'modelIdentifier="{identifier}"', fmus.description("ball", 2)
    )
    path = archive("ident.fmu", {DESCRIPTION: described})
    assert f"modelIdentifier is no name of a file: '{identifier}'" in message(path)


def with_sources(*files: str) -> str:
    """The description of an FMU with C sources."""
    listed = "".join(f'<File name="{file}"/>' for file in files)
    within = rf"\1><SourceFiles>{listed}</SourceFiles></CoSimulation>"
    return re.sub(r"(<CoSimulation[^>]*)/>", within, fmus.description("ball", 2))


@pytest.mark.parametrize("file", ["../../other.c", "/tmp/other.c"])
def test_c_sources_outside_the_archive_are_not_compiled(folder, file):
    files = {DESCRIPTION: with_sources(file), "sources/fmi2.c": "int f(void) { return 1; }"}
    assert f"its sources name a file outside the archive: '{file}'" in message(archive("outside.fmu", files))


def test_c_sources_are_compiled_where_there_is_a_compiler(folder, monkeypatch, said):
    described = with_sources("fmi2.c")
    texts = {f"sources/{name}": (fmus.C / name).read_text() for name in ("instance.h", "ball.h", "fmi2.c")}
    texts["sources/fmi2.c"] = f'#define MODEL "ball.h"\n#define GUID "{fmus.GUID}"\n' + texts["sources/fmi2.c"]
    path = archive("sources.fmu", {DESCRIPTION: described, **texts})
    part = opened(path)
    assert part.start(0.0, {})["h"] == 1.0
    part.close()
    wrong = archive("wrong.fmu", {DESCRIPTION: described, "sources/fmi2.c": "int f(void) { return x; }"})
    said(message(wrong), r"(?<=with )(cc|gcc)", r"(?<=error: ).*(?=; export)")
    monkeypatch.setattr(shutil, "which", lambda name: None)
    said(message(path), PLATFORM)


VALUES: dict[str, list[tuple[str, object]]] = {
    "ball2": [
        *(("mass", 1.0), ("e", 0.2), ("e", 1.5), ("e", "x"), ("e", True), ("e", float("nan")), ("e", [1, 2])),
        *(("h", "3 kg"), ("der(h)", 1.0)),
    ],
    "turntable3": [("temperature", -50.0)],
    "passing3": [("Int8_in", 300), ("Int8_in", 1.5), ("UInt8_in", -1), ("mode_in", "onn"), ("switch_in", 1)],
    "linear3": [("n", "x"), ("A", [1, 2, 3]), ("A", [[1, 2], [3]])],
}


@pytest.mark.parametrize("model", VALUES)
def test_values_that_do_not_fit(folder, model, said):
    path = fmus.build(folder, model[:-1], int(model[-1]))
    for name, value in VALUES[model]:
        found = message(path, "arm", {name: value})
        assert found.startswith(f"{path} arm.{name}: ")
        said(found)


def test_signals_that_do_not_exist(folder, said):
    path = fmus.build(folder, "turntable", 2)
    said(message(path, outputs=["angel"]))
    said(message(path, "arm", outputs=["rate"]))
    said(start_of(path, "arm", inputs={"rates": np.zeros(())}))


@pytest.mark.parametrize("version", (2, 3))
def test_a_description_of_another_export(folder, version, said):
    said(start_of(fmus.build(folder, "ball", version, guid="{beef}")))


def test_messages_come_also_after_another_user_of_fmpy_took_its_logger(folder):
    from fmpy.fmi2 import fmi2CallbackFunctions, fmi2CallbackLoggerTYPE
    from fmpy.logging import addLoggerProxy

    theirs = fmi2CallbackFunctions()
    theirs.logger = fmi2CallbackLoggerTYPE(lambda *_: None)
    THEIRS.append(theirs.logger)
    for attempt in range(2):
        part = opened(fmus.build(folder, "ball", 2, guid="{beef}"))
        with pytest.raises(InputError, match="cannot be instantiated: wrong guid"):
            part.start(0.0, {})
        part.close()
        if not attempt:
            addLoggerProxy(ctypes.byref(theirs))


def test_fmus_that_do_not_start(folder, said):
    needs = {b"canGet": b'needsExecutionTool="true" canGet'}
    needs[b'modelName="ball"'] = b'modelName="ball" generationTool="Balls 3"'

    def with_tool(file, data):
        for old, new in needs.items() if file == DESCRIPTION else ():
            data = data.replace(old, new)
        return data

    said(start_of(changed(fmus.build(folder, "ball", 2, guid="{beef}"), "tool.fmu", with_tool)))
    path, here = fmus.build(folder, "ball", 2), Path.cwd()
    broken = changed(path, "other.fmu", lambda file, data: b"no library" if file.endswith(".so") else data)
    said(start_of(broken), PLATFORM, r"(?<=ball\.so\. ).*(?=; export)")
    assert Path.cwd() == here
    said(start_of(fmus.build(folder, "faulty", 2), "arm", {"fault": 7}))


def failure(part: FmuPart, h: float) -> str:
    """The error of its steps."""
    part.start(0.0, {})
    with pytest.raises(RunError) as raised:
        for i in range(9):
            part.step(h * i, h, {})
    part.close()
    assert raised.value.exit_code == 1
    return str(raised.value)


@pytest.mark.parametrize(("fault", "version"), [(1, 2), (2, 3), (3, 2), (6, 3), (8, 2), (1, 3)])
def test_a_step_that_fails_gives_the_time_and_what_the_fmu_logged(folder, version, fault, said):
    said(failure(opened(fmus.build(folder, "faulty", version), "arm", {"fault": fault}), 0.2))


@pytest.mark.parametrize("version", (2, 3))
def test_an_fmu_that_ends_its_simulation(folder, version, said):
    said(failure(opened(fmus.build(folder, "stair", version), "clock", {"last": 2}), 0.5))
