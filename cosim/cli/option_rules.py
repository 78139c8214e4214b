"""Options that mean nothing without another one, or beside one: they are refused, not ignored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cosim.core.errors import InputError

Rules = Mapping[str, Mapping[str, Sequence[str]]]

_OF_HARDWARE = ("--trial", "--candidates", "--step-factor", "--yes")
_OF_COGGING = ("--order", "--speed", "--effort", "--travel", "--yes", "--clear-faults")
_OF_EQUATIONS = ("--symbols", "--frame", "--load", "--point-masses")
_OF_SEARCH = (
    *("--parameter", "--minimise", "--limit", "--plant", "--samples", "--robust", "--optimiser", "--trials", "--batch"),
    *("--seed", "--duration", "--session", "--resume", "--dask", "--set", "--overlay"),
)
# command -> option -> the options of which it needs one
NEEDED: Rules = {
    "analyze": {"--amplitude": ("--measure", "--excitation"), "--yes": ("--measure",)},
    "drives calibrate": dict.fromkeys(
        ("--order", "--speed", "--effort", "--travel", "--yes", "--clear-faults"), ("--cogging",)
    ),
    "derive": {
        **dict.fromkeys(("--joint", "--form"), ("--bondgraph",)),
        **dict.fromkeys(_OF_EQUATIONS, ("--equations",)),
        **dict.fromkeys(("--times", "--labels"), ("--picture",)),
        **dict.fromkeys(("--at", "--mount", "--on"), ("--equations", "--picture")),
        "--to": ("--bondgraph", "--equations"),
        "--json": ("--compare",),
    },
    "export code": {"--trust": ("--check",)},
    "replay": {"--to": ("--bus",), "--trust": ("--rerun", "--bus")},
    "run": {"--record-bus": ("--record",)},
    "tune gains": dict.fromkeys(_OF_HARDWARE, ("--on-hardware",)),
}
# command -> option -> the options that have no effect beside it
USELESS: Rules = {
    "analyze": {"--excitation": ("--at", "--recorded", "--plot", "--json")},
    "derive": {"--at": ("--times",), "--mount": ("--times",)},
    "identify": {"--excite": ("--training",)},
    "tune feedforward": {"--from": ("--iterations",)},
    "replay": {"--bus": ("--telemetry", "--speed", "--rerun")},
    "tune gains": {"--replay": _OF_SEARCH, "--trial": ("--candidates",)},
}


def check_options(command: str, words: Sequence[str]) -> None:
    """words: of the command line. Raises InputError for the first option that would be ignored."""
    given = {word.partition("=")[0] for word in words if word.startswith("-")}
    for option, needed in NEEDED.get(command, {}).items():
        if option in given and given.isdisjoint(needed):
            raise InputError(f"is for {' or '.join(needed)}; add it, or take {option} out", option)
    for option, useless in USELESS.get(command, {}).items():
        for other in (other for other in useless if option in given and other in given):
            raise InputError(f"has no effect beside {option}; take one of them out", other)
