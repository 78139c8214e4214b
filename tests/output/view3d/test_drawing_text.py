"""A drawing as text: the same poses as the model, no path in it, and nothing but an error for any other text."""

import copy
import json
import zlib
from base64 import b64decode, b64encode
from typing import Any

import numpy as np
import pytest

from cosim import load_rig
from cosim.core import ops
from cosim.core.compile import ArrayPort, compile
from cosim.core.compile.emit import _SUPPORTED
from cosim.core.compile.portable import OPERATIONS, PortableFunction
from cosim.core.errors import InputError
from cosim.output.view3d import drawing
from cosim.output.view3d.drawing import Drawing, read_drawing
from cosim.rig.scene import drawing_of, drawing_text_of
from tests.kit.refusals import refusal

RIGS = ["mechanisms/four_bar", "mechanisms/arm_on_moving_base", "mechanisms/floating_chain", "elastic/cantilever"]
WRONG: list[Any] = [None, -7, 1e300, float("nan"), "x" * 5000, "/etc/passwd", [], {}, True, [[[]]], 10**9]


@pytest.mark.parametrize("name", RIGS)
def test_bodies_are_where_the_model_has_them(name: str) -> None:
    rig = load_rig(f"rigs/{name}.yaml")
    text = drawing_text_of(rig)
    read, own = read_drawing(text, "a"), drawing_of(rig)
    q = rig.plant.start.q + np.random.default_rng(0).uniform(-0.3, 0.3, (4, rig.plant.model.nq))
    at = (np.linspace(0.0, 1.0, 4),) if read.scene.timed else ()
    np.testing.assert_allclose(read.poses(q, *at), own.poses(q, *at), atol=1e-12)
    np.testing.assert_allclose(read.mounts, own.mounts)
    assert (read.links, read.carried) == (own.links, own.carried)
    assert read.scene.coordinates == own.scene.coordinates and read.scene.closed == own.scene.closed
    assert b"/" not in content(text).replace(b"N/", b"")


def test_every_operation_of_the_compiler_is_in_the_table() -> None:
    taken_apart = {"ASSIGN", "SQ", "TWICE", "INV"}
    assert set(OPERATIONS) == _SUPPORTED - taken_apart


def test_the_operations_are_those_of_the_compiler() -> None:
    def both(x: Any) -> Any:
        a, b = x[0], x[1]
        return ops.array([ops.where(a < b, ops.sin(a), ops.cos(b)), ops.sqrt(a * a + 1.0) / (2.0 + b), abs(a - b), -a])

    portable = PortableFunction.of(both, [(2,)], "both")
    again = PortableFunction.from_data(json.loads(json.dumps(portable.as_data())))
    compiled = compile(both, [ArrayPort("x", (2,))])
    for x in np.random.default_rng(1).uniform(-1.0, 1.0, (20, 2)):
        np.testing.assert_allclose(again(x[None])[0], compiled(x), rtol=1e-12)


def content(text: str) -> bytes:
    return zlib.decompress(b64decode(text))


def packed(data: Any) -> str:
    return b64encode(zlib.compress(json.dumps(data).encode())).decode()


def places(data: Any, way: tuple = ()) -> list[tuple]:
    """The ways to all parts of JSON."""
    inner = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    return [way, *(place for key, item in inner for place in places(item, (*way, key)))]


def test_any_other_text_is_an_error_in_a_sentence() -> None:
    """Every third part is replaced by something wrong: an error, or a drawing that can be drawn."""
    data = json.loads(content(drawing_text_of(load_rig("rigs/mechanisms/four_bar.yaml"))))
    for number, way in enumerate(places(data)[::3]):
        changed = copy.deepcopy({"": data})
        parent: Any = changed
        for key in ("", *way)[:-1]:
            parent = parent[key]
        parent[("", *way)[-1]] = WRONG[number % len(WRONG)]
        try:
            found = read_drawing(packed(changed[""]), "a.mcap")
        except InputError as error:
            assert str(error).startswith("a.mcap: its drawing is ")
            continue
        assert isinstance(found, Drawing)
        assert found.poses(np.zeros((1, len(found.scene.coordinates)))).shape[1:] == (len(found.scene.bodies) - 1, 3, 4)


@pytest.mark.parametrize(
    "text", ["?", "AAAA", "é", 7, b64encode(b"x").decode(), b64encode(zlib.compress(b"[")).decode()]
)
def test_text_that_is_none(text: Any) -> None:
    assert refusal(read_drawing, text, "a.mcap") == "a.mcap: its drawing is damaged"


def test_text_that_unpacks_to_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawing, "MOST_BYTES", 1000)
    with pytest.raises(InputError, match="its drawing is damaged"):
        read_drawing(b64encode(zlib.compress(b" " * 10_000 + b"{}")).decode(), "a.mcap")


def test_a_mesh_is_no_part_of_a_drawing() -> None:
    data = json.loads(content(drawing_text_of(load_rig("rigs/arm_sim.yaml"))))
    shape = next(body[3][0] for body in data["scene"]["bodies"] if body[3])
    shape[0], shape[6] = "mesh", "/etc/passwd"
    with pytest.raises(InputError, match="its drawing is damaged"):
        read_drawing(packed(data), "a.mcap")
