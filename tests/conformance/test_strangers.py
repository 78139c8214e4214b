"""A drive of another family at an address: the error names the family that answers there, and motors stay off."""

import pytest

from cosim.errors import InputError
from cosim.rig.build.family_modules import hook
from cosim.rig.build.strangers import family_at
from cosim.rig.rig import Rig
from cosim.rig.sections.rig_spec import read_rig

from .families import Bench, Case, adapters, addresses, lines, rig, section, stepped_cases, write_rig


def _asked(case: Case) -> bool:
    """Whether the drives of a case answer what is asked there."""
    scan = hook(case.module, "scan")  # type: ignore[arg-type]
    return hasattr(scan, "ask")


# a Mini Cheetah answers nothing that a drive of another family may be sent: joint b is a Damiao drive
PLAIN = (*stepped_cases(), *adapters())


def _of_another_family(own: Case, asked: bool) -> Case | None:
    """The next case behind this one on its kind of line; asked: whose drives answer."""
    k = PLAIN.index(own)
    behind = (other for other in (*PLAIN[k:], *PLAIN[:k]) if other.family != own.family and other.line == own.line)
    return next((other for other in behind if not asked or _asked(other)), None)


# each driver meets drives of another family, and drives of each family that answers meet another driver
PAIRS = [(own, _of_another_family(own, asked=True)) for own in PLAIN]
PAIRS += [(_of_another_family(other, asked=False), other) for other in PLAIN if _asked(other)]


def _rig(bench: Bench, own: Case, folder) -> Rig:
    """A rig whose joint b has a driver of another family on the connection of the bench."""
    field, _ = lines(bench.case.module)[bench.case.line]
    connection = getattr(bench.spec.plugin.params, field)
    here, names = section(own, folder), ("interface", "channel") if field == "bus" else ("port", "baudrate")
    here[field] |= {name: getattr(connection, name) for name in names}
    data = rig(here, addresses(own))
    if getattr(connection, "fd", False):
        here[field]["fd"] = True
    (key, *_), (other, *_) = (addresses(case)[1] for case in (own, bench.case))
    wiring = {**addresses(own)[1], key: 1 if "axis" in (key, other) else 2}
    data["drivers"][0]["joints"] = {"b": wiring}
    return Rig(read_rig(write_rig(folder / "own.yaml", data)), interpret=True)


@pytest.mark.parametrize(("own", "other"), dict.fromkeys(pair for pair in PAIRS if None not in pair), ids=str)
def test_a_drive_of_another_family_is_named(own, other, tmp_path, monkeypatch):
    with Bench(other, tmp_path) as bench:
        bench.lend(monkeypatch)
        rows = bench.asking()
        made = _rig(bench, own, tmp_path)
        with pytest.raises(InputError) as caught:
            made.run(duration=0.1)
        address = made.spec.drivers[0].wiring["b"].address
        wanted = f"node {address} on {bench.line.link.name} answers as a drive of type '{other.family}', not"
        assert caught.value.what == f"{wanted} '{own.family}'; correct 'type' or the address"
        assert ".joints.b." in str(caught.value.place)
        assert not any(effort for _, effort in rows) and not any(motor.enabled for motor in bench.motors)


def test_nothing_is_named_where_nothing_answers(tmp_path):
    case = next(case for case in PLAIN if (case.family, case.line) == ("odrive", "virtual"))
    spec = read_rig(write_rig(tmp_path / "rig.yaml", rig(section(case, tmp_path), addresses(case)))).drivers[0]
    assert family_at(spec, 5) == ""
