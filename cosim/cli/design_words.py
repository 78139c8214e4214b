"""The words of commands that find numbers: `tune gains` and `identify`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cosim.cli.command_tree import Word, flag, word

MANY: dict[str, Any] = {"action": "append", "default": []}
TABLE = (
    word(
        "--unit", metavar="NAME=UNIT", help="unit of t, position, effort, a joint or a column; may be repeated", **MANY
    ),
    word(
        "--column",
        metavar="NAME=COLUMN",
        help="column of t, a joint or JOINT/position, or of position those of all joints: q1..q6; may be repeated",
        **MANY,
    ),
    word("--gain", metavar="NAME=GAIN", help="of a column, such as 'effort=1.4,0.7 N*m/A'; may be repeated", **MANY),
    word("--topic", metavar="NAME", help="topic of an MCAP file with several"),
)


def tuning_words() -> Iterator[Word]:
    """The options of a session, which add to the section `tuning` of the rig or replace it."""
    pairs = (
        ("--parameter", "parameters", "NAME=LOW..HIGH", "what is varied, e.g. arm.kp=10..2000 or arm.kd=x0.2..x5"),
        ("--minimise", "minimise", "METRIC=WEIGHT", "a term of the cost, e.g. error_rms or effort_rms=0.001"),
        ("--limit", "limits", "METRIC=BOUND", "a bound that must hold, e.g. 'overshoot=5 %%' or disk_margin=0.5"),
        ("--plant", "plants", "NUMBER=FRACTION", "perturbed plants, e.g. 'inertia=20 %%'"),
    )
    for name, key, metavar, about in pairs:
        yield word(name, dest=key, metavar=metavar, action="append", default=[], help=f"{about}; may be repeated")
    yield word("--measured", metavar="F.csv", help="a log of the machine, or a recording, for the figure misfit")
    yield from TABLE
    yield word("--samples", metavar="N", type=int, help="so many random plants instead of the corners")
    yield word("--robust", choices=("worst", "mean"), help="how the costs of the plants become one; default: worst")
    names = "cma, de, gradient, relay, shape, sobol, tpe"
    yield word("--optimiser", metavar="NAME", help=f"what proposes the trials: {names}; default: tpe")
    yield word("--trials", metavar="N", type=int, help="after which it ends; default: 200")
    yield word("--batch", metavar="N", type=int, help="trials that are proposed together; default: 16")
    yield word("--seed", metavar="N", type=int, help="of all random numbers; default: 0")
    yield word("--duration", metavar="S", help="of each run, e.g. 2.5 or 500 ms; default: the rig's")
    yield word("--session", metavar="FOLDER", help="where it is kept; default: tuning/RIG_1, _2, …")
    yield flag("--resume", "go on with a session, by default with the latest one of the rig")
    yield word("--dask", metavar="ADDRESS", help="of a Dask scheduler whose workers evaluate, e.g. tcp://host:8786")
    yield word("--on-hardware", metavar="RIG", type=Path, help="try the best trials on this rig with real motors")
    yield word("--replay", metavar="SESSION", type=Path, help="trials of this session, without another search")
    numbers = {"type": int, "action": "append", "default": []}
    yield word("--trial", metavar="N", help="try this trial instead; may be repeated", **numbers)
    yield word("--candidates", metavar="N", type=int, default=3, help="how many trials are tried; default: 3")
    yield word("--step-factor", metavar="X", type=float, default=1.5, help="of a gain between two runs; default: 1.5")
    yield flag("--yes", "run real motors without confirmation before each run")


RECORDINGS = word(
    "recordings",
    metavar="F.mcap",
    nargs="*",
    help="recordings, or tables (.csv), all in one fit; what is known of one alone behind its path, as in"
    " F.csv:load='2 kg@tool':zero='elbow -90 deg':offset='elbow 0.3 N*m':delay='8 ms'",
)
IDENTIFY = (
    word("--check", metavar="F.mcap", nargs="+", default=[], help="recordings that check the numbers"),
    word(
        "--fit",
        metavar="A,B",
        default="",
        help="inertia, friction, torque_constant, rotor_inertia, elasticity, delay, offset, gain, or numbers of the"
        " rig; default: inertia,friction",
    ),
    word(
        "--friction",
        choices=("ladder",),
        help="try laws of friction of growing detail; each is taken where it lowers the residual of every check",
    ),
    word(
        "--motor",
        metavar="JOINT=ROTOR",
        dest="motors",
        action="append",
        default=[],
        help="the columns of a joint are those of a coupled rotor of the mechanism; may be repeated",
    ),
    word("--fixed", metavar="A,B", default="", help="joints that do not move in the recordings"),
    flag("--offset", "find a constant offset of each recorded signal of drives too"),
    word(
        "--method",
        choices=("equation-error", "output-error"),
        help="errors of the equations of motion, or of simulated runs; default: the former where the rig allows it",
    ),
    word("--cutoff", metavar="HZ", help="of the filter of the errors; default: from the noise, 2 to 10 Hz"),
    *TABLE,
    word("--training", metavar="X", type=float, default=0.7, help="first fraction, to fit; default: 0.7"),
    word("-o", dest="output", metavar="F.yaml", help="write an overlay; with --excite the motion (.csv)"),
    word("--report", metavar="F.html", help="write a report in one file"),
    word("--json", metavar="F.json", help="write the figures; - for stdout"),
    flag("--excite", "design a motion to record instead"),
    word("--duration", metavar="S", help="of that motion; default: 20 s"),
    word("--seed", metavar="N", type=int, help="of that motion: another number gives another one; default: 0"),
    flag("--anyway", "write the overlay even if its numbers explain too little of the recording"),
)
