"""Families with a search: it finds the drives, switches nothing on, and has no effect on drives of other families."""

import pytest
import yaml

from cosim.apps.commissioning.scan_command import drivers_text, scan
from cosim.core.errors import InputError
from cosim.plugins.drivers.transport import CanParams, SerialParams
from cosim.rig.reading.driver_family import hook
from cosim.rig.rig import Rig
from cosim.rig.sections.rig_spec import read_rig
from cosim.rig.wiring.drivers import own_items

from .families import JOINTS, Bench, Case, adapters, addresses, cases, rig, section, stepped_cases, write_rig
from .marks import IN_PYTHON, over
from .test_other_programs import repeated
from .wires import Desk

SEARCHED = [case for case in (*stepped_cases(), *adapters()) if hook(case.module, "scan") is not None]  # type: ignore[arg-type]
ON_A_LINE = over(*SEARCHED, *IN_PYTHON)


def _items(case: Case) -> type:
    """Of its first question: an adapter on a serial port has frames."""
    return type(next(hook(case.module, "scan").search(line(case))).items[0])  # type: ignore[arg-type, union-attr]


def line(case: Case) -> CanParams | SerialParams:
    return SerialParams(port="x") if case.line == "pty" else CanParams(interface="virtual", channel="x")


# cases whose items can meet on one connection: frames on a bus, bytes on a serial port
MEETING = [case for case in SEARCHED if case.line == "virtual" or _items(case) is bytes]


def connection(bench: Bench) -> tuple[str, dict]:
    """The key and section of the bench's connection."""
    data = bench.spec.plugin.params
    key = "bus" if getattr(data, "bus", None) is not None else "port"
    params = getattr(data, key)
    names = ("interface", "channel", "fd") if key == "bus" else ("port", "baudrate")
    return key, {name: getattr(params, name) for name in names}


@ON_A_LINE
def test_the_search_finds_the_drives_switches_nothing_on_and_writes_a_section_of_a_rig(case, tmp_path, monkeypatch):
    with Bench(case, tmp_path) as bench:
        bench.lend(monkeypatch)
        rows = bench.asking()
        key, data = connection(bench)
        reports = scan(key, data, case.family)
        assert not any(effort for _, effort in rows) and not any(motor.enabled for motor in bench.motors)
    (report,) = (each for each in reports if each.family == case.family)
    found = [dict(drive.keys) for drive in report.drives]
    for keys, wired in zip(found, addresses(case), strict=True):
        assert keys.items() - {("model", keys.get("model"))} <= {("model", "custom"), *_plain(wired)}
        assert all(keys[key] == wired[key] for key in ("id", "axis") if key in wired)
    assert all(drive.about for drive in report.drives)
    (driver,) = yaml.safe_load(drivers_text(reports, key, "found"))["drivers"]
    # what a drive does not report is to be added
    pairs = zip(addresses(case), driver.pop("joints").values(), strict=True)
    joints = dict(zip(JOINTS, [{**_unreported(wired, keys), **keys} for wired, keys in pairs], strict=True))
    whole = rig({**section(case, tmp_path), **driver}, addresses(case))
    whole["drivers"][0]["joints"] = joints
    (spec,) = read_rig(write_rig(tmp_path / "found.yaml", whole)).drivers
    assert [wired.address for wired in spec.wiring.values()] == [next(iter(a.values())) for a in addresses(case)]
    assert spec.family.connection_name(spec.plugin.params) == bench.line.link.name


def _plain(wired: dict) -> set:
    """Its keys with one value each."""
    return {(key, value) for key, value in wired.items() if not isinstance(value, dict)}


def _unreported(wired: dict, found: dict) -> dict:
    """Keys of a joint that the drive does not report; a known model has no ranges of its own."""
    custom = found.get("model", "custom") == "custom"
    return wired if custom else {key: value for key, value in wired.items() if key not in found and "max_" not in key}


@over(*SEARCHED)
def test_no_drive_is_found_where_none_is(case, tmp_path, monkeypatch):
    with Bench(case, tmp_path) as bench:
        bench.lend(monkeypatch)
        bench.disturb("power_loss")
        key, data = connection(bench)
        bench.there(lambda: setattr(bench.line.drives, "handle", lambda item, t_ns: []))
        (report,) = (each for each in scan(key, data, case.family) if each.family == case.family)
        assert report.drives == []


@over(*(case for case in cases() if case.line == "udp_multicast" and not case.compiled and hook(case.module, "scan")))
def test_a_bus_that_another_program_uses_is_refused(case, tmp_path):
    with Bench(case, tmp_path) as bench:
        key, data = connection(bench)
        commands = {(item.id, item.remote) for item in hook(case.module, "scan").commands()}  # type: ignore[arg-type]
        context = Rig(read_rig(tmp_path / "rig.yaml"), interpret=True).contexts[bench.spec.name]
        own = [item for item in own_items(bench.spec, context) if (item.id, item.remote) in commands]
        assert own  # commands of this program's own driver are among them
        with repeated(bench.spec.plugin.params.bus, own[0]), pytest.raises(InputError) as caught:
            scan(key, data, case.family)
        what = f"another program commands the drives of {bench.line.link.name}: its frame {own[0].id:#x} came"
        assert f"--bus channel: {what} before anything was sent; end it" in str(caught.value)


@pytest.mark.parametrize("other", MEETING, ids=str)
def test_a_search_has_no_effect_on_drives_of_other_families_that_are_on(other, tmp_path, monkeypatch):
    desk = Desk(other, tmp_path, monkeypatch)
    desk.driver.open()
    searching = [case for case in MEETING if case.family != other.family and _items(case) is _items(other)]
    questions = [item for case in searching for item in _questions(case, other, desk)]  # its own may switch it off
    for mode in sorted(desk.driver.modes):
        desk.driver.enable(mode)
        desk.cycle(3, effort=0.05, velocity=0.1, position=0.2)
        before = [motor.requested for motor in desk.motors]
        for item in questions:
            desk.emulator.handle(item, desk.wire.t_ns)
        desk.driver.write(desk.command(effort=0.05, velocity=0.1, position=0.2), desk.wire.t_ns + 5_000_000)
        desk.wire.step()
        desk.driver.read(desk.out, desk.wire.t_ns + 5_000_000)
        assert not desk.out.fault.any()
        assert [motor.requested for motor in desk.motors] == pytest.approx(before, rel=0.2, abs=1e-6)
        assert all(motor.enabled for motor in desk.motors)
        desk.driver.stop()
        desk.wire.step()


def _questions(case: Case, other: Case, desk: Desk) -> list:
    """What the search of one family sends to drives of another that were found before, if its turn comes first."""
    first, second = hook(other.module, "scan"), hook(case.module, "scan")  # type: ignore[arg-type]
    assert first is not None and second is not None
    listening: set[int] = set()
    if (first.ORDER, other.family) < (second.ORDER, case.family):
        search = first.search(line(other))
        found = _run(search, desk.emulator.handle, desk.wire.t_ns, [])
        listening = {number for drive in found for number in drive.listens}
    sent: list = []
    _run(second.search(line(case)), lambda item, t_ns: [], desk.wire.t_ns, sent)
    return [item for item in sent if getattr(item, "extended", True) or item.remote or item.id not in listening]


def _run(search, answer, t_ns: int, sent: list) -> list:
    question = next(search)
    while True:
        sent.extend(question.items)
        answers = [back for item in question.items for back in answer(item, t_ns)]
        try:
            question = search.send(answers)
        except StopIteration as done:
            return done.value
