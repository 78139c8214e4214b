"""FMUs of the tests: C models of `tests/fmi/c` as FMI 2.0 and 3.0, built with gcc."""

from __future__ import annotations

import shutil
import subprocess
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any
from xml.sax.saxutils import quoteattr

import pytest

from cosim.simulation.fmi import FmuPart

GCC = shutil.which("gcc") or ""
needs_gcc = pytest.mark.skipif(not GCC, reason="no gcc: the FMUs of the tests are not compiled")
C = Path(__file__).parent / "c"
GUID = "{c0ffee}"
UNITS = """<UnitDefinitions>
<Unit name="deg"><BaseUnit rad="1" factor="0.017453292519943295"/></Unit>
<Unit name="deg/s"><BaseUnit rad="1" s="-1" factor="0.017453292519943295"/></Unit>
<Unit name="degC"><BaseUnit K="1" offset="273.15"/></Unit>
<Unit name="N.m"><BaseUnit kg="1" m="2" s="-2"/></Unit>
<Unit name="m"><BaseUnit m="1"/></Unit>
<Unit name="furlong/s"><BaseUnit m="1" s="-1" factor="201.168"/></Unit>
</UnitDefinitions>"""
ITEMS = '<Item name="off" value="0"/><Item name="on" value="1"/>'
MODES = {
    2: f'<SimpleType name="Mode"><Enumeration>{ITEMS}</Enumeration></SimpleType>',
    3: f'<EnumerationType name="Mode">{ITEMS}</EnumerationType>',
}

TIME = '<Float64 name="time" valueReference="999" causality="independent" variability="continuous"/>'


@dataclass(frozen=True)
class Declared:
    """A variable; type: of FMI 3 (`Float64`, …); more: further attributes of its type."""

    name: str
    type: str
    reference: int
    causality: str
    variability: str = ""
    initial: str = ""
    start: str = ""
    more: str = ""
    dimensions: str = ""


@dataclass(frozen=True)
class Declaration:
    """The variables of a model and its structure. derivatives, outputs, indicators: names, of outputs with the
    names that they depend on, or None for undeclared dependencies."""

    variables: Sequence[Declared]
    derivatives: Sequence[str] = ()
    outputs: Mapping[str, Sequence[str] | None] = field(default_factory=dict)
    indicators: Sequence[str] = ()
    versions: str = "23"


def _real(name: str, reference: int, causality: str, *rest: str) -> Declared:
    return Declared(name, "Float64", reference, causality, *rest)


MODELS: dict[str, Declaration] = {
    "ball": Declaration(
        [
            _real("h", 0, "output", "continuous", "exact", "1", 'unit="m"'),
            _real("v", 1, "output", "continuous", "exact", "0"),
            _real("der(h)", 2, "local", "continuous", "calculated", "", 'derivative="{h}"'),
            _real("der(v)", 3, "local", "continuous", "calculated", "", 'derivative="{v}"'),
            _real("g", 4, "parameter", "fixed", "exact", "9.81"),
            _real("e", 5, "parameter", "tunable", "exact", "0.7", 'min="0.5" max="1"'),
        ],
        ["der(h)", "der(v)"],
        {"h": [], "v": []},
        indicators=["h"],
    ),
    "oscillator": Declaration(
        [
            _real("x0", 0, "output", "continuous", "exact", "2"),
            _real("x1", 1, "output", "continuous", "exact", "0"),
            _real("der(x0)", 2, "local", "continuous", "calculated", "", 'derivative="{x0}"'),
            _real("der(x1)", 3, "local", "continuous", "calculated", "", 'derivative="{x1}"'),
            _real("mu", 4, "parameter", "fixed", "exact", "1"),
            _real("u", 5, "input", "continuous", "", "0"),
        ],
        ["der(x0)", "der(x1)"],
        {"x0": [], "x1": []},
    ),
    "turntable": Declaration(
        [
            _real("angle", 0, "output", "continuous", "exact", "0", 'unit="deg"'),
            _real("der(angle)", 1, "local", "continuous", "calculated", "", 'unit="deg/s" derivative="{angle}"'),
            _real("rate", 2, "input", "continuous", "", "0", 'unit="deg/s"'),
            _real("double", 3, "output", "continuous", "calculated", "", 'unit="furlong/s"'),
            _real("temperature", 4, "parameter", "fixed", "exact", "20", 'unit="degC" min="-40"'),
        ],
        ["der(angle)"],
        {"angle": [], "double": ["rate"]},
    ),
    "spring": Declaration(
        [
            _real("twist", 0, "output", "continuous", "exact", "0", 'unit="deg"'),
            _real("der(twist)", 1, "local", "continuous", "calculated", "", 'unit="deg/s" derivative="{twist}"'),
            _real("speed", 2, "input", "continuous", "", "0", 'unit="deg/s"'),
            _real("torque", 3, "output", "continuous", "calculated", "", 'unit="N.m"'),
            _real("stiffness", 4, "parameter", "fixed", "exact", "20"),
        ],
        ["der(twist)"],
        {"twist": [], "torque": []},
    ),
    "passing": Declaration(
        [
            _real("real_in", 0, "input", "continuous", "", "0"),
            _real("real_out", 1, "output", "continuous", "calculated"),
            Declared("single_in", "Float32", 4, "input", "continuous", "", "0"),
            Declared("single_out", "Float32", 5, "output", "continuous", "calculated"),
            _real("sampled_in", 2, "input", "discrete", "", "0"),
            _real("sampled_out", 3, "output", "discrete", "calculated"),
            *(
                Declared(f"{kind}_{way}", kind, 2 * n + (way == "out"), f"{way}put", "discrete", *rest)
                for n, kind in enumerate(("Int8", "UInt8", "Int16", "UInt16", "Int32", "UInt32", "Int64", "UInt64"))
                for way, rest in (("in", ("", "0")), ("out", ("calculated",)))
            ),
            Declared("mode_in", "Enumeration", 16, "input", "discrete", "", "1", 'declaredType="Mode"'),
            Declared("mode_out", "Enumeration", 17, "output", "discrete", "calculated", "", 'declaredType="Mode"'),
            Declared("switch_in", "Boolean", 0, "input", "discrete", "", "false"),
            Declared("switch_out", "Boolean", 1, "output", "discrete", "calculated"),
        ],
        outputs={"real_out": ["real_in"], "mode_out": None},
    ),
    "stair": Declaration(
        [
            Declared("counter", "Int32", 0, "output", "discrete", "exact", "1"),
            Declared("last", "Int32", 1, "parameter", "fixed", "exact", "9", 'max="20"'),
        ],
        outputs={"counter": []},
    ),
    "linear": Declaration(
        [
            Declared("n", "UInt64", 0, "structuralParameter", "fixed", "exact", "2", 'max="4"'),
            _real("x", 0, "local", "continuous", "exact", "1 0", "", "n"),
            _real("der(x)", 4, "local", "continuous", "calculated", "", 'derivative="0"', "n"),
            _real("u", 8, "input", "continuous", "", "0 0", "", "n"),
            _real("y", 12, "output", "continuous", "calculated", "", 'unit="N.m"', "n"),
            _real("A", 16, "parameter", "fixed", "exact", "0 1 -1 0", "", "n n"),
            _real("B", 32, "parameter", "fixed", "exact", "1 0 0 1", "", "n n"),
        ],
        ["der(x)"],
        {"y": []},
        versions="3",
    ),
    "faulty": Declaration(
        [
            _real("y", 0, "output", "continuous", "calculated"),
            _real("when", 1, "parameter", "fixed", "exact", "0.5"),
            Declared("fault", "Int32", 0, "parameter", "fixed", "exact", "0"),
        ],
        outputs={"y": []},
    ),
}
ATTRIBUTES = {2: 'canGetAndSetFMUstate="true"', 3: 'canGetAndSetFMUState="true"'}
CO_SIMULATION = {
    2: 'canHandleVariableCommunicationStepSize="true" canInterpolateInputs="true"',
    3: 'canHandleVariableCommunicationStepSize="true" hasEventMode="true" canReturnEarlyAfterIntermediateUpdate="true"',
}
KINDS2 = {"Float64": "Real", "Int32": "Integer", "Boolean": "Boolean", "Enumeration": "Enumeration"}


def description(
    model: str, version: int, guid: str = GUID, interfaces: str = "ModelExchange CoSimulation", capable: bool = True
) -> str:
    """The model description of a model; not capable: without optional capabilities."""
    declaration = MODELS[model]
    kept = [v for v in declaration.variables if version == 3 or (v.type in KINDS2 and not v.name.startswith("sampled"))]
    index = {v.name: str(n) for n, v in enumerate(kept, 1)}
    keys = index if version == 2 else {v.name: str(_reference3(v)) for v in kept}
    token = "guid" if version == 2 else "instantiationToken"
    events = f' numberOfEventIndicators="{len(declaration.indicators)}"' if version == 2 else ""
    head = f'<fmiModelDescription fmiVersion="{version}.0" modelName="{model}" {token}="{guid}"{events}>'
    able = ATTRIBUTES[version] if capable else ""
    offered = [
        f'<{kind} modelIdentifier="{model}" {able} {CO_SIMULATION[version] if capable and kind[0] == "C" else ""}/>'
        for kind in interfaces.split()
    ]
    types = f"<TypeDefinitions>{MODES[version]}</TypeDefinitions>"
    variables = [_variable(v, version, keys) for v in kept] + ([TIME] if version == 3 else [])
    structure = _structure(declaration, version, keys)
    experiment = '<DefaultExperiment startTime="0" stopTime="1"/>'
    body = [*offered, UNITS, types, experiment, "<ModelVariables>", *variables, "</ModelVariables>", structure]
    return "\n".join(['<?xml version="1.0" encoding="UTF-8"?>', head, *body, "</fmiModelDescription>"])


def _reference3(v: Declared) -> int:
    """FMI 3 has one numbering for all types: integers from 100 on, booleans from 200 on."""
    return v.reference + (0 if v.type.startswith("Float") else 200 if v.type == "Boolean" else 100)


def _variable(v: Declared, version: int, keys: Mapping[str, str]) -> str:
    reference = v.reference if version == 2 else _reference3(v)
    shared = f'name={quoteattr(v.name)} valueReference="{reference}" causality="{v.causality}"'
    shared += "".join(f' {k}="{x}"' for k, x in (("variability", v.variability), ("initial", v.initial)) if x)
    more = v.more.format(**keys) + (f' start="{v.start}"' if v.start else "")
    if version == 2:
        return f"<ScalarVariable {shared}><{KINDS2[v.type]} {more}/></ScalarVariable>"
    inside = "".join(f'<Dimension valueReference="{keys[n]}"/>' for n in v.dimensions.split())
    return f"<{v.type} {shared} {more}>{inside}</{v.type}>"


def _structure(declaration: Declaration, version: int, keys: Mapping[str, str]) -> str:
    name = "index" if version == 2 else "valueReference"

    def unknown(tag: str, variable: str, needs: Sequence[str] | None) -> str:
        depends = "" if needs is None else f' dependencies="{" ".join(keys[n] for n in needs)}"'
        return f'<{tag} {name}="{keys[variable]}"{depends}/>'

    outputs = {n: needs for n, needs in declaration.outputs.items() if n in keys}
    if version == 3:
        rows = [unknown("Output", n, needs) for n, needs in outputs.items()]
        rows += [unknown("ContinuousStateDerivative", n, None) for n in declaration.derivatives]
        rows += [unknown("EventIndicator", n, None) for n in declaration.indicators]
        return f"<ModelStructure>{''.join(rows)}</ModelStructure>"
    rows = ["<Outputs>", *(unknown("Unknown", n, needs) for n, needs in outputs.items()), "</Outputs>"]
    if declaration.derivatives:
        rows += ["<Derivatives>", *(unknown("Unknown", n, None) for n in declaration.derivatives), "</Derivatives>"]
    return f"<ModelStructure>{''.join(rows)}</ModelStructure>"


def defined(model: str) -> list[str]:
    """What the compiler has to know of a model."""
    return [f'-DMODEL="{model}.h"', f'-DGUID="{GUID}"']


@cache
def library(model: str, version: int) -> Path:
    """The shared library of a model."""
    import fmpy

    target = Path(mkdtemp()) / f"{model}.so"
    headers = Path(fmpy.__file__).parent / "c-code"
    command = [GCC, "-shared", "-fPIC", "-O1", "-w", *defined(model), f"-I{headers}", f"-I{C}"]
    subprocess.run([*command, str(C / f"fmi{version}.c"), "-o", str(target), "-lm"], check=True)
    return target


def opened(*arguments: Any, **options: Any) -> FmuPart:
    """An FMU in the process of the test."""
    return FmuPart(*arguments, **options, process=False)


def build(folder: Path, model: str, version: int, platform: str = "", **options: object) -> Path:
    """An FMU of a model in a folder. platform: of the binary, this machine's if empty; options: of
    `description`."""
    import fmpy

    path = folder / f"{model}{version}.fmu"
    here = platform or (fmpy.platform if version == 2 else fmpy.platform_tuple)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("modelDescription.xml", description(model, version, **options))  # type: ignore[arg-type]
        archive.write(library(model, version), f"binaries/{here}/{model}.so")
    return path
