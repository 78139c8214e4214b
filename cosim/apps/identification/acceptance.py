"""Whether found numbers are to be used: what they explain of the recordings that check them."""

from __future__ import annotations

from collections.abc import Callable

from cosim.apps.identification.blocks import GAIN
from cosim.apps.identification.results import Identification, JointCheck
from cosim.apps.identification.suspicions import LEAST_EXPLAINED
from cosim.core.units import show_percent

DOUBTFUL = 0.95  # of numbers that explain less, signs and units are tried
WORSE = 1.2  # times what the rig leaves unexplained
EXACT = 1e-3  # of a drive: less is explained
UNSTABLE = 2.0  # times the part of the drive that is left in training …
NOTICEABLE = 0.1  # … where that is so much of the drive


def failure_of(found: Identification, cause: Callable[[], str]) -> str:
    """Why the numbers are not to be used, with the likely cause, or ""."""
    moving = [check for check in found.checks if check.drive > 0.0 and check.explained == check.explained]
    unexplained = [check for check in moving if check.explained < LEAST_EXPLAINED]
    doubtful = min(moving, key=lambda check: check.explained, default=None)
    if doubtful is not None and doubtful.explained < DOUBTFUL:
        likely = cause()
        whose, where = ("the rig's numbers", "") if found.is_judged else ("the numbers", " in the part that checks")
        what = f"{whose} explain {_percent(doubtful.explained)} of the mean square of {_signal(found, doubtful)}{where}"
        if unexplained:
            others = "".join(
                f", {_percent(of.explained)} of {_signal(found, of)}" for of in unexplained if of != doubtful
            )
            what += f"{others}, {_percent(LEAST_EXPLAINED)} are needed"
            return f"{what}; {likely or 'no other sign or unit explains it, so check both in the drives and the rig'}"
        if likely:
            return f"{what}, but {likely}"
    for check in moving:
        if check.after > max(WORSE * check.before, EXACT * check.drive):
            what = f"of {_signal(found, check)} the found numbers leave {check.after:.3g} in the part that checks, and"
            return f"{what} those of the rig {check.before:.3g}; train with a motion that is more like it"
    for number in found.numbers:
        if number.name.startswith(GAIN) and number.state != "found":
            joint = number.name.removeprefix(GAIN)
            what = f"the gain of {joint} does not follow from these loads: {number.value:.3g} ± {number.interval:.2g}"
            fix = f"name the gains to be found by --fit, such as {GAIN}{found.rig.joints[0]}"
            return f"{what}; give a load that it lifts, or {fix}"
    for check in moving:
        trained, checked = check.trained, check.after / check.drive
        if checked > max(UNSTABLE * trained, NOTICEABLE):
            what = f"of {_signal(found, check)} {_percent(checked)} are left in the part that checks, and"
            what += f" {_percent(trained)} in training{found.extrapolation(check.joint)}"
            return f"{what}; train with a motion that is more like it"
    return ""


def _signal(found: Identification, check: JointCheck) -> str:
    return f"{check.joint}/{found.source}"


def _percent(fraction: float) -> str:
    return show_percent(max(fraction, 0.0))
