"""Whether a drive fits by its data sheet: EDS, DCF, XDD, XDC, ESI; files that are none, or hostile."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from cosim.drivers.cia402 import data_sheet
from cosim.drivers.cia402.data_sheet import sheet as sheets
from cosim.drivers.cia402.device.objects import OBJECTS, PACKERS, PRODUCT, VENDOR
from cosim.errors import InputError
from tests.kit.command import Command

TYPES = {"b": 2, "h": 3, "i": 4, "B": 5, "H": 6, "I": 7, "": 9}
VALUES = {0x608F01: 4096, 0x609001: 4096, 0x609201: 4096, 0x607600: 500, 0x607200: 3000, 0x60A900: 0x00B44700}
VALUES |= {0x607500: 5000, 0x608000: 6000}
SUBS = {key >> 8: [other & 0xFF for other in OBJECTS if other >> 8 == key >> 8] for key in OBJECTS}


def value(key: int) -> int | str:
    return VALUES.get(key, OBJECTS[key].default)


def eds(without: tuple[int, ...] = (), access: dict[int, str] | None = None) -> str:
    """The emulated drive as an EDS. without: indices; access: per index."""
    lines = ["; made for a test", "[DeviceInfo]", "VendorName=cosim", "VendorNumber=0xFFFF", "ProductName=emulated"]
    lines += ["ProductNumber=0x402"]
    for key, entry in OBJECTS.items():
        index, sub = key >> 8, key & 0xFF
        if index in without:
            continue
        many = len(SUBS[index]) > 1
        if many and sub == 0:
            lines += [f"[{index:X}]", f"ParameterName={entry.name}", "ObjectType=0x9"]
        lines += [f"[{index:X}sub{sub:X}]" if many else f"[{index:X}]"]
        default = value(key)
        own = f"$NODEID+{default:#x}" if entry.per_node else default
        how = (access or {}).get(index, "rww" if entry.mapping == "r" else entry.access)
        lines += [f"ParameterName={entry.name}", "ObjectType=0x7", f"DataType=0x{TYPES[entry.kind]:04X}"]
        lines += [f"AccessType={how}", f"DefaultValue={own}", f"PDOMapping={int(bool(entry.mapping))}"]
    return "\n".join(lines) + "\n"


def xdd(attribute: str = "defaultValue") -> str:
    """The same in the form of CiA 311."""
    words = {"r": "RPDO", "t": "TPDO", "": "no"}
    rows = []
    for index, subs in SUBS.items():
        rows.append(f'<CANopenObject index="{index:04X}" name="an object" objectType="{9 if len(subs) > 1 else 7}"')
        parts = []
        for sub in subs:
            entry = OBJECTS[index << 8 | sub]
            about = f'dataType="{TYPES[entry.kind]:04X}" accessType="{entry.access}"'
            about += f' {attribute}="{value(index << 8 | sub)}"'
            about += f' PDOmapping="{words[entry.mapping]}"'
            parts.append(f'<CANopenSubObject subIndex="{sub:02X}" name="a part" objectType="7" {about}/>')
            if len(subs) == 1:
                rows[-1] += f" {about}"
        rows[-1] += "/>" if len(subs) == 1 else f">{''.join(parts)}</CANopenObject>"
    return (
        '<?xml version="1.0"?>\n<ISO15745ProfileContainer xmlns="http://www.canopen.org/xml/1.0"><ISO15745Profile>'
        "<ProfileBody><DeviceIdentity><vendorID>0xFFFF</vendorID><productName>emulated</productName>"
        "<productID>0x402</productID></DeviceIdentity></ProfileBody><ProfileBody><CANopenObjectList>\n"
        + "\n".join(rows)
        + "\n</CANopenObjectList></ProfileBody></ISO15745Profile></ISO15745ProfileContainer>\n"
    )


def esi(fixed: bool = False, dictionary: bool = True, torque: bool = True) -> str:
    """The same as a slave of EtherCAT."""
    received = [(0x6040, 16), (0x607A, 32), (0x60FF, 32), (0x60B1, 32), (0x60B2, 16)] + [(0x6071, 16)] * torque
    transmitted = [(0x6041, 16), (0x6061, 8), (0x6064, 32), (0x606C, 32), (0x6077, 16)]
    pdos = ""
    for tag, index, objects in (("RxPdo", 0x1600, received), ("TxPdo", 0x1A00, transmitted)):
        inner = "".join(
            f"<Entry><Index>#x{key:X}</Index><SubIndex>0</SubIndex><BitLen>{bits}</BitLen></Entry>"
            for key, bits in objects
        )
        pdos += f'<{tag} Fixed="{int(fixed)}"><Index>#x{index:X}</Index>{inner}</{tag}>'
    names = {"b": "SINT", "h": "INT", "i": "DINT", "B": "USINT", "H": "UINT", "I": "UDINT", "": "STRING(8)"}
    objects = types = ""
    for index, subs in SUBS.items() if dictionary else ():
        name = names[OBJECTS[index << 8 | subs[0]].kind] if len(subs) == 1 else f"DT{index:X}"
        flags, infos, parts = "", "", ""
        for sub in subs:
            entry, own = OBJECTS[index << 8 | sub], value(index << 8 | sub)
            data = PACKERS[entry.kind].pack(own).hex() if isinstance(own, int) else ""
            access = "ro" if entry.access == "const" else entry.access
            flags = f"<Flags><Access>{access}</Access><PdoMapping>{entry.mapping.upper()}</PdoMapping></Flags>"
            info = f"<Info><DefaultData>{data}</DefaultData></Info>"
            infos += info if len(subs) == 1 else f"<SubItem><Name>x</Name>{info}</SubItem>"
            parts += f"<SubItem><SubIdx>{sub}</SubIdx><Name>x</Name><Type>{names[entry.kind]}</Type>{flags}</SubItem>"
        if len(subs) > 1:
            types += f"<DataType><Name>{name}</Name>{parts}</DataType>"
            infos = f"<Info>{infos}</Info>"
            flags = ""
        objects += f"<Object><Index>#x{index:X}</Index><Name>x</Name><Type>{name}</Type>{infos}{flags}</Object>"
    profile = f"<Profile><Dictionary><DataTypes>{types}</DataTypes><Objects>{objects}</Objects></Dictionary></Profile>"
    return (
        "<EtherCATInfo><Vendor><Id>#xFFFF</Id></Vendor><Descriptions><Devices><Device>"
        f'<Type ProductCode="#x402">drive</Type><Name LcId="1033"><![CDATA[emulated]]></Name>{profile}{pdos}'
        "</Device></Devices></Descriptions></EtherCATInfo>\n"
    )


FORMS = {"EDS": eds, "XDD": xdd, "ESI": esi}


def checked(folder: Path, text: str, *joints) -> tuple[list[str], bool]:
    path = folder / "drive.eds"
    path.write_text(text)
    lines, fits = data_sheet.check(path, joints)
    return [line.replace(str(folder), "") for line in lines], fits


@pytest.mark.parametrize("form", FORMS)
def test_the_emulated_drive_fits_in_every_form(form, tmp_path):
    lines, fits = checked(tmp_path, FORMS[form]())
    free = "1 receive and 1 transmit PDOs" if form == "ESI" else "4 receive and 4 transmit PDOs"
    assert lines == [
        f"/drive.eds: {form} of 'emulated', vendor 0xFFFF, product 0x402",
        f"  process data: {free}, mapped freely",
        "  units by default: position 0.0878906 deg, velocity 1 rpm, torque 0.0005 N*m",
        "  limits by default: max torque 3000 per mille of the rated torque, max motor speed 6000 rpm",
        *(f"  {mode} mode: this drive fits" for mode in ("effort", "velocity", "position")),
    ]
    assert fits


def test_a_limit_that_is_the_largest_number_is_none(tmp_path):
    lines, _ = checked(tmp_path, eds().replace("DefaultValue=6000\n", f"DefaultValue={0xFFFFFFFF}\n"))
    assert lines[3] == "  limits by default: max torque 3000 per mille of the rated torque"


def test_the_forms_say_the_same(tmp_path):
    found = []
    for text in (eds(), xdd(), esi()):
        (tmp_path / "drive").write_text(text)
        (sheet,) = data_sheet.read(tmp_path / "drive")
        found.append({key: entry.value for key, entry in sheet.entries.items() if isinstance(value(key), int)})
        assert set(sheet.entries) == set(OBJECTS)
        mapping = {key: entry.mapping for key, entry in sheet.entries.items() if entry.mapping}
        assert mapping == {key: entry.mapping for key, entry in OBJECTS.items() if entry.mapping}
    assert found[0] == found[1] == found[2]


VERDICTS = {
    "effort mode: this drive does not fit, because it lacks target torque, 6071h": eds(without=(0x6071,)),
    "position mode: this drive does not fit, because it lacks velocity offset, 60B1h": eds(without=(0x60B1,)),
    "effort mode: this drive does not fit, because it has no heartbeat consumer (1016h), so that it would run on"
    " without commands": eds(without=(0x1016,)),
    "velocity mode: this drive does not fit, because it cannot map target velocity, 60FFh to a receive PDO": eds(
        access={0x60FF: "ro"}
    ),
    "effort mode: this drive does not fit, because its receive PDOs have fixed maps without target torque, 6071h": eds(
        access={0x1600: "const"}
    ),
    "position mode: this drive does not fit, because it has 1 receive PDO, and 2 are needed": eds(
        without=(0x1401, 0x1402, 0x1403, 0x1601, 0x1602, 0x1603)
    ),
    "effort mode: this drive does not fit, because its device type (1000h) is of profile 401, not 402": eds().replace(
        "DefaultValue=131474", "DefaultValue=401"
    ),
    "effort mode: this drive does not fit, because it has no mode 'cyclic synchronous torque' (6502h)": eds().replace(
        "DefaultValue=933", "DefaultValue=384"
    ),
    "effort mode: cannot tell: its modes (6502h) have no default value": eds().replace("DefaultValue=933", "X=1"),
    "effort mode: cannot tell: its receive PDOs are not described; its transmit PDOs are not described": eds(
        without=tuple(range(0x1600, 0x1604)) + tuple(range(0x1A00, 0x1A04))
    ),
    "effort mode: this drive does not fit, because its receive PDOs have fixed maps without target torque,"
    " 6071h  ": esi(fixed=True, torque=False),
    "velocity mode: this drive fits": esi(fixed=True).replace("#x60B2", "#x60B9"),  # which fixed maps need not have
    "velocity mode: this drive does not fit, because it lacks torque offset, 60B2h": esi().replace("#x60B2", "#x60B9"),
    "effort mode: cannot tell: it has no list of objects (an offline dictionary)": esi(dictionary=False),
    "effort mode: this drive fits": esi(fixed=True),
}


@pytest.mark.parametrize("expected", VERDICTS)
def test_verdicts(expected, tmp_path):
    lines, _ = checked(tmp_path, VERDICTS[expected])
    assert f"  {expected.strip()}" in lines


MISTAKES = {
    "2 [x]: expected key=value in a section, as an EDS has it": "[x]\nword\n",
    "1: expected key=value in a section, as an EDS has it": "word\n",
    "3 [DEVICEINFO]: the section exists already; take one of them out": "[DeviceInfo]\nx=1\n[DEVICEINFO]\n",
    "3 [a] X: the key exists already; take one of them out": "[a]\nx=1\nX=2\n",
    "1: expected a section as [1000]": "[1000\n",
    ": has no section [DeviceInfo]; give an EDS or a DCF of CiA 306": "[x]\n",
    "4 [1000] DataType: 'long' is no data type of CiA 301, such as 0x0007": "[DeviceInfo]\nx=1\n[1000]\n"
    "DataType=long\n",
    "5 [1000] AccessType: 'yes' is none of ro, rw, wo, const, rwr, rww": "[DeviceInfo]\nx=1\n[1000]\nDataType=7\n"
    "AccessType=yes\n",
    "2: not well-formed XML: mismatched tag": "<EtherCATInfo>\n</x>",
    "1: is XML with the root 'html'; give an XDD or XDC of CiA 311, or an ESI of EtherCAT": "<html/>",
    "1: has a document type, which is not read; take <!DOCTYPE> out": '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>',
    "1: describes no device (Descriptions/Devices/Device)": "<EtherCATInfo/>",
    "1: has no objects of CANopen (CANopenObjectList)": "<ISO15745ProfileContainer/>",
    "1 CANopenObject index: '10x' is no index in hexadecimal digits": "<ISO15745ProfileContainer><CANopenObject"
    ' index="10x"/></ISO15745ProfileContainer>',
    "1: is larger or deeper than any data sheet of a drive": "<a>" * 100,
}


@pytest.mark.parametrize("expected", MISTAKES)
def test_what_is_no_data_sheet_is_named_with_its_line(expected, tmp_path):
    path = tmp_path / "x"
    path.write_text(MISTAKES[expected])
    with pytest.raises(InputError) as caught:
        data_sheet.read(path)
    assert str(caught.value) == f"{path}{'' if expected[0] == ':' else ':'}{expected}"


def test_files_that_are_none_or_too_large(tmp_path, monkeypatch):
    missing = "no such file; give the data sheet of a drive: EDS, DCF, XDD, XDC or ESI"
    folder = "cannot be read: it is a folder; give a file"
    for path, what in {tmp_path / "missing.eds": missing, tmp_path: folder}.items():
        with pytest.raises(InputError, match=what):
            data_sheet.read(path)
    monkeypatch.setattr(sheets, "MOST_BYTES", 2_000_000)
    (tmp_path / "large").write_bytes(b";" * 2_000_001)
    with pytest.raises(InputError, match="has more than 2 MB, which no data sheet of a drive needs"):
        data_sheet.read(tmp_path / "large")


@pytest.mark.parametrize("form", FORMS)
def test_spoilt_files_are_read_or_refused_in_one_line(form, tmp_path):
    generator, whole = random.Random(7), FORMS[form]().encode()
    for k in range(60):
        data = bytearray(whole)
        for _ in range(1 + k % 4):
            place = generator.randrange(len(data))
            data[place : place + generator.choice((1, 1, 40))] = generator.randbytes(generator.choice((0, 1, 3)))
        (tmp_path / "x").write_bytes(data)
        try:
            data_sheet.check(tmp_path / "x", ())
        except InputError as error:
            assert "\n" not in str(error)


def test_numbers():
    assert sheets.number("$NODEID+0x180", 5) == 0x185 and sheets.number(" -12 ") == -12
    assert sheets.number("0x180+$NodeID", 5) == 0x185 and sheets.number("0X1a") == 26
    # with a leading 0 octal, as strtoul reads it
    assert sheets.number("010") == 8 and sheets.number("00") == sheets.number("0") == 0 and sheets.number("08") is None
    assert sheets.number("0x" + "f" * 300) is None and sheets.number("0x") is None and sheets.number(None) is None


def test_texts_in_the_code_of_windows(tmp_path):
    for code in ("utf-8", "utf-8-sig", "cp1252"):
        (tmp_path / "x").write_bytes("[DeviceInfo]\r\nProductName=Achse für µm\r\n".encode(code))
        assert [sheet.name for sheet in data_sheet.read(tmp_path / "x")] == ["Achse für µm"]


@pytest.mark.parametrize("form", FORMS)
def test_files_in_utf_16(form, tmp_path):
    """With the mark of its byte order; an EDS also without it."""
    (tmp_path / "x").write_text(FORMS[form]())
    expected = data_sheet.read(tmp_path / "x")
    for code in ("utf-16", *(("utf-16-le", "utf-16-be") if form == "EDS" else ())):
        (tmp_path / "x").write_bytes(FORMS[form]().encode(code))
        assert data_sheet.read(tmp_path / "x") == expected
    (tmp_path / "x").write_bytes(b"[DeviceInfo]\nx=\0\0\0")
    with pytest.raises(InputError, match="is no text: it has characters with the code 0; give an EDS or a DCF as text"):
        data_sheet.read(tmp_path / "x")


@pytest.mark.parametrize("form", ["EDS", "XDD", "ESI"])
def test_values_that_are_no_numbers_are_named(form, tmp_path):
    """Those that the conclusion needs leave it open."""

    def written(what: int | str) -> str:
        if form == "ESI":
            return f"<DefaultData>{what.to_bytes(4, 'little').hex() if isinstance(what, int) else what}</DefaultData>"
        return f"DefaultValue={what}\n" if form == "EDS" else f'defaultValue="{what}"'

    text = FORMS[form]()
    assert written(933) in text and written(6000) in text
    lines, fits = checked(tmp_path, text.replace(written(933), written("all of them")))
    (named,) = [line for line in lines if line.startswith("  values that are no numbers: 6502h: 'all of them' (line ")]
    found = named.partition(": ")[2]
    assert f"  effort mode: cannot tell: what it needs is no number: {found}" in lines and fits
    lines, _ = checked(tmp_path, text.replace(written(6000), written("1e3")))
    assert any(line.startswith("  values that are no numbers: 6080h: '1e3' (line ") for line in lines)


def test_texts_and_real_numbers_are_no_mistakes(tmp_path):
    other = "[2000]\nDataType=9\nDefaultValue=a text\n[2001]\nDataType=8\nDefaultValue=1.5\n"
    assert checked(tmp_path, eds() + other)[0] == checked(tmp_path, eds())[0]


@pytest.mark.parametrize("form", FORMS)
def test_without_a_rig_units_that_are_not_stated_leave_it_open(form, tmp_path, monkeypatch):
    monkeypatch.setitem(VALUES, 0x60A900, 0)
    lines, fits = checked(tmp_path, FORMS[form]())
    what = "cannot tell: the unit of its velocities is not stated; give 'velocity_unit'"
    assert lines[-3:] == [
        "  effort mode: this drive fits",
        f"  velocity mode: {what}",
        "  position mode: this drive fits",
    ]
    assert fits
    monkeypatch.setitem(VALUES, 0x607600, 0)
    lines, fits = checked(tmp_path, FORMS[form]())
    what = "cannot tell: it does not report its rated torque (6076h); give 'rated_torque'"
    assert lines[-3:] == [f"  {mode} mode: {what}" for mode in ("effort", "velocity", "position")] and fits


def test_both_spellings_of_commissioning(tmp_path):
    object_ = "[1800sub1]\nDataType=7\nAccessType=rw\nDefaultValue=$NODEID+0x180\n"
    for name in ("DeviceComissioning", "DeviceCommissioning"):
        (tmp_path / "x").write_text(f"[DeviceInfo]\nx=1\n[{name}]\nNodeID=5\n{object_}")
        (sheet,) = data_sheet.read(tmp_path / "x")
        assert (sheet.kind, sheet.value(0x180001)) == ("DCF", 0x185)


@pytest.mark.parametrize("form", ["EDS", "XDD"])
def test_an_identity_that_only_the_object_states(form, tmp_path):
    text = FORMS[form]()
    for stated in ("VendorNumber=0xFFFF\n", "ProductNumber=0x402\n", "<vendorID>0xFFFF</vendorID>"):
        text = text.replace(stated, "")
    text = text.replace("<productID>0x402<", "<productID>0<").replace("ProductName=emulated", "ProductName=")
    (tmp_path / "drive").write_text(text)
    (sheet,) = data_sheet.read(tmp_path / "drive")
    assert (sheet.vendor, sheet.product) == (VENDOR, PRODUCT)
    assert sheet.name == ("drive" if form == "EDS" else "emulated")


def test_short_forms_of_arrays(tmp_path):
    text = "[DeviceInfo]\nx=1\n[2000]\nParameterName=a\nDataType=5\nAccessType=rw\nCompactSubObj=3\nDefaultValue=7\n"
    (tmp_path / "x").write_text(text + "[2000Value]\nNrOfEntries=1\n2=0x10\n")
    (sheet,) = data_sheet.read(tmp_path / "x")
    assert [sheet.value(0x200000 | sub) for sub in range(4)] == [3, 7, 16, 7]


RIG = """
mechanism: {{gravity: [0, 0, 0], bodies: [{{name: arm, joint: axis, axis: [0, 0, 1], mass: 1 kg, inertia: [1, 1, 1]}}]}}
joints: {{axis: {{limits: {{lower: -1, upper: 1, velocity: 5, effort: {effort}}}}}}}
drivers: [{{type: cia402, mode: {mode}, bus: {{interface: virtual, channel: x}}, joints: {{axis: {{id: 5{wired}}}}}}}]
"""


@pytest.fixture
def command(capsys, monkeypatch):
    return Command(capsys, monkeypatch)


def of_rig(command, folder: Path, text: str, mode="position", effort=1, wired="") -> tuple[int, str, str]:
    (folder / "rig.yaml").write_text(RIG.format(mode=mode, effort=effort, wired=wired))
    (folder / "drive.eds").write_text(text)
    code, out, err = command("check", folder / "rig.yaml", "--eds", folder / "drive.eds")
    return code, out.replace(str(folder), "").splitlines()[-1], "".join(err).replace(str(folder), "")


def test_a_rig_with_its_mode_and_units(command, tmp_path):
    assert of_rig(command, tmp_path, eds()) == (0, "  joint 'axis', position mode: this drive fits", "")
    code, line, error = of_rig(command, tmp_path, eds(), wired=", product: 7")
    assert (code, error) == (1, "/drive.eds: the drive does not fit the joints of /rig.yaml; see the reasons above")
    because = "  joint 'axis', position mode: this drive does not fit, because "
    assert line == f"{because}it is of product 0x402, the rig expects 0x7"
    configured = eds().replace("[DeviceInfo]", "[DeviceComissioning]\nNodeID=5\n[DeviceInfo]")
    assert of_rig(command, tmp_path, configured, wired=", cpr: 1000")[:2] == (
        1,
        f"{because}it has 4096 position units per revolution (feed constant, 6092h), the rig has 'cpr: 1000'; take"
        " 'cpr' out or correct the drive",
    )
    assert of_rig(command, tmp_path, eds(), effort=2)[:2] == (
        0,
        "  joint 'axis', position mode: cannot tell: its max torque is 1.5 N*m, the joint's limit 2 N*m",
    )
    without = eds(without=(0x60A9,))
    assert of_rig(command, tmp_path, without, mode="velocity")[:2] == (
        0,
        "  joint 'axis', velocity mode: cannot tell: the unit of its velocities is not stated; give 'velocity_unit'",
    )
    assert of_rig(command, tmp_path, without, mode="velocity", wired=", velocity_unit: rpm")[1].endswith(
        "this drive fits"
    )


def test_the_command_without_a_rig(command, tmp_path):
    (tmp_path / "drive.eds").write_text(eds(without=(0x6041,)))
    code, out, err = command("check", "--eds", tmp_path / "drive.eds")
    assert (code, "".join(err)) == (
        1,
        f"{tmp_path}/drive.eds: the drive does not fit any mode of the driver; see the reasons above",
    )
    assert out.count("this drive does not fit, because it lacks statusword, 6041h") == 3
    code, _, err = command("check", "--eds", tmp_path / "none.eds")
    what = "no such file; give the data sheet of a drive: EDS, DCF, XDD, XDC or ESI"
    assert (code, "".join(err)) == (2, f"{tmp_path}/none.eds: {what}")
    code, _, err = command("check")
    assert (code, "".join(err)) == (2, "check: missing RIG; give a rig file, or the data sheet of a drive with --eds")
