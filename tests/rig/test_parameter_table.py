"""The table of the named numbers of a rig: the same unit, bounds and meaning wherever a number is set or shown."""

from __future__ import annotations

import math
from xml.etree import ElementTree

import numpy as np
import pytest
from orjson import dumps, loads

from cosim import Rig, load_rig
from cosim.apps.deploy.description import as_data, interface_of
from cosim.apps.deploy.fmu_export.model_description import UnitOutline, description
from cosim.apps.deploy.fmu_export.variables import variables_of
from cosim.core.units import UNITS
from cosim.rig.parameter_table import table_of
from cosim.rig.rig_parameter import bounds_of
from cosim.rig.run.recorded_run import Change
from cosim.rig.run.run_metadata import run_metadata_of
from cosim.rig.run.stream import schema_of
from tests.kit.refusals import refusal
from tests.kit.samples import FOLDER, is_rig

NAMES = sorted(str(file.relative_to(FOLDER).with_suffix("")) for file in FOLDER.rglob("*.yaml") if is_rig(file))


@pytest.fixture(scope="module", params=NAMES)
def sample(request):
    return load_rig(FOLDER / f"{request.param}.yaml", interpret=False)


def parameters_of(rig):
    table = table_of(rig)
    return [*table.live.values(), *table.per_run.values()]


def test_every_parameter_has_a_unit_bounds_around_its_value_and_a_meaning(sample):
    for parameter in parameters_of(sample):
        values = table_of(sample).numbers(parameter.name)
        least, greatest = parameter.bounds
        assert len(values) == len(parameter.units) == parameter.size, parameter.name
        assert all(UNITS[unit] == (unit, 1.0) for unit in parameter.units), parameter.name
        assert ((least <= values) & (values <= greatest)).all(), parameter.name
        assert parameter.about, parameter.name


def test_every_signal_has_a_unit_and_a_meaning(sample):
    for name, unit, about in interface_of(sample).signals:
        assert UNITS[unit] == (unit, 1.0) and about, name


def test_values_beyond_the_bounds_are_refused_and_those_of_the_rig_are_not(sample):
    for parameter in parameters_of(sample):
        values = table_of(sample).numbers(parameter.name)
        if np.isfinite(values).all():
            assert parameter.wrong(values) == "", parameter.name
        least, greatest = parameter.bounds
        beyond = math.nextafter(least, -math.inf), math.nextafter(greatest, math.inf)
        for value in filter(math.isfinite, beyond):
            assert parameter.wrong(np.full(parameter.size, value)), parameter.name
            if parameter.name in sample.parameters:
                assert f"parameter '{parameter.name}'" in refusal(sample.set, parameter.name, value)


def test_the_values_of_a_rig_are_set_as_they_are_got(sample):
    for name, value in sample.parameters.items():
        if np.isfinite(value).all():
            sample.set(name, value)
            assert sample.parameters[name] == value


def test_stream_objects_and_fmus_declare_the_same(sample):
    live, interface = table_of(sample).live, interface_of(sample)
    streamed = schema_of(sample, run_metadata_of(sample))["parameters"]
    assert list(streamed) == list(live) == list(sample.parameters)
    described = {number.name: as_data(number) for number in interface.parameters}
    variables = variables_of(interface, [()] * len(interface.signals))
    written = ElementTree.fromstring(description(3, UnitOutline("rig", "", 1e-3, 1.0, "", 1e-3), variables, "{}"))
    in_fmu = {item.attrib["name"]: item.attrib for item in written.iter("Float64")}
    for name, parameter in live.items():
        bounds = tuple(bound if math.isfinite(bound) else None for bound in parameter.bounds)
        assert (streamed[name]["min"], streamed[name]["max"]) == bounds
        value = np.array(sample.parameters[name])
        assert streamed[name]["value"] == np.where(np.isfinite(value), value, None).tolist()  # as JSON has it
        assert streamed[name].get("joints", []) == list(parameter.joints)
        assert {streamed[name]["unit"]} >= set(parameter.units) or streamed[name]["unit"] not in UNITS
        for element in parameter.elements(table_of(sample).numbers(name)):
            fmu, facts = in_fmu[element.name], described[element.name]
            shown = tuple(float(fmu[key]) if key in fmu else None for key in ("min", "max"))
            assert shown == (facts["min"], facts["max"]) == bounds
            assert fmu.get("unit", "1") == facts["unit"] == element.unit
            assert fmu["description"] == facts["about"] == parameter.about
            assert float(fmu["start"]) == element.value
            assert facts["value"] == (element.value if math.isfinite(element.value) else None)
    for name, unit, about in interface.signals:
        assert (in_fmu[name].get("unit", "1"), in_fmu[name]["description"]) == (unit, about)


def test_bounds_are_inclusive_and_those_of_rig_files():
    assert bounds_of({}) == (-math.inf, math.inf)
    assert bounds_of({"min": 0, "max": 1}) == (0.0, 1.0)
    assert bounds_of({"above": 0.0}) == (1e-15, math.inf)
    assert bounds_of({"above": -273.15}) == (math.nextafter(-273.15, 0.0), math.inf)


BODY = {"mass": 1.0, "com": [0.1, 0, 0], "inertia": [0.01, 0.02, 0.02]}
GANTRY = {
    "name": "gantry",
    "mechanism": {
        "bodies": [
            {**BODY, "name": "cart", "joint": "slide", "type": "prismatic", "axis": [1, 0, 0]},
            {**BODY, "name": "arm", "parent": "cart", "joint": "swing", "axis": [0, 1, 0]},
        ]
    },
    "joints": {"slide": {"actuator": {"type": "ideal"}}, "swing": {"actuator": {"type": "ideal"}}},
    "controllers": [{"name": "hold", "type": "pid", "kp": [40, 30], "ki": 2, "kd": [9, 4], "integral_limit": [5, 6]}],
    "schedule": {"step": "1 ms", "duration": 0.05},
}


@pytest.fixture(scope="module")
def gantry():
    return Rig.from_dict(GANTRY)


def test_elements_of_joints_of_both_kinds_have_the_units_of_their_joints(gantry):
    kp = table_of(gantry).live["hold.kp"]
    assert (kp.unit, kp.units) == ("joint stiffness", ("N/m", "N*m/rad"))
    found = {number.name: number.unit for number in interface_of(gantry).parameters}
    assert (found["hold.kp/slide"], found["hold.kp/swing"]) == kp.units


def test_a_name_means_a_parameter_or_one_of_its_elements(gantry):
    table = table_of(gantry)
    for name, expected in {"hold.kp": None, "hold.kp/swing": 1, "mechanism.arm.inertia/2": 2}.items():
        parameter, element = table.find(name)
        assert (parameter.name, element) == (name.partition("/")[0], expected)


def test_records_name_all_parameters_and_are_json(sample):
    table = table_of(sample)
    live = schema_of(sample, run_metadata_of(sample))["parameters"]
    kinds = {"live": table.live, "per run": table.per_run, "fixed": table.fixed}
    found = {**live, **table.unset()}
    assert {name: record["changes"] for name, record in found.items()} == {
        name: kind for kind, parameters in kinds.items() for name in parameters
    }
    assert loads(dumps(found)) == found
    for name, parameter in {**table.live, **table.per_run}.items():
        record, values = found[name], np.atleast_1d(np.array(found[name]["value"], dtype=float))
        np.testing.assert_array_equal(values, np.where(np.isfinite(table.numbers(name)), table.numbers(name), np.nan))
        units = record.get("units", [record["unit"]] * parameter.size)
        assert tuple(units) == parameter.units and record["about"] == parameter.about


def test_every_fixed_parameter_says_where_it_is_set(sample):
    for name, parameter in table_of(sample).fixed.items():
        assert f"'{parameter.key}=…'" in refusal(sample.set, name, 1.0)


@pytest.mark.parametrize("name", ["winch", "quarter_car"])
def test_the_parameters_of_parts_are_set_by_their_overrides(name):
    path = FOLDER / "cosimulation" / f"{name}.yaml"
    rig, command = load_rig(path), "; load it with the override '"
    fixed = {name: one for name, one in table_of(rig).fixed.items() if one.key.startswith("parts.")}
    assert {name.partition(".")[0] for name in fixed} == {part.name for part in rig.spec.parts}
    for name, parameter in fixed.items():
        override = refusal(rig.set, name, 1.0).partition(command)[2].removesuffix("=…'")
        other = table_of(load_rig(path, [f"{override}={1.5 * parameter.given!r}"]))
        changed = {each for each, one in other.fixed.items() if one.given != table_of(rig).fixed[each].given}
        assert changed == {name} and other.fixed[name].given == 1.5 * parameter.given


def test_the_table_is_made_once_and_anew_for_other_ticks(gantry):
    assert table_of(gantry) is table_of(gantry)
    assert table_of(gantry.with_ticks(gantry.tick_model)) is not table_of(gantry)


def test_every_name_with_another_meaning_than_a_parameter_says_where_it_is_set(gantry, said):
    for name in (
        "mechanism.arm.mass",
        "mechanism.arm.com/0",
        "hold.filters",
        "mechanism.arm.mas",
        "controllers.hold.kp",
        "hold.kp/3",
        "xyz",
    ):
        said(refusal(gantry.set, name, 1.0))


def test_a_change_of_what_is_no_parameter_says_the_same(gantry, said):
    said(refusal(gantry.run, 0.01, changes=[Change(3, "mechanism.arm.mass", (1.0,))]))


def test_elements_in_rollouts_and_gradients_are_those_of_their_parameter(gantry):
    elements = gantry.rollouts({"hold.kp/swing": [30.0, 60.0], "mechanism.arm.com/2": [0.0, 0.05]}, keep="all")
    whole = {"hold.kp": [[40.0, 30.0], [40.0, 60.0]], "mechanism.arm.com": [[0.1, 0, 0], [0.1, 0, 0.05]]}
    found = gantry.rollouts(whole, keep="all")
    assert np.ptp(found["swing/position"][:, -1]) > 1e-6
    np.testing.assert_array_equal(elements["swing/position"], found["swing/position"])
    slope = gantry.gradient("iae", ["hold.kp/swing", "mechanism.arm.com/2"])
    full = gantry.gradient("iae", ["hold.kp", "mechanism.arm.com"])
    assert slope["hold.kp/swing"] == full["hold.kp"][1] and slope.units["hold.kp/swing"] == "N*m/rad"
    assert slope["mechanism.arm.com/2"] == full["mechanism.arm.com"][2] != 0.0
    assert slope.parameters["mechanism.arm.com/2"] == 0.0


def test_an_element_beside_its_whole_is_refused(gantry, said):
    said(refusal(gantry.rollouts, {"hold.kp": [1.0], "hold.kp/swing": [1.0]}))
