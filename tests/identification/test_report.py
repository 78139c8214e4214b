"""The report: its curves are what it says, its parts are there, whatever was found."""

from __future__ import annotations

import re
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest

from cosim import load_rig
from cosim.apps.identification.identification import identify
from cosim.apps.identification.report import report_page
from cosim.apps.identification.report_charts import bands_of
from cosim.apps.identification.residual_spectrum import ResidualSpectrum


@pytest.fixture(scope="module")
def found(arm_file, recording):
    return identify(load_rig(arm_file), recording)


@pytest.fixture(scope="module")
def page(found):
    return report_page(found).content().decode()


def headings(page: str) -> list[str]:
    return re.findall(r"<h2>(.*?)</h2>", page)


def test_its_parts(found, page):
    assert headings(page) == ["Validation", "Numbers", "Drives"]
    charts = re.findall(r"<svg .*?</svg>", page)
    assert len(charts) == 4 * len(found.rig.joints)  # the drive, over speed, over load, the spectrum
    for chart in charts:
        ElementTree.fromstring(chart)
    assert "http" not in page
    for number in found.base:
        assert not number.of_links or f'<td class="words">{number.name}</td>' in page


def test_what_is_only_in_combination_is_folded_away(page):
    (folded,) = (text for text in re.findall(r"<details>.*?</details>", page) if "only in combination" in text)
    assert "<li>the mass of fore only in combination with others</li>" in folded
    assert "mechanism.fore.com.x" in folded and "mechanism.fore.com.x" not in page.replace(folded, "")


def test_without_base_numbers_all_are_in_one_table(arm_file, recording):
    known = identify(load_rig(arm_file), recording, ["torque_constant", "mechanism.fore.mass"])
    page = report_page(known).content().decode()
    assert headings(page) == ["Validation", "Numbers", "What is not identifiable from this motion", "Drives"]
    assert "joints.elbow.actuator.torque_constant" in page


def test_recordings_that_check_have_charts_each(arm_file, recording, tmp_path):
    rig = load_rig(arm_file)
    checks = []
    for k in range(3):
        sine = {"type": "sine", "amplitude": [0.5, 0.6], "frequency": [0.3 + 0.1 * k, 0.5], "ramp": 1}
        rig = load_rig(arm_file, [f"controllers.track.trajectory={sine}", "joints.all.actuator.viscous=0.9"])
        rig.run(record=tmp_path / f"{k}.mcap", duration=5.0)
        checks.append(tmp_path / f"{k}.mcap")
    found = identify(load_rig(arm_file), [recording, checks[0]], check=checks)
    page = report_page(found).content().decode()
    charts = re.findall(r"<svg .*?</svg>", page)
    assert len(charts) == 1 + 3 * 4 * 2  # one of the recordings by themselves
    (last,) = (text for text in re.findall(r"<details>.*?</details>", page) if f"<summary>{checks[2]}" in text)
    assert last.count("<svg") == 8  # more than two are folded
    dots = charts[0].count('r="3"')
    assert dots == 2  # in the legend


def test_the_rig_has_less_friction_so_it_predicts_less_of_what_opposes_the_motion(found):
    (left,) = found.unexplained
    for k in range(2):
        assert np.sum(left.before[:, k] * left.speed[:, k]) < 0.0  # predicted less measured
    np.testing.assert_array_equal(left.residual, -left.after)


def test_the_band_holds_95_percent_of_training(found):
    for band, joint in zip(bands_of(found), found.motions[0].joints, strict=True):
        trained = np.abs(found.counted("after", joint, training=True))
        assert np.mean(trained <= band.half) == pytest.approx(0.95, abs=2.0 / len(trained))
        checked = np.abs(found.counted("after", joint, training=False))
        assert band.inside == np.mean(checked <= band.half)


def test_the_spectrum_of_noise_and_of_a_line():
    """White noise of σ per row has a density of σ √(2 h); a sine of amplitude a the power a² / 2."""
    rng, step = np.random.default_rng(0), 0.01
    t = step * np.arange(20000)
    noise, line = 0.3 * rng.normal(size=t.size), 2.0 * np.sin(2 * np.pi * 7.0 * t)
    of = ResidualSpectrum.of(step, noise[:, None], line[:, None])
    middle = (of.frequency > 1.0) & (of.frequency < 45.0)
    assert np.sqrt(np.mean(of.drive[middle] ** 2)) == pytest.approx(0.3 * np.sqrt(2 * step), rel=0.03)
    assert of.frequency[np.argmax(of.left[:, 0])] == pytest.approx(7.0, abs=of.frequency[0])
    assert np.sum(of.left**2) * of.frequency[0] == pytest.approx(2.0, rel=0.02)


@pytest.mark.parametrize("rows", [50, 131, 2000, 2001])
def test_the_spectrum_beside_the_one_of_scipy(rows):
    from scipy.signal import welch

    values = np.random.default_rng(rows).normal(size=(rows, 2)).cumsum(axis=0)
    of = ResidualSpectrum.of(0.02, values, values**2)
    length = min(rows, max(64, rows // 8))
    frequency, power = welch(values, 50.0, nperseg=length, axis=0)
    np.testing.assert_allclose(of.frequency, frequency[1:])
    np.testing.assert_allclose(of.drive, np.sqrt(power[1:]), rtol=1e-9)


def at_rest(arm_file, recording, tmp_path):
    sine = {"type": "sine", "amplitude": [0.7, 0.0], "frequency": [0.43, 0.71], "ramp": 1}
    rig = load_rig(arm_file, [f"controllers.track.trajectory={sine}", "mechanism.gravity=[0, 0, 0]"])
    rig.run(record=tmp_path / "one.mcap", duration=8.0)
    return identify(rig, tmp_path / "one.mcap", ["joints.*.actuator.viscous", "joints.*.actuator.coulomb"])


def delayed(arm_file, recording, tmp_path):
    return identify(load_rig(arm_file), recording, ["inertia", "friction", "delay", "offset"])


def in_simulated_runs(arm_file, recording, tmp_path):
    rig = load_rig(arm_file)
    rig.run(record=tmp_path / "own.mcap", duration=6.0)
    return identify(rig, tmp_path / "own.mcap", ["friction"], method="output-error")


def refused(arm_file, recording, tmp_path):
    found = identify(load_rig(arm_file), recording, ["joints.elbow.actuator.viscous"])
    return replace(found, failure="the numbers explain nothing")


@pytest.mark.parametrize("made", [at_rest, delayed, in_simulated_runs, refused])
def test_whatever_was_found(arm_file, recording, tmp_path, made):
    found = made(arm_file, recording, tmp_path)
    page = report_page(found).content().decode()
    charts = re.findall(r"<svg .*?</svg>", page)
    assert len(charts) == 8
    for chart in charts:
        ElementTree.fromstring(chart)
        assert not re.search(r"\bnan\b|\binf\b", chart)
    assert ("Not to be used: " in page) == bool(found.failure)
    assert page.count("<details>") == page.count("</details>")
    list(found.lines()), found.as_json()
