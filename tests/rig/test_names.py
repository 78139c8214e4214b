"""Names that a rig gives to its parts, and lines of text."""

import pytest

from cosim.rig.sections.rig_spec import read_rig
from tests.kit.given import beside
from tests.kit.refusals import refusal

GIVEN = beside(__file__)

RIG = GIVEN["rig"]
NAMES = {"rig": "r", "body": "b", "joint": "j", "spring": "s", "controller": "c", "event": "e", "description": ""}
PLACES = GIVEN["places"]


WRONG = {
    "slash": "a/b",
    "dot": "a.b",
    "line break": "a\\nb",
    "escape": "a\\e[2J",
    "direction": "a\\u202eb",
    "long": "a" * 1001,
    "empty": "",
    "blank": "  ",
}
# what else but names of parts may have
ALLOWED = {"description": {"slash", "dot", "empty", "blank"}, "rig": {"dot"}, "event": {"dot"}}


@pytest.fixture
def read(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def read(**names: str):
        (tmp_path / "rig.yaml").write_text(RIG.format(**NAMES | names))
        return read_rig("rig.yaml")

    return read


@pytest.mark.parametrize("part", PLACES)
def test_names_that_parts_cannot_have(read, said, part):
    allowed = ALLOWED.get(part, set())
    for what in allowed:
        read(**{part: WRONG[what]})
    words = [refusal(read, **{part: name}) for what, name in WRONG.items() if what not in allowed]
    assert all(f"rig.yaml:{PLACES[part]}: " in each for each in words)
    said(words)


@pytest.mark.parametrize("name", ["肩关节", "🤖", "a b", "x" * 100, "a=b", "[1]", "é"])
def test_names_that_parts_can_have(read, name):
    for part in PLACES:
        read(**{part: name})


def test_ports_that_do_not_exist(tmp_path, monkeypatch, said):
    """ZeroMQ takes port 34463 for 99999."""
    monkeypatch.chdir(tmp_path)
    rig = "mechanism: {{bodies: [{{name: b, mass: 1, com: [0, 0, 1], inertia: [1, 1, 1]}}]}}\n{}"

    def read(port):
        (tmp_path / "rig.yaml").write_text(rig.format(f"telemetry: {{publish: 'tcp://127.0.0.1:{port}'}}\n"))
        return read_rig("rig.yaml").telemetry.publish

    assert read(65535) == "tcp://127.0.0.1:65535"
    said(refusal(read, port) for port in (65536, 99999))
