"""Systems of SSP as parts and wires."""

from __future__ import annotations

import gc
import zipfile
from pathlib import Path

import numpy as np
import pytest

from cosim.core.errors import InputError, SourceLocation
from cosim.simulation.fmi import FmuPart, SystemWire, read_system
from cosim.simulation.fmi.description import FmuDescription
from cosim.simulation.fmi.unit_conversion import Conversion, conversion_of, in_si
from cosim.simulation.fmi.variables import FmuVariables, InUnit
from tests.fmi import fmus
from tests.kit.refusals import refusal

pytestmark = fmus.needs_gcc
NAMES = (
    'xmlns:ssd="http://ssp-standard.org/SSP1/SystemStructureDescription" '
    'xmlns:ssv="http://ssp-standard.org/SSP1/SystemStructureParameterValues" '
    'xmlns:ssm="http://ssp-standard.org/SSP1/SystemStructureParameterMapping" '
    'xmlns:ssc="http://ssp-standard.org/SSP1/SystemStructureCommon"'
)
BALL = '<ssd:Component name="ball" source="resources/ball2.fmu"/>'
TABLES = """
<ssd:Component name="first" source="resources/turntable2.fmu" implementation="CoSimulation"/>
<ssd:Component name="second" source="resources/turntable3.fmu" implementation="ModelExchange"/>"""


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("resources").mkdir()
    return Path("resources")


def structure(body: str, version: str = "1.0") -> Path:
    """An `.ssd` file with a system; line 3 is its first."""
    text = f'<ssd:SystemStructureDescription {NAMES} name="rig" version="{version}">\n'
    text += f'<ssd:System name="rig">\n{body}\n</ssd:System></ssd:SystemStructureDescription>'
    Path("rig.ssd").write_text(text)
    return Path("rig.ssd")


def connected(connection: str, inside: str = "") -> str:
    ends = 'startElement="first" startConnector="{}" endElement="second" endConnector="rate"'
    ends = ends.format("double" if "double" in connection else "angle")
    return (
        f"<ssd:Elements>{TABLES}</ssd:Elements><ssd:Connections>\n"
        f"<ssd:Connection {ends} {connection.replace('double', '')}>{inside}</ssd:Connection></ssd:Connections>"
    )


def test_components_are_parts_and_connections_wires(folder):
    for version in (2, 3):
        fmus.build(folder, "turntable", version)
    system = read_system(structure(connected('suppressUnitConversion="true"')))
    assert [(p.name, p.path, p.interface) for p in system.parts] == [
        ("first", Path("resources/turntable2.fmu"), "co-simulation"),
        ("second", Path("resources/turntable3.fmu"), "model exchange"),
    ]
    assert system.wires == (SystemWire(("first", "angle"), ("second", "rate")),)
    assert (system.name, system.inputs, system.outputs) == ("rig", {}, {})
    assert [part.outputs for part in system.parts] == [("angle", "double")] * 2


DEGREE = np.pi / 180.0
FURLONG = 201.168


@pytest.mark.parametrize(
    ("connection", "inside", "factor", "offset"),
    [
        ("", '<ssc:LinearTransformation factor="3"/>', 3.0, 0.0),
        ("", '<ssc:LinearTransformation factor="3" offset="90"/>', 3.0, 90.0 * DEGREE),
        # furlong/s to deg/s, number for number
        ('double suppressUnitConversion="true"', "", DEGREE / FURLONG, 0.0),
        (
            'double suppressUnitConversion="true"',
            '<ssc:LinearTransformation factor="2" offset="-5"/>',
            2.0 * DEGREE / FURLONG,
            -5.0 * DEGREE,
        ),
    ],
)
def test_transformations_act_in_the_units_of_the_fmus(folder, connection, inside, factor, offset):
    for version in (2, 3):
        fmus.build(folder, "turntable", version)
    (wire,) = read_system(structure(connected(connection, inside))).wires
    assert (wire.factor, wire.offset) == pytest.approx((factor, offset), rel=1e-12)


NESTED = Path(__file__).with_name("nested.xml").read_text(encoding="utf-8")


def test_nested_systems_are_flattened(folder):
    fmus.build(folder, "turntable", 2)
    system = read_system(structure(NESTED))
    assert [part.name for part in system.parts] == ["table", "inner/table"]
    assert system.wires == (SystemWire(("table", "angle"), ("inner/table", "rate"), 10.0),)
    assert system.inputs == {"speed": (SystemWire(("", "speed"), ("table", "rate")),)}
    assert system.outputs == {"place": SystemWire(("inner/table", "angle"), ("", "place"))}
    assert system.unconnected == ()


PARAMETERS = Path(__file__).with_name("parameters.xml").read_text(encoding="utf-8")
VALUES = f"""<ssv:ParameterSet {NAMES} name="values" version="1.0"><ssv:Parameters>
<ssv:Parameter name="height"><ssv:Real value="300" unit="centimetre"/></ssv:Parameter>
<ssv:Parameter name="bounce"><ssv:Real value="0.3"/></ssv:Parameter>
<ssv:Parameter name="speed"><ssv:Real value="7"/></ssv:Parameter>
</ssv:Parameters><ssv:Units><ssc:Unit name="centimetre"><ssc:BaseUnit m="1" factor="0.01"/></ssc:Unit></ssv:Units>
</ssv:ParameterSet>"""
MAPPING = f"""<ssm:ParameterMapping {NAMES} version="1.0">
<ssm:MappingEntry source="drop.height" target="h"><ssc:LinearTransformation factor="2" offset="100"/></ssm:MappingEntry>
<ssm:MappingEntry source="drop.bounce" target="e"/>
</ssm:ParameterMapping>"""


def test_parameters_are_bound_from_the_inside_out(folder):
    """Heights in cm are doubled and raised; the outer binding replaces the inner one."""
    fmus.build(folder, "ball", 2)
    Path("values.ssv").write_text(VALUES)
    Path("names.ssm").write_text(MAPPING)
    system = read_system(structure(PARAMETERS))
    starts = {}
    for each in system.parts:
        part = FmuPart(each.path, each.name, each.parameters, outputs=("h",), process=False)
        starts[each.name] = float(part.start(0.0, {})["h"]), float(part.step(0.0, 0.1, {})["h"])
        part.close()
    assert starts["low/ball"] == pytest.approx((7.0, 7.0 - 0.5 * 9.81 * 0.01))
    assert starts["moon"] == pytest.approx((1.0, 1.0 - 0.5 * 1.62 * 0.01))
    assert system.parts[0].parameters["e"].value == 0.8


def test_an_archive_is_extracted_until_the_system_is_closed(folder):
    fmus.build(folder, "ball", 2)
    with zipfile.ZipFile("rig.ssp", "w") as archive:
        archive.write(structure(f"<ssd:Elements>{BALL}</ssd:Elements>", "2.0"), "SystemStructure.ssd")
        archive.write("resources/ball2.fmu")
    system = read_system("rig.ssp")
    (part,) = system.parts
    gc.collect()
    assert part.path.is_file()
    system.close()
    assert not part.path.exists()


ELEMENTS = f"<ssd:Elements>{BALL}</ssd:Elements>"


def join(start: str, end: str, inside: str = "") -> str:
    a, b = start.split("."), end.split(".")
    ends = f'startElement="{a[0]}" startConnector="{a[1]}" endElement="{b[0]}" endConnector="{b[1]}"'
    return f"\n<ssd:Connection {ends}>{inside}</ssd:Connection>\n"


def table(*connections: str) -> str:
    return f"<ssd:Elements>{TABLES}</ssd:Elements><ssd:Connections>{''.join(connections)}</ssd:Connections>"


def bound(parameter: str) -> str:
    values = f"<ssv:ParameterSet><ssv:Parameters>\n{parameter}\n</ssv:Parameters></ssv:ParameterSet>"
    bindings = f"<ssd:ParameterBinding><ssd:ParameterValues>{values}</ssd:ParameterValues></ssd:ParameterBinding>"
    return ELEMENTS + f"<ssd:ParameterBindings>{bindings}</ssd:ParameterBindings>"


MISTAKES = {
    "no components": "",
    "broken XML": ELEMENTS[:-3],
    "no file": ELEMENTS.replace("ball2", "bal2"),
    "no source": ELEMENTS.replace('source="resources/ball2.fmu"', ""),
    "a source elsewhere": ELEMENTS.replace("resources/", "https://far/"),
    "a package": ELEMENTS.replace(" source", ' type="application/x-ssp-package" source'),
    "two elements": ELEMENTS.replace(BALL, BALL + "\n" + BALL),
    "a signal dictionary": "<ssd:Elements>\n<ssd:SignalDictionaryReference name='bus'/></ssd:Elements>",
    "no element": table(join("frist.angle", "second.rate")),
    "connected twice": table(join("first.angle", "second.rate"), join("first.double", "second.rate")),
    "a mapping that is not read": table(join("first.angle", "second.rate", "\n<ssc:BooleanMappingTransformation/>")),
    "a factor that is no number": table(
        join("first.angle", "second.rate", '\n<ssc:LinearTransformation factor="two"/>')
    ),
    "no variable": table(join("first.angle", "second.rat", '<ssc:LinearTransformation offset="1"/>')),
    "a parameter of no element": bound('<ssv:Parameter name="bal.e"><ssv:Real value="1"/></ssv:Parameter>'),
    "a value that is no number": bound('<ssv:Parameter name="ball.e"><ssv:Real value="x"/></ssv:Parameter>'),
    "another unit": bound('<ssv:Parameter name="ball.h"><ssv:Real value="2" unit="kg"/></ssv:Parameter>'),
    "an unknown unit": bound('<ssv:Parameter name="ball.h"><ssv:Real value="2" unit="ell"/></ssv:Parameter>'),
    "no value": bound('<ssv:Parameter name="ball.e"/>'),
}


@pytest.mark.parametrize("what", MISTAKES)
def test_mistakes_have_their_line(folder, what, said):
    fmus.build(folder, "ball", 2)
    for version in (2, 3):
        fmus.build(folder, "turntable", version)
    words = refusal(read_system, structure(MISTAKES[what]))
    said(words)
    assert words.startswith("rig.ssd:")


def test_files_that_are_no_system(folder, said):
    Path("text.ssp").write_text("no archive")
    Path("other.ssd").write_text("<html/>")
    for name, file in (("empty.ssp", "a"), ("out.ssp", "../x")):
        with zipfile.ZipFile(name, "w") as archive:
            archive.writestr(file, "")
    for path in (structure("", "3.0"), "rig.sdd", "text.ssp", "empty.ssp", "out.ssp", "other.ssd"):
        said(refusal(read_system, path))


def assert_valid(kind: str, text: str) -> None:
    """By the schema of the standard, which fmpy ships."""
    import fmpy.ssp.ssd
    from lxml import etree

    folder = Path(fmpy.ssp.ssd.__file__).parent / "schema"
    schema = etree.XMLSchema(file=str(folder / f"SystemStructure{kind}.xsd"))
    assert schema.validate(etree.fromstring(text)), schema.error_log


STARTED = Path(__file__).with_name("started.xml").read_text(encoding="utf-8")


def test_inputs_of_systems_have_start_values(folder):
    """In the unit of the FMU: 30 deg/s, and 3 · 7 - 14 = 7 deg/s. Elements may be named by "", the system itself, and
    connections without a transformation may go the other way."""
    fmus.build(folder, "turntable", 2)
    for given, expected in (({}, 30.0), ({"speed": "1 rad/s"}, 180.0 / np.pi)):
        system = read_system(structure(STARTED), given)
        assert system.inputs == {"speed": (SystemWire(("", "speed"), ("table", "rate")),)}
        assert (system.outputs, system.unconnected) == ({}, ("through",))
        rates = {}
        for each in system.parts:
            part = FmuPart(each.path, each.name, each.parameters, process=False)
            part.start(0.0, {})
            rates[each.name] = float(part.step(0.0, 0.1, {})["angle"]) / 0.1 / DEGREE
            part.close()
        assert rates == pytest.approx({"table": expected, "inner/table": 7.0})


@pytest.mark.parametrize(
    ("name", "value", "unit", "expected"),
    [
        ("temperature", "300", "K", 26.85),
        ("temperature", "26.85", "degC", 26.85),
        ("angle", "0.5", "rad", 0.5 / DEGREE),
        ("double", "3", "furlong/s", 3.0),
    ],
)
def test_parameters_are_converted_from_their_unit_to_that_of_the_fmu(folder, name, value, unit, expected):
    """A unit that only the FMU defines is the FMU's."""
    fmus.build(folder, "turntable", 2)
    description = FmuDescription(folder / "turntable2.fmu")
    variables = FmuVariables(description.description, description.version, SourceLocation("turntable2.fmu"))
    given = InUnit(float(value), conversion_of(unit, None))
    assert variables._values(variables.by_name[name], given) == pytest.approx(expected)


def test_start_values_with_a_unit_are_not_transformed(folder):
    fmus.build(folder, "turntable", 2)
    with pytest.raises(InputError, match=r"rig.ssd:20: a transformation of a parameter with a unit is not read"):
        read_system(structure(STARTED.replace('value="7"', 'value="7" unit="deg/s"')))


def test_entries_of_a_mapping_without_a_source_map_nothing(folder):
    fmus.build(folder, "ball", 2)
    Path("values.ssv").write_text(VALUES)
    entry = '<ssm:MappingEntry source="" target="g"/>\n</ssm:ParameterMapping>'
    Path("names.ssm").write_text(MAPPING.replace("</ssm:ParameterMapping>", entry))
    assert set(read_system(structure(PARAMETERS)).parts[0].parameters) == {"h", "e"}


def test_kinds_of_units_and_zeros_of_temperatures():
    """rad and rad/s differ in kind, N·m and J do not; 300 K are 26.85 °C; 20 °C are the number 20 where the other end
    has no unit."""
    degrees = Conversion("degC", 1.0, 0.0)
    kelvin, turns = Conversion("K"), Conversion("rad/s", DEGREE)
    assert in_si([], Conversion("N*m"), Conversion("J"), False) == (1.0, 0.0)
    factor, offset = in_si([], kelvin, degrees, False)
    assert factor * 300.0 + offset == pytest.approx(26.85)
    factor, offset = in_si([(2.0, 1.0)], kelvin, degrees, False)
    assert factor * 300.0 + offset == pytest.approx(2.0 * 26.85 + 1.0)
    assert in_si([], degrees, None, False) == (1.0, 0.0)
    assert in_si([], turns, None, False) == pytest.approx((1.0 / DEGREE, 0.0))
    assert in_si([(2.0, 0.0)], Conversion("rad", DEGREE), turns, False) == pytest.approx((2.0, 0.0))
    with pytest.raises(ValueError):
        in_si([], Conversion("rad", DEGREE), turns, False)


BODIES = (NESTED, PARAMETERS, STARTED, connected("", '<ssc:LinearTransformation factor="3"/>'))


@pytest.mark.parametrize("body", BODIES, ids=range(len(BODIES)))
def test_the_systems_of_these_tests_follow_the_standard(folder, body):
    texts = {"Description": structure(body).read_text(), "ParameterValues": VALUES, "ParameterMapping": MAPPING}
    for kind, text in texts.items():
        assert_valid(kind, text)
