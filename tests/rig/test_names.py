"""Names that a rig gives to its parts, and lines of text."""

import pytest

from cosim.errors import InputError
from cosim.rig.sections.rig_spec import read_rig

RIG = """\
name: "{rig}"
description: "{description}"
mechanism:
  bodies:
    - {{name: "{body}", joint: "{joint}", mass: 1, com: [0, 0, 1], inertia: [1, 1, 1]}}
  springs:
    - {{name: "{spring}", between: [base, {body!r}]}}
controllers:
  - {{name: "{controller}", type: pid, kp: 1, ki: 1, kd: 1}}
events:
  - {{name: "{event}", do: latch, of: {joint!r}, at: 1}}
"""
NAMES = {"rig": "r", "body": "b", "joint": "j", "spring": "s", "controller": "c", "event": "e", "description": ""}
PLACES = {
    "rig": "1 name",
    "description": "2 description",
    "body": "5 mechanism.bodies[0].name",
    "joint": "5 mechanism.bodies[0].joint",
    "spring": "7 mechanism.springs[0].name",
    "controller": "9 controllers[0].name",
    "event": "11 events[0].name",
}


@pytest.fixture
def errors_of(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def errors_of(**names: str) -> list[str]:
        (tmp_path / "rig.yaml").write_text(RIG.format(**NAMES | names))
        try:
            read_rig("rig.yaml")
        except InputError as error:
            return str(error).splitlines()
        return []

    return errors_of


@pytest.mark.parametrize(
    ("name", "what", "allowed"),
    [
        ("a/b", "a name has no '/', got 'a/b'; use '_'", {"description"}),
        ("a.b", "a name has no '.', got 'a.b'; use '_'", {"description", "rig", "event"}),
        ("a\\nb", "must be one line of printable characters, is 'a\\nb'", {}),
        ("a\\e[2J", "must be one line of printable characters, is 'a\\x1b[2J'", {}),
        ("a\\u202eb", "must be one line of printable characters, is 'a\\u202eb'", {}),
        ("a" * 1001, "must have at most {} characters, has 1001; shorten it", {}),
        ("", "expected a name, got ''", {"description"}),
        ("  ", "expected a name, got '  '", {"description"}),
    ],
    ids=["slash", "dot", "line break", "escape", "direction", "long", "empty", "blank"],
)
@pytest.mark.parametrize("part", PLACES)
def test_names_that_parts_cannot_have(errors_of, part, name, what, allowed):
    found = errors_of(**{part: name})
    if part in allowed:
        assert found == []
    else:
        assert f"rig.yaml:{PLACES[part]}: {what.format(1000 if part == 'description' else 100)}" in found


@pytest.mark.parametrize("part", PLACES)
@pytest.mark.parametrize("name", ["肩关节", "🤖", "a b", "x" * 100, "a=b", "[1]", "é"])
def test_names_that_parts_can_have(errors_of, part, name):
    assert errors_of(**{part: name}) == []


def test_ports_that_do_not_exist(tmp_path, monkeypatch):
    """ZeroMQ takes port 34463 for 99999."""
    monkeypatch.chdir(tmp_path)
    rig = "mechanism: {{bodies: [{{name: b, mass: 1, com: [0, 0, 1], inertia: [1, 1, 1]}}]}}\n{}"
    for port, right in {65535: True, 65536: False, 99999: False}.items():
        (tmp_path / "rig.yaml").write_text(rig.format(f"telemetry: {{publish: 'tcp://127.0.0.1:{port}'}}\n"))
        if right:
            assert read_rig("rig.yaml").telemetry.publish == f"tcp://127.0.0.1:{port}"
            continue
        with pytest.raises(InputError) as caught:
            read_rig("rig.yaml")
        what = f"there is no port {port}; use one up to 65535"
        assert str(caught.value) == f"rig.yaml:2 telemetry.publish: {what}"
