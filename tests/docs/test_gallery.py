"""The gallery: its commands exist, and what they make becomes figures and formulas of the page."""

from __future__ import annotations

import importlib.util
import re
import shlex
import xml.etree.ElementTree as ET
from types import ModuleType

import pytest

from cosim.cli.command_line import parse
from tests.docs.documents import ROOT

MATHML = "{http://www.w3.org/1998/Math/MathML}"
DOCS = ROOT / "docs"
TEXT = (DOCS / "gallery.md").read_text(encoding="utf-8")
SECTIONS = {part.partition("\n")[0]: part for part in re.split(r"^## ", TEXT, flags=re.MULTILINE)[1:]}


@pytest.fixture(scope="module")
def gallery() -> ModuleType:
    """The hook of mkdocs."""
    spec = importlib.util.spec_from_file_location("gallery", DOCS / "gallery.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("section", SECTIONS)
def test_every_mechanism_has_its_picture_its_graph_and_its_equations(gallery, section):
    found, built = gallery.MARK.findall(SECTIONS[section]), gallery.BUILT.findall(SECTIONS[section])
    assert len(found) + len(built) == SECTIONS[section].count("<!--")
    assert all((ROOT / rig).is_file() for _, rig in built)
    modes = [mode for words in found for mode in ("--picture", "--graph", "--equations") if mode in shlex.split(words)]
    assert modes == ["--picture", "--graph", "--equations"]
    for words in found:
        command, rig, *rest = shlex.split(words)
        assert (ROOT / rig).is_file(), rig
        parse([command, rig, "F.svg", *rest])  # raises InputError for an option that does not exist


def test_a_picture_becomes_a_figure(gallery, tmp_path):
    words = "derive rigs/mechanisms/four_bar.yaml --picture --at 0,-0.93,-1.57"
    assert gallery.run(words, tmp_path / "1.svg").startswith("four_bar: planar, 4 joints, 1 posture")
    assert "<svg" in (tmp_path / "1.svg").read_text()
    assert gallery.figure(words, "gallery/1.svg") == (
        '<figure class="mechanism"><img src="gallery/1.svg" alt="the mechanism four_bar" loading="lazy"><figcaption>'
        "<code>cosim derive rigs/mechanisms/four_bar.yaml F.svg --picture --at 0,-0.93,-1.57</code>"
        "</figcaption></figure>"
    )


def test_a_page_becomes_a_frame_beside_a_link(gallery, tmp_path):
    ((words, rig),) = gallery.BUILT.findall(SECTIONS["Four-bar linkage"])
    assert gallery.simulated(rig, tmp_path).read_text(encoding="utf-8").startswith("<!doctype html>")
    assert gallery.frame(words, "gallery/four_bar.html") == (
        '<figure class="simulated"><iframe src="gallery/four_bar.html#paused" title="four_bar, simulated"'
        ' loading="lazy"></iframe><figcaption><a href="gallery/four_bar.html">Open alone</a>:'
        " <code>cosim export code rigs/mechanisms/four_bar.yaml --target page</code></figcaption></figure>"
    )


def test_equations_become_formulas_and_comparisons_stay_text(gallery, tmp_path):
    words = 'derive rigs/two_link.yaml --equations --point-masses --at "0.5, -1; 1, 2; 3, 4"'
    printed = gallery.run(words, tmp_path / "1.tex")
    html = gallery.equations(words, (tmp_path / "1.tex").read_text(), printed)
    folded, _, compared = html.partition("</details>")
    assert folded.startswith('<details class="derived" open><summary>Equations: <code>cosim derive')
    assert "<pre><code>Bodies are point masses" in folded
    formulas = [ET.fromstring(found) for found in re.findall(r'<div class="equations">(.*?)</div>', folded)]
    names = [re.sub(r"<math.*?</math>", "", found) for found in re.findall(r"<p>(.*?)</p>", folded)]
    assert len(names) == 6
    assert len(formulas) == 7  # and the equation of motion
    inertia = formulas[1 + names.index(" (), inertia; symmetric:")]
    rows = ["".join(row.itertext()).replace(" ", "") for row in inertia.iter(f"{MATHML}mtr")]
    assert rows == ["M1,1=0.144cos(q2)+0.299", "M1,2=0.072cos(q2)+0.027", "M2,2=0.027"]
    assert compared.splitlines()[1].split() == ["1", "shoulder", "11.3583", "11.2043", "-0.154", "N*m"]


def test_long_equations_are_folded(gallery, tmp_path):
    words = "derive rigs/mechanisms/measuring_arm.yaml --equations --frame probe"
    printed = gallery.run(words, tmp_path / "1.tex")
    html = gallery.equations(words, (tmp_path / "1.tex").read_text(), printed)
    assert html.startswith('<details class="derived"><summary>')
    assert html.endswith("</details>")
    assert "\\" not in re.sub(r"<code>.*?</code>", "", html)  # no LaTeX is left
