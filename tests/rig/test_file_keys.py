"""Overlays with numbers of a rig: each loads, runs, and gives the number, wherever the file has its section."""

from __future__ import annotations

import pytest
import yaml

from cosim import load_rig
from cosim.rig.file_keys import file_keys
from cosim.rig.reading.yaml_source import overlay_text, overrides_of, read_overlay
from tests.identification.conftest import ARM, MOTOR

FRICTION = {"model": "stribeck", "coulomb": 1.0, "static": 1.5}
ENCODER = {"noise": 1e-5, "cpr": 4096}
# where a section of the joint `elbow` may stand in a file
PLACES = {
    "of all": lambda sections: {"all": sections},
    "its own": lambda sections: {"elbow": sections},
    "its own beside all": lambda sections: {"all": sections, "elbow": sections},
    "its own, one of all": lambda sections: {
        "all": {"friction": sections["friction"], "encoder": sections["encoder"]},
        "elbow": {"actuator": MOTOR | {"ratio": 50}},
    },
}  # fmt: skip
NUMBERS = {
    "joints.elbow.actuator.viscous": 0.7,
    "joints.elbow.actuator.rotor_inertia": 5e-5,
    "joints.elbow.friction.coulomb": 1.1,
    "joints.elbow.friction.static": 1.7,
    "joints.elbow.encoder.noise": 2e-5,
    "mechanism.fore.mass": 1.3,
    "mechanism.fore.com": [0.1, 0.0, 0.01],
    "mechanism.elbow.damping": 0.2,
    "mechanism.wrist.inertia": 0.02,
    "track.kp": [200.0, 100.0],
}


def rig_file(folder, joints):
    rotors = {"wrist": {"turns": {"shoulder": 1, "elbow": 1}, "inertia": 0.01}}
    schedule = ARM["schedule"] | {"duration": 0.02}
    rig = ARM | {"mechanism": ARM["mechanism"] | {"rotors": rotors}, "joints": joints, "schedule": schedule}
    path = folder / "rig.yaml"
    path.write_text(yaml.safe_dump(rig))
    return path


def overlaid(path, values):
    """The rig with the numbers, from an overlay on disk, and after a run."""
    overlay = path.with_name("overlay.yaml")
    overlay.write_text(overlay_text(file_keys(load_rig(path), values), str(path)))
    rig = load_rig(path, read_overlay(overlay))
    rig.run()
    return rig


def given(rig, name):
    return {**rig.numbers, **rig.parameters}[name]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", NUMBERS)
def test_a_number_wherever_its_section_stands(tmp_path, place, name):
    """The others, of this joint and of the other one, stay as they are."""
    sections = {"actuator": MOTOR, "friction": FRICTION, "encoder": ENCODER}
    path = rig_file(tmp_path, PLACES[place](sections))
    before = load_rig(path)
    if name not in {**before.numbers, **before.parameters}:
        pytest.skip("this file gives the joint no such number")
    after = overlaid(path, {name: NUMBERS[name]})
    assert given(after, name) == pytest.approx(NUMBERS[name])
    for other in before.numbers:
        if other != name:
            assert given(after, other) == pytest.approx(given(before, other)), other


@pytest.mark.parametrize("place", PLACES)
def test_all_numbers_together(tmp_path, place):
    path = rig_file(tmp_path, PLACES[place]({"actuator": MOTOR, "friction": FRICTION, "encoder": ENCODER}))
    rig = load_rig(path)
    values = {name: value for name, value in NUMBERS.items() if name in {**rig.numbers, **rig.parameters}}
    after = overlaid(path, values)
    for name, value in values.items():
        assert given(after, name) == pytest.approx(value), name


def test_an_actuator_that_the_file_does_not_write(tmp_path):
    """A joint that a controller commands has an ideal one."""
    path = rig_file(tmp_path, {})
    after = overlaid(path, {"joints.elbow.actuator.rotor_inertia": 0.03})
    assert given(after, "joints.elbow.actuator.rotor_inertia") == 0.03
    assert after.spec.joints["elbow"].actuator.name == "ideal"


def test_numbers_over_other_overlays(tmp_path):
    """Sections are those of the rig as it was loaded."""
    path = rig_file(tmp_path, {"all": {"actuator": MOTOR}})
    base = overrides_of({"joints.elbow.actuator": MOTOR | {"ratio": 30}})
    keys = file_keys(load_rig(path, base), {"joints.elbow.actuator.viscous": 0.9})
    after = load_rig(path, [*base, *overrides_of(keys)])
    assert given(after, "joints.elbow.actuator.ratio") == 30
    assert given(after, "joints.elbow.actuator.viscous") == 0.9
