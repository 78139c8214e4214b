"""The result of a scenario as plain data and, for continuous integration, as JUnit XML: a suite for the rig."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree as xml


@dataclass(frozen=True)
class ScenarioResult:
    """What a scenario did, beside what was expected of it.

    happened: in short; sentence: why the run was stopped, "" if it was not; failures: what was not as expected;
    reaction_ticks, reaction [s]: from the beginning of the last fault to the stop, the tick in which it began included;
    events: (t [s], what) of the faults; seconds: of computation; recording: the file, "" for none;
    warnings: of its rig.
    """

    name: str
    faults: tuple[str, ...]
    expected: tuple[str, ...]
    happened: str
    sentence: str
    failures: tuple[str, ...]
    reaction_ticks: int | None
    reaction: float | None
    events: tuple[tuple[float, str], ...]
    seconds: float
    recording: str = ""
    warnings: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        return not self.failures

    @classmethod
    def of(cls, data: dict[str, Any]) -> ScenarioResult:
        """From what JSON has of it."""
        lists = "faults", "expected", "failures", "warnings"
        values: dict[str, Any] = data | {key: tuple(data[key]) for key in lists}
        values["events"] = tuple((t, what) for t, what in data["events"])
        return cls(**values)


def junit_of(rig: str, results: Sequence[ScenarioResult]) -> bytes:
    """The document; rig: its name."""
    counts = {
        "tests": str(len(results)),
        "failures": str(sum(not result.ok for result in results)),
        "errors": "0",
        "skipped": "0",
        "time": f"{sum(result.seconds for result in results):.3f}",
    }
    root = xml.Element("testsuites", {"name": "cosim scenario", **counts})
    suite = xml.SubElement(root, "testsuite", {"name": rig, **counts})
    for result in results:
        about = {"classname": rig, "name": result.name, "time": f"{result.seconds:.3f}"}
        case = xml.SubElement(suite, "testcase", about)
        if not result.ok:
            failure = xml.SubElement(case, "failure", {"message": "; ".join(result.failures), "type": "expectation"})
            failure.text = "\n".join(details(result))
    xml.indent(root)
    return xml.tostring(root, encoding="utf-8", xml_declaration=True) + b"\n"


def details(result: ScenarioResult) -> list[str]:
    """What led to the result, in lines."""
    lines = [f"expected: {text}" for text in result.expected]
    lines += [f"t = {t:.6g} s: {what}" for t, what in result.events]
    lines += [result.sentence] if result.sentence else []
    return lines + ([f"recording: {result.recording}"] if result.recording else [])
