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

from cosim.errors import InputError, RunError
from cosim.fmi.description import DESCRIPTION
from tests.fmi import fmus
from tests.fmi.fmus import opened
from tests.kit.levels import one_of_each

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
    with pytest.raises(InputError) as raised:
        opened(*arguments, **options).close()
    assert raised.value.exit_code == 2
    return str(raised.value)


def test_files_that_are_no_fmu(folder):
    Path("text.fmu").write_text("no archive")
    assert message("texd.fmu") == "texd.fmu: no such file; did you mean 'text.fmu'?"
    assert message("text.fmu") == (
        "text.fmu: no zip archive (File is not a zip file); an FMU is one: export or copy it again"
    )
    assert message(folder) == ".: is a folder; an FMU is a zip archive: name the file, or zip what is in the folder"
    assert message(archive("a.fmu", {"readme": ""})) == (
        "a.fmu: has no modelDescription.xml; an FMU has it at the top of its archive: export it again"
    )
    assert message(archive("b.fmu", {DESCRIPTION: "<a>\n<b>\n</a>"})) == (
        "b.fmu/modelDescription.xml:3: not well-formed XML: mismatched tag, inside <b> of line 2"
    )
    assert message(archive("c.fmu", {DESCRIPTION: "<html/>"})) == (
        "c.fmu: modelDescription.xml has the element <html>, not <fmiModelDescription>"
    )
    old = '<fmiModelDescription fmiVersion="1.0"/>'
    assert message(archive("d.fmu", {DESCRIPTION: old})) == (
        "d.fmu: has FMI version '1.0'; export it for FMI 2.0 or 3.0"
    )
    fixed = 'variability="fixed"'
    unfit = fmus.description("ball", 2).replace(f'"parameter" {fixed} initial="exact"', f'"independent" {fixed}', 1)
    assert message(archive("e.fmu", {DESCRIPTION: unfit})) == (
        'e.fmu: modelDescription.xml does not follow FMI 2.0: Variable "g" (line 20) has an illegal combination of '
        'causality="independent" and variability="fixed"; export the FMU again'
    )


def test_a_damaged_archive(folder):
    path = fmus.build(folder, "ball", 2)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 255
    path.write_bytes(bytes(data))
    assert re.fullmatch(
        r"ball2\.fmu: damaged \(Bad CRC-32 for file 'binaries/\w+/ball\.so'\); export or copy it again",
        message(path),
    )


def test_fmus_that_this_machine_cannot_run(folder, monkeypatch):
    import fmpy

    assert message(fmus.build(folder, "ball", 2, platform="win64")) == (
        f"ball2.fmu: has binaries for win64, not for {fmpy.platform}; export it for {fmpy.platform}"
    )
    here = fmpy.platform_tuple
    assert message(fmus.build(folder, "ball", 3, platform="aarch64-darwin")) == (
        f"ball3.fmu: has binaries for aarch64-darwin, not for {here}; export it for {here}"
    )
    bare = archive("bare.fmu", {DESCRIPTION: fmus.description("ball", 2)})
    here = fmpy.platform
    assert message(bare) == f"bare.fmu: has no binaries, nor sources, for {here}; export it for {here}"
    none = fmus.build(folder, "ball", 2, interfaces="")
    assert message(none) == ("ball2.fmu: offers neither co-simulation nor model exchange; export it for one of them")
    steps = fmus.build(folder, "ball", 2, interfaces="CoSimulation")
    assert message(steps, interface="model exchange") == (
        "ball2.fmu: offers no model exchange; use co-simulation, or export it for model exchange"
    )
    assert message(steps, interface="cosimulation") == (
        "ball2.fmu: there is no interface 'cosimulation'; did you mean 'co-simulation'?"
    )
    monkeypatch.setitem(sys.modules, "fmpy", None)
    assert message(steps) == "FMUs need the package fmpy; install it with `pip install -e '.[fmi]'`"


@pytest.mark.parametrize("identifier", ["../../../tmp/other", "a/b", "..", "a\\\\b", "/tmp/other"])
def test_a_binary_outside_the_archive_is_not_loaded(folder, identifier):
    described = re.sub(
        'modelIdentifier="[^"]*"', lambda _: f'modelIdentifier="{identifier}"', fmus.description("ball", 2)
    )
    path = archive("ident.fmu", {DESCRIPTION: described})
    assert message(path) == (f"ident.fmu: its modelIdentifier is no name of a file: '{identifier}'; export it again")


@pytest.mark.parametrize("file", ["../../other.c", "/tmp/other.c"])
def test_c_sources_outside_the_archive_are_not_compiled(folder, file):
    listed = f'<SourceFiles><File name="{file}"/></SourceFiles></CoSimulation>'
    described = re.sub(r"(<CoSimulation[^>]*)/>", rf"\1>{listed}", fmus.description("ball", 2))
    path = archive("outside.fmu", {DESCRIPTION: described, "sources/fmi2.c": "int f(void) { return 1; }"})
    assert message(path) == f"outside.fmu: its sources name a file outside the archive: '{file}'; export it again"


def test_c_sources_are_compiled_where_there_is_a_compiler(folder, monkeypatch):
    import fmpy

    names = ["instance.h", "ball.h", "fmi2.c"]
    listed = '<SourceFiles><File name="fmi2.c"/></SourceFiles></CoSimulation>'
    described = re.sub(r"(<CoSimulation[^>]*)/>", rf"\1>{listed}", fmus.description("ball", 2))
    defines = f'#define MODEL "ball.h"\n#define GUID "{fmus.GUID}"\n'
    texts = {f"sources/{name}": (fmus.C / name).read_text() for name in names}
    texts["sources/fmi2.c"] = defines + texts["sources/fmi2.c"]
    path = archive("sources.fmu", {DESCRIPTION: described, **texts})
    part = opened(path)
    assert part.start(0.0, {})["h"] == 1.0
    part.close()
    archive("wrong.fmu", {DESCRIPTION: described, "sources/fmi2.c": "int f(void) { return x; }"})
    compiler = "cc" if shutil.which("cc") else "gcc"
    assert re.fullmatch(
        rf"wrong\.fmu: its C sources do not compile with {compiler}: sources/fmi2\.c:1:22: error: .x. undeclared .*; "
        r"export it with binaries",
        message("wrong.fmu"),
    )
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert message(path) == (
        "sources.fmu: has C sources only, and this machine has no C compiler; install gcc, clang, "
        f"or export the FMU with binaries for {fmpy.platform}"
    )


@pytest.mark.parametrize(
    ("model", "name", "value", "expected"),
    [
        ("ball2", "mass", 1.0, "arm.mass: there is no such parameter; known: h, v, g, e"),
        ("ball2", "e", 0.2, "arm.e: 0.2 is below the minimum 0.5; use a value >= 0.5"),
        ("ball2", "e", 1.5, "arm.e: 1.5 is above the maximum 1; use a value <= 1"),
        ("ball2", "e", "x", "arm.e: expected a number, got 'x'"),
        ("ball2", "e", True, "arm.e: expected a number, got True"),
        ("ball2", "e", float("nan"), "arm.e: expected a finite number, got nan"),
        ("ball2", "e", [1, 2], "arm.e: expected one number, got [1, 2]"),
        ("ball2", "h", "3 kg", "arm.h: unit 'kg' does not fit it; use m, cm, mm, um"),
        (
            "ball2",
            "der(h)",
            1.0,
            "arm.der(h): cannot be set: it is a local of variability continuous; known: h, v, g, e",
        ),
        (
            "turntable3",
            "temperature",
            -50.0,
            "arm.temperature: -50 degC is below the minimum -40 degC; use a value >= -40 degC",
        ),
        ("passing3", "Int8_in", 300, "arm.Int8_in: 300 is above the maximum 127; use a value <= 127"),
        ("passing3", "Int8_in", 1.5, "arm.Int8_in: expected a whole number, got 1.5"),
        ("passing3", "UInt8_in", -1, "arm.UInt8_in: -1 is below the minimum 0; use a value >= 0"),
        ("passing3", "mode_in", "onn", "arm.mode_in: there is no item 'onn'; did you mean 'on'?"),
        ("passing3", "switch_in", 1, "arm.switch_in: expected true or false, got 1"),
        ("linear3", "n", "x", "arm.n: expected a whole number, got 'x'"),
        ("linear3", "A", [1, 2, 3], "arm.A: expected an array (2, 2), got [1, 2, 3]"),
        ("linear3", "A", [[1, 2], [3]], "arm.A: expected an array (2, 2), got [[1, 2], [3]]"),
    ],
)
def test_values_that_do_not_fit(folder, model, name, value, expected):
    path = fmus.build(folder, model[:-1], int(model[-1]))
    assert message(path, "arm", {name: value}) == f"{path} {expected}"


def test_signals_that_do_not_exist(folder):
    path = fmus.build(folder, "turntable", 2)
    assert message(path, outputs=["angel"]) == (
        "turntable2.fmu turntable2: there is no output 'angel'; did you mean 'angle'?"
    )
    assert message(path, "arm", outputs=["rate"]) == (
        "turntable2.fmu arm.rate: is an input, no output; known: angle, der(angle), double"
    )
    part = opened(path, "arm")
    with pytest.raises(InputError) as raised:
        part.start(0.0, {"rates": np.zeros(())})
    part.close()
    assert str(raised.value) == "turntable2.fmu arm: there is no input 'rates'; did you mean 'rate'?"


@pytest.mark.parametrize(("version", "token"), ((2, "guid"), (3, "instantiationToken")))
def test_a_description_of_another_export(folder, version, token):
    part = opened(fmus.build(folder, "ball", version, guid="{beef}"))
    with pytest.raises(InputError) as raised:
        part.start(0.0, {})
    part.close()
    assert str(raised.value) == (
        f"ball{version}.fmu ball{version}: cannot be instantiated: wrong {token[:4] if version == 2 else 'token'}; "
        f"modelDescription.xml ({token} '{{beef}}') and the binary must be of the same export"
    )


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


def test_an_fmu_that_needs_its_tool(folder):
    path = fmus.build(folder, "ball", 2, guid="{beef}")
    with zipfile.ZipFile(path) as read, zipfile.ZipFile("tool.fmu", "w") as written:
        for name in read.namelist():
            data = read.read(name)
            if name == DESCRIPTION:
                data = data.replace(b"canGet", b'needsExecutionTool="true" canGet')
                data = data.replace(b'modelName="ball"', b'modelName="ball" generationTool="Balls 3"')
            written.writestr(name, data)
    part = opened("tool.fmu")
    with pytest.raises(InputError) as raised:
        part.start(0.0, {})
    part.close()
    assert str(raised.value) == (
        "tool.fmu tool: cannot be instantiated: wrong guid; it needs Balls 3 to run: install that, or export the FMU "
        "with binaries that run alone"
    )


def test_a_binary_without_the_functions_of_fmi(folder):
    path = fmus.build(folder, "ball", 2)
    with zipfile.ZipFile(path) as read, zipfile.ZipFile("other.fmu", "w") as written:
        for name in read.namelist():
            written.writestr(name, "no library" if name.endswith(".so") else read.read(name))
    here = Path.cwd()
    part = opened("other.fmu")
    with pytest.raises(InputError) as raised:
        part.start(0.0, {})
    part.close()
    assert Path.cwd() == here
    assert re.fullmatch(
        r"other\.fmu other: its shared library does not load: Failed to load shared library binaries/\w+/ball\.so\. "
        r".*(file too short|invalid ELF header); export the FMU again",
        str(raised.value),
    )


FAULTS = {
    1: "{do} failed at t = 0.4 s with 'discard': the FMU gives no reason; use a shorter step",
    2: "{do} failed at t = 0.4 s with 'error': division by zero in 'torque'; "
    "check its inputs and parameters, or use a shorter step",
    3: "{do} failed at t = 0.4 s with 'fatal': the FMU gives no reason; "
    "check its inputs and parameters, or report it to who exported it",
    6: "its output 'y' is nan at t = 0.6 s; check its inputs and parameters, or use a shorter step",
    8: "{do} failed at t = 0.4 s with 'pending': the FMU gives no reason; export it without asynchronous steps",
}


@one_of_each
@pytest.mark.parametrize("version", (2, 3))
@pytest.mark.parametrize("fault", FAULTS)
def test_a_step_that_fails_gives_the_time_and_what_the_fmu_logged(folder, version, fault):
    part = opened(fmus.build(folder, "faulty", version), "arm", {"fault": fault})
    part.start(0.0, {})
    with pytest.raises(RunError) as raised:
        for i in range(5):
            part.step(0.2 * i, 0.2, {})
    part.close()
    assert str(raised.value) == f"faulty{version}.fmu arm: " + FAULTS[fault].format(do=f"fmi{version}DoStep")
    assert raised.value.exit_code == 1


def test_an_initialisation_that_fails(folder):
    part = opened(fmus.build(folder, "faulty", 2), "arm", {"fault": 7})
    with pytest.raises(InputError) as raised:
        part.start(0.0, {})
    part.close()
    assert str(raised.value) == (
        "faulty2.fmu arm: does not start: fmi2ExitInitializationMode failed at t = 0 s with 'error': "
        "no solution of the initial equations; check its inputs and parameters, or use a shorter step"
    )


@pytest.mark.parametrize(("version", "reached"), ((2, 1.5), (3, 2)))
def test_an_fmu_that_ends_its_simulation(folder, version, reached):
    part = opened(fmus.build(folder, "stair", version), "clock", {"last": 2})
    part.start(0.0, {})
    with pytest.raises(RunError) as raised:
        for i in range(9):
            part.step(0.5 * i, 0.5, {})
    part.close()
    assert str(raised.value) == (
        f"stair{version}.fmu clock: ends its simulation at t = {reached} s: the FMU gives no reason; "
        "end the run before, or check its inputs"
    )
