"""Words that the project does not use, and the places where they occur.

`python -m tests.docs.words [FOLDER OR FILE …]` prints every occurrence in names, strings and pages, by file.
docs/explanation/words.md has the terms that are used instead.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
CODE = ("cosim", "drivers", "controllers")
PAGES = ("docs", "README.md", "CONTRIBUTING.md")

# pattern in prose (messages, docstrings, pages) -> the term that is used
PROSE: dict[str, str] = {
    r"\btold\b|(?<!cannot )\btells?\b|\btelling\b": "reported, reports",
    r"\bsays\b|; say\b": "reports, states; pass, give",
    r"\bmend(s|ed|ing)?\b": "fix",
    r"\bspells?\b": "occurrences",
    r"\bhappenings?\b": "events",
    r"\bserial lines?\b|\bhalf-duplex lines?\b": "serial link",
    r"\blines? (to|of|behind) (real )?(drives?|motors?|drivers?)\b|\bline is lost\b|\blost lines?\b": "bus, connection",
    r"\b(whose|on the|end of (its|the)|of every|per) lines?\b(?! of)": "bus, serial link",
    r"\bshares? of (the|its)\b|% of (its|the) bit rate": "fraction; bus load",
    r"\brights\b": "real-time privileges",
    r"(?<!depend )(?<!depends )\bon time\b|\bby the clock\b": "in real time",
    r"\bg[ia]ve[sn]? up\b|\bgiving up\b|\brate asked for\b|\bpace\b": "clock slip; abandoned; real-time factor",
    r"\brehears\w*": "timing pre-check",
    r"\blate wakes?\b|\bw[ao]ke(s|n)? (up )?(too )?late\b": "wake-up latency",
    r"(?<!index )\bpulses?\b|\bpulsed\b": "external trigger",
    r"`most`|`grace`|\bgrace\b": "max_consecutive, warm_up",
    r"\bat once\b|\bc[oa]me?s? to rest\b|\bcoming to rest\b": "immediate stop; controlled stop; together",
    r"\blet(s|ting)? go\b|\bshorted phases\b": "torque off, coasting; dynamic braking",
    r"\bask(s|ed|ing)? for\b(?!\s+confirmation)": "commanded, setpoint; requests",
    r"\beffort (that )?(a|its|the|this) motion takes\b": "required effort",
    r"\bobserved (position|velocity|acceleration|motion|one)\b|\bare observed\b": "estimated",
    r"\bdriven, free\b|`driven`": "actuated, passive",
    r"\bjoints? that (only )?(turns?|slides?)\b|\bone that (turns|slides)\b": "rotational, linear",
    r"\bat ease\b": "unloaded",
    r"\bcarriers?\b": "moving base",
    r"/gap\b|\bgap_max\b|\bgap of (a|the) (loop|constraint)\b|`closing`|mechanism\.closing\b": "constraint violation",
    r"(?<!Baumgarte\s)\bstabilisation\b": "Baumgarte stabilisation",
    r"`counts`": "counts_per_revolution",
    r"\bslots?\b|\bquantum\b": "feedforward field, resolution",
    r"\btroubles?\b|\bwarming\b|`rise`": "fault cause, thermal time constant, temperature rise",
    r"\bmakers?\b|\bdearest\b": "manufacturer; slowest",
    r"\bseal(s|ed|ing)?\b": "append a checksum",
    r"\bwitness(es)?\b": "third-party references",
    r"(?<!SIMD )\blanes?\b": "engine; SIMD lanes",
    r"\bfine\b": "OK",
    r"\bnobody can be asked\b": "no terminal to confirm on",
    r"\bfallen\b|\brescues?\b": "fallback active, fallback",
    r"\bself-willed\b": "drives that close their own loop",
}

# word of an identifier (between underscores and capitals) -> the term that is used
NAMES: dict[str, str] = {
    "told": "reported",
    "mend": "fix",
    "mends": "fixes",
    "spell": "occurrence",
    "spells": "occurrences",
    "happening": "event",
    "happenings": "events",
    "rights": "privileges",
    "rehearse": "check_schedulable",
    "rehearsal": "schedulability",
    "rehearsed": "checked",
    "pulse": "trigger",
    "pulsed": "triggered",
    "grace": "warm_up",
    "most": "max_consecutive",
    "dropped": "lost rows",
    "observed": "estimated",
    "driven": "actuated",
    "turning": "rotational",
    "sliding": "linear",
    "carrier": "moving_base",
    "gap": "violation",
    "closing": "loop closure",
    "stabilisation": "baumgarte",
    "counts": "counts_per_revolution",
    "slot": "feedforward field",
    "slots": "feedforward fields",
    "quantum": "resolution",
    "trouble": "fault cause",
    "troubles": "fault causes",
    "warming": "thermal_time_constant",
    "rise": "temperature_rise",
    "maker": "manufacturer",
    "dearest": "slowest",
    "seal": "append_checksum",
    "sealed": "checksum",
    "witness": "reference",
    "witnesses": "references",
    "lane": "engine",
    "lanes": "simd_lanes",
    "fallen": "fallback_active",
    "rescue": "fallback",
    "rests": "standstill",
    "verdict": "stop_reason",
    "neighbour": "sink_process",
    "share": "fraction",
}

# words of NAMES that only count as a whole identifier
WHOLE = {"most", "dropped", "share", "rise", "observed", "gap", "counts", "rests", "turning", "sliding"}

# (path, pattern of the occurrence in its context, reason)
EXCEPTIONS: tuple[tuple[str, str, str], ...] = (
    ("cosim/compile/", r"(?i)lane", "SIMD lanes: this room has no other"),
    ("cosim/deploy/", r"(?i)lane", "SIMD lanes: this room has no other"),
    (
        "cosim/(timing/(simd_loop|reverse_loop|rollout_program|loop_text)|bench/rows_deploy)",
        r"(?i)lane",
        "SIMD lanes: these files have no other",
    ),
    ("cosim/compile/(cpython_entry|split)", r"slot", "stack slots of emitted code"),
)


class Found(NamedTuple):
    path: str
    line: int
    kind: str
    text: str
    instead: str


def words_of(name: str) -> list[str]:
    """`RightsTaken_byName` -> rights, taken, by, name."""
    return [word.lower() for part in name.split("_") for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", part)]


def public_names(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Classes, functions, arguments, fields and module-level values without a leading underscore."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.lineno, node.name
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and not node.name.startswith("_"):
            for arg in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs):
                yield arg.lineno, arg.arg
        body = node.body if isinstance(node, (ast.ClassDef, ast.Module)) else []
        for inner in body:
            if isinstance(inner, ast.AnnAssign) and isinstance(inner.target, ast.Name):
                yield inner.lineno, inner.target.id
            elif isinstance(inner, ast.Assign):
                yield from ((inner.lineno, target.id) for target in inner.targets if isinstance(target, ast.Name))


def in_prose(path: str, line: int, kind: str, text: str) -> Iterator[Found]:
    for pattern, instead in PROSE.items():
        for match in re.finditer(pattern, text):
            around = " ".join(text[max(match.start() - 45, 0) : match.end() + 30].split())
            yield Found(path, line + text.count("\n", 0, match.start()), kind, f"{match[0]!r} in …{around}…", instead)


@cache
def in_file(file: Path) -> tuple[Found, ...]:
    """Of a file of Python or a page; none of others."""
    search = {".py": in_code, ".md": in_page}.get(file.suffix)
    return () if search is None else tuple(search(file))


def in_code(file: Path) -> Iterator[Found]:
    path = str(file.relative_to(ROOT))
    tree = ast.parse(file.read_text(encoding="utf-8"))
    named = [(1, file.stem), *public_names(tree)]
    for line, name in named:
        for word in words_of(name):
            if word in NAMES and not name.startswith("_") and (word not in WHOLE or name.lower() == word):
                yield Found(path, line, "name", name, NAMES[word])
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from in_prose(path, node.lineno, "string", node.value)


def in_page(file: Path) -> Iterator[Found]:
    yield from in_prose(str(file.relative_to(ROOT)), 1, "page", file.read_text(encoding="utf-8"))


def excepted(found: Found, exceptions: tuple[tuple[str, str, str], ...] = EXCEPTIONS) -> bool:
    return any(re.search(path, found.path) and re.search(text, found.text) for path, text, _ in exceptions)


def all_found(paths: tuple[str, ...]) -> list[Found]:
    """Every occurrence in these files and folders, in order of path and line."""
    found: set[Found] = set()
    for name in paths:
        place = ROOT / name
        for file in [place] if place.is_file() else sorted(place.rglob("*")):
            if any(part.is_symlink() for part in file.parents):
                continue  # cosim/drivers and cosim/controllers are checked as drivers/ and controllers/
            found.update(in_file(file))
    return sorted(found)


def offenders(paths: tuple[str, ...] = (*CODE, *PAGES)) -> list[Found]:
    """Every occurrence in these files and folders that no exception covers."""
    return [one for one in all_found(paths) if not excepted(one)]


if __name__ == "__main__":
    listed = offenders(tuple(sys.argv[1:]) or (*CODE, *PAGES))
    for one in listed:
        print(f"{one.path}:{one.line}: {one.kind} {one.text}; use: {one.instead}")
    print(f"{len(listed)} in {len({one.path for one in listed})} files")
