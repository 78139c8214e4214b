"""`cosim drives scan`: the drives on a bus or serial port, as all families that can be searched for answer there."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal, Protocol, get_args, get_type_hints

import yaml

from cosim.core.driver_contract import BusItem, Connection
from cosim.core.errors import InputError, RunError, SourceLocation
from cosim.output import console
from cosim.output.output_files import check_output
from cosim.rig.reading import schema
from cosim.rig.reading.driver_family import DriverFamily, families, hook
from cosim.rig.reading.schema import Reading
from cosim.rig.reading.yaml_source import read_value
from cosim.rig.wiring.detect_family import bare_link, gather

SEND_NS = 100_000_000  # for one item
BURST, BURST_NS = 32, 5_000_000  # items that queues of adapters and drives hold, and the time in which they are sent
MAX_ITEMS = 20_000  # answers to one question, so that a babbling node cannot block the search
Key = Literal["bus", "port"]
FIRST_KEYS: dict[Key, tuple[str, str]] = {"bus": ("channel", "socketcan"), "port": ("port", "")}


def scan_bus(bus: str | None, port: str | None, family: str | None, output: Path | None) -> None:
    """Print the drives on a connection, and write the section `drivers` of a rig.

    Raises InputError for a connection that cannot be opened or that is in use, RunError where no drive answers.
    """
    key, section = connection_of(bus, port)
    if output is not None:
        check_output(output, "-o", (".yaml", ".yml"))
    name = bus or port
    with console.busy(f"searching {name}"):
        reports = scan(key, section, family)
    for line in report_lines(reports):
        print(line)
    text = drivers_text(reports, key, f"found by cosim drives scan --{key} '{name}'")
    if not text:
        raise RunError(f"no drive answers; check its power, its cable and the bit rate of --{key}", str(name))
    if output is None:
        print(f"\n{text}", end="")
    else:
        output.write_text(text, encoding="utf-8")
        print(f"wrote    {output}")


class ScannedDrive(Protocol):
    """A drive that a family has found."""

    keys: Mapping[str, float | str]
    about: str
    listens: frozenset[int]


@dataclass
class FamilyReport:
    """What the search of one family gave; skipped: why it was not searched for; withheld: identifiers at which other
    drives would have taken its questions for commands; finds: what it can find, where that is not every drive."""

    family: str
    section: dict[str, Any]  # its connection, as in a rig
    drives: list[ScannedDrive] = field(default_factory=list)
    skipped: str = ""
    withheld: list[int] = field(default_factory=list)
    finds: str = ""


def connection_of(bus: str | None, port: str | None) -> tuple[Key, dict[str, Any]]:
    """The key and section of the connection that the options give. Raises InputError."""
    if (bus is None) == (port is None):
        raise InputError("give either --bus or --port", "cosim drives scan")
    key: Key = "bus" if bus is not None else "port"
    text, option = (bus or port or ""), f"--{key}"
    if ": " not in text:
        name, interface = FIRST_KEYS[key]
        return key, {"interface": interface, name: text} if interface else {name: text}
    data = read_value(f"{{{text}}}", SourceLocation(option))
    if not isinstance(data, dict):
        raise InputError(f"expected a name, or keys and values, got '{text}'", option)
    return key, data


def scan(
    key: Key, section: dict[str, Any], family: str | None = None, progress: Callable[[str], object] = lambda what: None
) -> list[FamilyReport]:
    """Search for the drives of a family, or of all, on a connection; motors stay off, and settings as they are.

    progress: receives what is being searched for. Raises InputError for a connection that cannot be opened, that
    another program uses, or that its family does not have.
    """
    reports: list[FamilyReport] = []
    known = [(name, module, hook(module, "scan")) for name, module in families(family)]
    for name, module, search in sorted(known, key=lambda each: (getattr(each[2], "ORDER", 0), each[0])):
        if search is None:
            reports.append(FamilyReport(name, section, skipped="cannot be scanned: its family has no search"))
        elif key not in get_type_hints(module.Params):
            reports.append(FamilyReport(name, section, skipped=f"has no '{key}'"))
        else:
            progress(name)
            reports.append(_search_rates(name, module, search, key, section, reports))
    if family is not None and reports[0].skipped:
        raise InputError(f"{family}: {reports[0].skipped}", f"--{key}")
    return sorted(reports, key=lambda report: report.family)


def _search_rates(
    name: str, module: DriverFamily, search: Any, key: Key, section: dict[str, Any], before: list[FamilyReport]
) -> FamilyReport:
    """The search of a family; on a serial port without a given bit rate at all of its rates, until drives answer."""
    if key == "bus" or "baudrate" in section:
        return _search(name, module, search, key, section, before)
    report = FamilyReport(name, section)
    for rate in search.BAUDRATES:
        report = _search(name, module, search, key, {**section, "baudrate": rate}, before)
        if report.drives:
            break
    return report


def _search(
    name: str, module: DriverFamily, search: Any, key: Key, section: dict[str, Any], before: list[FamilyReport]
) -> FamilyReport:
    params, why = _params(module, key, section)
    report = FamilyReport(name, section, skipped=why, finds=getattr(search, "FINDS", ""))
    if params is None:
        return report
    link = bare_link(module, params, partial(_place, key))
    link.reserve(search.commands())
    listening = {number for other in before for drive in other.drives for number in drive.listens}
    try:
        link.open()
        report.drives = list(_ask(link, search.search(getattr(params, key)), listening, report.withheld))
    finally:
        link.close()
    return report


def _place(key: Key, *keys: str | int) -> SourceLocation:
    return SourceLocation(f"--{key}", key=".".join(map(str, keys[1:])))


def _params(module: DriverFamily, key: Key, section: dict[str, Any]) -> tuple[Any, str]:
    """(parameters of a family on this connection, "") or (None, why this family cannot be on it).

    Raises InputError for a connection that no family can have.
    """
    hint = get_type_hints(module.Params)[key]
    kind = next(each for each in (hint, *get_args(hint)) if hasattr(each, "name"))
    reading = Reading(lambda path: SourceLocation(f"--{key}", key=".".join(map(str, path))), [])
    if schema.read(kind, section, (), reading) is None:
        raise reading.errors[0]
    params = schema.read(module.Params, {key: section}, (), reading)
    return params, reading.errors[0].what if reading.errors else ""


def _ask(
    link: Connection,
    search: Generator[Any, list[BusItem], list[ScannedDrive]],
    listening: set[int],
    withheld: list[int],
) -> list[ScannedDrive]:
    """Put the questions of a search to the drives. listening: identifiers that drives of other families may take for
    commands; withheld: receives the identifiers that were not sent therefore."""
    question = next(search)
    while True:
        answers: list[BusItem] = []
        for k, item in enumerate(question.items, 1):
            number = getattr(item, "id", None)
            if number in listening and not (item.extended or item.remote):
                withheld.append(number)
            else:
                link.send(item, link.now() + SEND_NS)
            if k % BURST == 0:
                gather(link, BURST_NS, answers, MAX_ITEMS)
        gather(link, round(question.seconds * 1e9), answers, MAX_ITEMS)
        try:
            question = search.send(answers)
        except StopIteration as done:
            return done.value


# --- the report -------------------------------------------------------------------------------------------------


def report_lines(reports: Iterable[FamilyReport]) -> Iterator[str]:
    """A line for each family, and one for each of its drives."""
    for report in reports:
        if report.skipped:
            yield f"{report.family:<11} {report.skipped}"
            continue
        count = len(report.drives)
        rate = f" at {report.section['baudrate']:g} bit/s" if count and "baudrate" in report.section else ""
        yield f"{report.family:<11} {count or 'no'} drive{'s' * (count != 1)}{rate}{_withheld(report)}{_finds(report)}"
        for drive in report.drives:
            keys = ", ".join(f"{key} {value}" for key, value in drive.keys.items())
            yield f"  {keys or 'not usable yet'}: {drive.about}"


def _finds(report: FamilyReport) -> str:
    return f"; it finds {report.finds}" if report.finds and not report.drives else ""


def _withheld(report: FamilyReport) -> str:
    count = len(report.withheld)
    if not count:
        return ""
    return f"; {count} addresses left out, whose requests another drive here would take for commands"


def drivers_text(reports: Iterable[FamilyReport], key: Key, title: str) -> str:
    """The section `drivers` of a rig with all drives that were found, empty without one."""
    lines = []
    for report in reports:
        usable = [drive for drive in report.drives if drive.keys]
        for drive in (drive for drive in report.drives if not drive.keys):
            lines.append(f"  # {report.family}: {drive.about}")
        if not usable:
            continue
        lines.append(f"  - type: {report.family}")
        lines.append(f"    {key}: {_flow(report.section)}")
        lines.append("    joints:  # rename them to the joints of the rig; add direction, ratio and zero")
        for drive in usable:
            name = "_".join([report.family, *(str(v) for k, v in drive.keys.items() if k in ("id", "axis"))])
            lines.append(f"      {name}: {_flow(drive.keys)}  # {drive.about}")
    return "\n".join([f"# {title}", "drivers:", *lines, ""]) if lines else ""


def _flow(data: Mapping[str, Any]) -> str:
    text = yaml.safe_dump(dict(data), default_flow_style=True, width=10**6, sort_keys=False).strip()
    return re.sub(r"(?<= )(-?\d+)\.0(?=[,}])", r"\1", text)  # of numbers, not of addresses
