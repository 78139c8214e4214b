"""The report of an identification: how well its numbers predict the drives, the numbers, and what they rest on."""

from __future__ import annotations

import math
from contextlib import ExitStack

from cosim.apps.identification.base_numbers import MEANING, BaseNumber
from cosim.apps.identification.report_charts import COLORS, bands_of, draw_drive, draw_recordings, draw_residual
from cosim.apps.identification.results import FoundNumber, Identification
from cosim.core.errors import listed
from cosim.core.units import show_percent, unit_sign
from cosim.output.report_page import ReportPage

NO_BREAK = "\u00a0"
OPEN = 2  # recordings that check whose charts are open; more are folded


def report_page(found: Identification) -> ReportPage:
    page = ReportPage(f"Identification of {found.rig.run_spec.name}")
    if found.is_judged:
        _add_judgement(page, found)
        _add_drives(page, found)
        return page
    paths = listed([of.path for of in found.unexplained if of.training])
    page.text(
        f"From {paths}: {found.about.replace('_', ' ')};"
        f" {found.sample_numbers[0]} samples for training, {found.sample_numbers[1]} for validation.",
        note=True,
    )
    if found.failure:
        page.text(f"Not to be used: {found.failure}.")
    _add_checks(page, found)
    _add_numbers(page, found)
    _add_drives(page, found)
    return page


# --- how well ---


def _add_judgement(page: ReportPage, found: Identification) -> None:
    left = show_percent(found.residual(training=False).whole)
    page.heading("Validation")
    page.text(
        f"The numbers of the rig leave {left} of the drives unexplained. No number is found from these recordings."
        " Below, root mean squares of each joint, without the samples in which it turns round."
    )
    rows = [
        [check.joint, *(f"{size:.3g} {unit_sign(found.unit_of(check.joint))}" for size in (check.drive, check.after)),
         show_percent(check.part)]
        for check in found.checks
    ]  # fmt: skip
    page.table(["joint", "drive", "unexplained", "of the drive"], rows)
    _add_notes(page, found)


def _add_checks(page: ReportPage, found: Identification) -> None:
    of_training, of_rest = (show_percent(found.residual(training).whole) for training in (True, False))
    page.heading("Validation")
    page.text(
        f"The found numbers leave {of_training} of the drives unexplained in training, and {of_rest} in what was not"
        " used to find them. Below, root mean squares of each joint, without the samples in which it turns round. The"
        " floor is what the least squares of this model leave in training where bodies may be impossible: what is far"
        " above it, the bounds of possible ones cost; what the floor itself leaves, the model lacks, or is noise."
    )
    if clusters := found.estimate.clusters:
        page.text(
            f"Intervals come from {clusters} parts of the recordings, each taken as independent of the others.",
            note=True,
        )
    bands = bands_of(found)
    rows = []
    for check, band in zip(found.checks, bands, strict=True):
        parts = (
            check.before / check.drive if check.drive else math.nan,
            check.trained / (found.bounded.get(check.joint) or math.nan),
            check.trained,
            check.part,
            band.inside,
        )
        shown = ("–" if math.isnan(part) else show_percent(part) for part in parts)
        rows.append([check.joint, f"{check.drive:.3g} {unit_sign(found.unit_of(check.joint))}", *shown])
    page.table(["joint", "drive", "left by the rig", "floor", "in training", "in the check", "inside the band"], rows)
    if found.laws:
        page.text(
            "Laws of friction that were tried, each with what it leaves in training and in each part that checks. One"
            " is taken where it lowers all of the latter.",
            note=True,
        )
        page.table(["law", "training", "checks", ""], found.rows_of_laws)
    beyond = [f"{joint} is {what}" for joint, what in found.extrapolations.items()]
    if beyond:
        page.text(f"In the check {listed(beyond)}.")
    _add_notes(page, found)


def _add_notes(page: ReportPage, found: Identification) -> None:
    notes = [*found.warnings, *found.notes]
    if notes:
        with page.folded("How the recordings were read"):
            page.listing(notes)


def _add_drives(page: ReportPage, found: Identification) -> None:
    page.heading("Drives")
    band = "" if found.is_judged else ", with a band that held 95 % of the samples in training"
    page.text(
        f"Measured and predicted{band}. The residual is measured less"
        " predicted. A curve over speed looks like friction of another law, a slope over |drive| times the direction of"
        " motion like friction that grows with the load, a step of both at 0 like dry friction that is missing. In the"
        " spectrum, what lies in the grey is filtered away before the fit."
    )
    page.legend(COLORS)
    bands = bands_of(found)
    checking = [left for left in found.unexplained if len(left.t) > left.training]
    for number, left in enumerate(checking):
        with ExitStack() as folds:
            if number >= OPEN:
                folds.enter_context(page.folded(left.path))
            elif len(checking) > 1 or not left.training:
                page.text(left.path, note=True)
            for k in range(len(left.joints)):
                page.charts([draw_drive(found, left, k, bands[k]), *draw_residual(found, left, k)])


# --- the numbers ---


def _add_numbers(page: ReportPage, found: Identification) -> None:
    page.heading("Numbers")
    if not found.base:
        _add_table(page, found.numbers)
        page.heading("What is not identifiable from this motion")
        _add_blind(page, found)
        return
    known = [number for number in found.numbers if number.state == "found"]
    _add_table(page, known)
    base = [number for number in found.base if number.of_links]
    if base:
        page.text(
            "Of bodies the motion determines these combinations, whose values hold for each of the ways to split them"
            f" among the bodies: {MEANING}. The last column: the greatest part of a drive that each makes."
        )
    clear, rest = ([number for number in base if number.clear is sure] for sure in (True, False))
    if clear:
        _add_combinations(page, found, clear)
    if rest:
        with page.folded(f"{len(rest)} more combinations that are 0 within their intervals"):
            _add_combinations(page, found, rest)
    alone = [number for number in found.base if number.alone and number.clear]
    if alone:
        page.text(
            "Each recording by itself, beside the interval of 95 % of all together (grey), by least squares without"
            " bounds. One recording knows less than all, so its dots scatter more; dots that lie far outside with"
            " others far on the other side are of numbers that differ between the recordings."
        )
        page.listing([f"{k + 1}: {of.path}" for k, of in enumerate(found.unexplained[: len(alone[0].alone)])])
        page.charts([draw_recordings(alone)])
    others = [number for number in found.numbers if number.state != "found"]
    if others or found.unseen:
        what = f"{len(others)} numbers that are found only in combination, or not at all"
        with page.folded(what if others else "What is not identifiable from this motion"):
            _add_table(page, others)
            _add_blind(page, found)


def _add_table(page: ReportPage, numbers: list[FoundNumber]) -> None:
    if not numbers:
        return
    rows = [
        [n.name, f"{n.before:.5g}", f"{n.value:.5g}", f"±{NO_BREAK}{n.interval:.2g}", unit_sign(n.unit)]
        for n in numbers
    ]
    states = [number.state for number in numbers]
    if {*states} != {"found"}:
        rows = [[*row, state] for row, state in zip(rows, states, strict=True)]
    page.table(["number", "in the rig", "found", "95 %", "unit", "state"][: len(rows[0])], rows)


def _add_combinations(page: ReportPage, found: Identification, numbers: list[BaseNumber]) -> None:
    joints = found.motions[0].joints
    rows = [
        [
            number.name,
            f"{number.value:.4g}",
            f"±{NO_BREAK}{number.interval:.2g}",
            unit_sign(found.unit_of_base(number)),
            f"{joints[number.joint]} {show_percent(number.fraction)}".replace(" ", NO_BREAK),
        ]
        for number in numbers
    ]
    page.table(["combination", "found", "95 %", "unit", "acts"], rows)


def _add_blind(page: ReportPage, found: Identification) -> None:
    blind = [f"{quantity.title} is not identifiable" for quantity in found.unseen]
    blind += [f"{quantity.title} only in combination with others" for quantity in found.unsure]
    page.listing(blind or ["everything else is"])
