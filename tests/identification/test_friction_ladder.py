"""Laws of friction of growing detail: the one of the machine is taken, and none beyond it."""

from __future__ import annotations

import copy

import pytest
import yaml

from cosim import load_rig
from cosim.apps.identification.friction_ladder import FIRST, RUNGS, climb
from cosim.apps.identification.identification import identify
from cosim.core.errors import InputError
from cosim.rig.reading.yaml_source import overrides_of
from tests.identification.conftest import ARM

TITLES = [FIRST, *(rung.title for rung in RUNGS)]
DRY = {"model": "smooth", "coulomb": 2.0}
LAWS = {
    FIRST: DRY,
    "load of the drive": DRY | {"load_friction": 0.08},
    "Stribeck": {"model": "stribeck", "coulomb": 2.0, "static": 4.0, "stribeck_speed": 0.4},
    "load of the mechanism": DRY | {"external_load_friction": 0.15},
    "square of the load": {
        "model": "stribeck", "coulomb": 2.0, "stribeck_speed": 1.5, "quadratic_external_load_friction": 0.05,
    },
}  # fmt: skip
# a slow and a fast motion, for training and for checks
MOTIONS = {"train": ([1.1, 1.3], [0.31, 0.47]), "check": ([1.3, 1.0], [0.23, 0.53])}
NOISE = 1e-5  # rad, of the encoders


@pytest.fixture(scope="module")
def rig_file(tmp_path_factory):
    arm = copy.deepcopy(ARM)
    arm["joints"] = {"all": {"actuator": {"type": "ideal"}, "encoder": {"noise": NOISE}}}
    path = tmp_path_factory.mktemp("ladder") / "arm.yaml"
    path.write_text(yaml.safe_dump(arm))
    return path


def recorded(rig_file, title):
    """Of the machine with a law, for training and for checks."""
    paths = []
    for name, (amplitude, frequency) in MOTIONS.items():
        path = rig_file.parent / f"{name}_{TITLES.index(title)}.mcap"
        if not path.exists():
            motion = {"type": "sine", "amplitude": amplitude, "frequency": frequency, "ramp": 1}
            keys = {f"joints.{joint}.friction": LAWS[title] for joint in ("shoulder", "elbow")}
            keys |= {f"mechanism.numbers.{joint}.damping": 1.5 for joint in ("shoulder", "elbow")}
            load_rig(rig_file, overrides_of(keys | {"controllers.track.trajectory": motion})).run(record=path)
        paths.append(path)
    return paths


def climbed(rig_file, title):
    training, check = recorded(rig_file, title)
    return climb(
        load_rig(rig_file),
        lambda keys: load_rig(rig_file, overrides_of(keys)),
        lambda rig, numbers: identify(rig, training, numbers, check=[check]),
        ["inertia", "friction"],
    )


@pytest.fixture(scope="module")
def found(rig_file):
    cache = {}

    def of(title):
        if title not in cache:
            cache[title] = climbed(rig_file, title)
        return cache[title]

    return of


@pytest.mark.parametrize("title", LAWS)
def test_the_law_of_the_machine_is_taken_and_its_numbers_are_found(found, title):
    result = found(title)
    assert [law.title for law in result.laws if law.taken] == list(dict.fromkeys([FIRST, title]))
    assert not result.failure
    known = {number.name: number for number in result.numbers}
    for joint in ("shoulder", "elbow"):
        for key, value in LAWS[title].items():
            if key != "model" and f"joints.{joint}.friction.{key}" in known:
                number = known[f"joints.{joint}.friction.{key}"]
                assert number.value == pytest.approx(value, rel=0.05), key
                assert number.before == 0.0


def test_the_overlay_is_one_of_the_rig(rig_file, found):
    """With the sections of the law, which the rig has not."""
    keys = found("Stribeck").overlay()
    again = load_rig(rig_file, overrides_of(keys))
    assert again.spec.joints["elbow"].friction.model == "stribeck"
    assert again.numbers["joints.elbow.friction.static"] == keys["joints.elbow.friction"]["static"]
    training, check = recorded(rig_file, "Stribeck")
    assert identify(again, training, check=[check]).residuals_of_checks < (0.005,)


def test_it_says_what_was_tried(found):
    lines = list(found("Stribeck").lines())
    first = next(k for k, line in enumerate(lines) if line.startswith("law of friction"))
    rows = {line[:22].strip(): line for line in lines[first + 2 : first + 2 + len(TITLES)]}
    assert list(rows) == TITLES
    assert [title for title, line in rows.items() if line.endswith("taken")] == [FIRST, "Stribeck"]
    assert [law["law"] for law in found("Stribeck").as_json()["laws"] if law["taken"]] == [FIRST, "Stribeck"]


def test_a_drive_with_friction_of_its_own_is_refused(arm_file):
    with pytest.raises(InputError) as error:
        climb(load_rig(arm_file), lambda keys: load_rig(arm_file), identify, ["inertia"])
    assert str(error.value) == (
        "--friction: the drive of 'shoulder' has a law of friction of its own, and laws are tried on ideal drives;"
        " leave the option out"
    )


def test_the_sums_that_the_motion_determines_are_found_with_the_law(found):
    """Stribeck speeds are as found in them, and the weight of the fore arm is that of the machine."""
    weight = next(number for number in found("Stribeck").base if number.name == "mx(fore)")
    assert weight.value == pytest.approx(1.0 * 0.15, abs=weight.interval + 1e-3)
