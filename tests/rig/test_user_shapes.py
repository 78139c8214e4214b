"""Mode shapes in Python files of the user, and what is said of those that are wrong."""

import numpy as np
import pytest

from cosim.core.errors import SourceLocation
from cosim.mechanics.multibody.elastic.table import read_elastic_table
from cosim.rig.reading.schema import Reading
from cosim.rig.sections.user_code import read_shapes
from tests.docs.documents import PAGES, blocks
from tests.kit.given import beside

GIVEN = beside(__file__)

SHAPES = GIVEN["shapes"]


@pytest.fixture
def reading(tmp_path):
    return Reading(lambda path: SourceLocation("rig.yaml", 7), [], tmp_path)


def read(reading, text, params=None):
    (reading.folder / "sine.py").write_text(text)
    return read_shapes("sine.py", {"length": "0.5 m"} if params is None else params, ("type",), reading)


def test_shapes_with_parameters(reading):
    link = read(reading, SHAPES).link()
    assert not reading.errors
    assert link.mass == pytest.approx(1.0)
    modal = link.modal
    mass = modal.rest_mass + np.einsum("kui,kvi->uv", modal.linear, modal.linear)
    assert mass == pytest.approx(np.array([[0.5]]))
    assert len(link.pieces()) == 8


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("[[0.0, np.sin(np.pi * x / params.length), 0.0]]", "[0.0]"),
        ("np.sin(", "np.sinus("),
        ("[[100.0]]", "[[-100.0]]"),
        ("    return ShapeFunctions", "    ShapeFunctions"),
    ],
)
def test_shapes_that_are_wrong(reading, said, old, new):
    assert read(reading, SHAPES.replace(old, new)) is None
    said(map(str, reading.errors))


def test_parameters_that_are_wrong(reading, said):
    assert read(reading, SHAPES, {"length": "-1 m"}) is None
    said(map(str, reading.errors))


def test_the_examples_of_the_page_on_files_work(reading, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    table, shapes = blocks(PAGES["howto/elastic-links-from-files.md"], "python")
    exec(table, {})
    rod = read_elastic_table(tmp_path / "rod.npz")
    assert rod.mass == pytest.approx(0.4)
    found = read(reading, shapes).link()
    assert found.mass == pytest.approx(0.25)
    assert not reading.errors
