"""Whether a drive fits by its data sheet: EDS, DCF, XDD, XDC, ESI; files that are none, or hostile."""

import random
from pathlib import Path

import pytest

from cosim.core.errors import InputError
from cosim.plugins.drivers.cia402 import data_sheet
from cosim.plugins.drivers.cia402.data_sheet import sheet as sheets
from cosim.plugins.drivers.cia402.device.objects import OBJECTS, PACKERS, PRODUCT, VENDOR
from tests.drivers.bench import refused

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
def test_the_emulated_drive_fits_in_every_form(form, tmp_path, said):
    lines, fits = checked(tmp_path, FORMS[form]())
    said(lines)
    assert fits and lines[-3:] == [f"  {mode} mode: this drive fits" for mode in ("effort", "velocity", "position")]


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
    "no target torque": eds(without=(0x6071,)),
    "no velocity offset": eds(without=(0x60B1,)),
    "no heartbeat consumer": eds(without=(0x1016,)),
    "target velocity not mapped": eds(access={0x60FF: "ro"}),
    "fixed maps": eds(access={0x1600: "const"}),
    "one PDO": eds(without=(0x1401, 0x1402, 0x1403, 0x1601, 0x1602, 0x1603)),
    "another profile": eds().replace("DefaultValue=131474", "DefaultValue=401"),
    "no such mode": eds().replace("DefaultValue=933", "DefaultValue=384"),
    "modes without value": eds().replace("DefaultValue=933", "X=1"),
    "no maps": eds(without=tuple(range(0x1600, 0x1604)) + tuple(range(0x1A00, 0x1A04))),
    "ESI with fixed maps without torque": esi(fixed=True, torque=False),
    "ESI with fixed maps without torque offset": esi(fixed=True).replace("#x60B2", "#x60B9"),
    "ESI without torque offset": esi().replace("#x60B2", "#x60B9"),
    "ESI without dictionary": esi(dictionary=False),
    "ESI with fixed maps": esi(fixed=True),
}


@pytest.mark.parametrize("text", VERDICTS.values(), ids=VERDICTS)
def test_verdicts(text, tmp_path, said):
    said(line for line in checked(tmp_path, text)[0] if " mode: " in line)


HEAD = "[DeviceInfo]\nx=1\n[1000]\n"
MISTAKES = {
    "no pair": "[x]\nword\n",
    "no section": "word\n",
    "section twice": "[DeviceInfo]\nx=1\n[DEVICEINFO]\n",
    "key twice": "[a]\nx=1\nX=2\n",
    "open bracket": "[1000\n",
    "no DeviceInfo": "[x]\n",
    "unknown type": f"{HEAD}DataType=long\n",
    "unknown access": f"{HEAD}DataType=7\nAccessType=yes\n",
    "no XML": "<EtherCATInfo>\n</x>",
    "HTML": "<html/>",
    "document type": '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>',
    "no device": "<EtherCATInfo/>",
    "no objects": "<ISO15745ProfileContainer/>",
    "no index": '<ISO15745ProfileContainer><CANopenObject index="10x"/></ISO15745ProfileContainer>',
    "deep": "<a>" * 100,
    "no text": "[DeviceInfo]\nx=\0\0\0",
}


@pytest.mark.parametrize("text", MISTAKES.values(), ids=MISTAKES)
def test_what_is_no_data_sheet_is_named_with_its_line(text, tmp_path, said):
    (tmp_path / "x").write_text(text)
    said(refused(data_sheet.read, tmp_path / "x"))


def test_files_that_are_none_or_too_large(tmp_path, monkeypatch, said):
    said(refused(data_sheet.read, tmp_path / "missing.eds"))
    said(refused(data_sheet.read, tmp_path))
    monkeypatch.setattr(sheets, "MOST_BYTES", 2_000_000)
    (tmp_path / "large").write_bytes(b";" * 2_000_001)
    said(refused(data_sheet.read, tmp_path / "large"))


@pytest.mark.parametrize("form", FORMS)
def test_spoilt_files_are_read_or_refused_in_one_line(form, tmp_path):
    generator, whole = random.Random(7), FORMS[form]().encode()
    for k in range(30):
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
def test_without_a_rig_units_that_are_not_stated_leave_it_open(form, tmp_path, monkeypatch, said):
    for key in (0x60A900, 0x607600):
        monkeypatch.setitem(VALUES, key, 0)
        lines, fits = checked(tmp_path, FORMS[form]())
        said(lines[-3:])
        assert fits


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


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        (eds(), {}),
        (eds(), {"wired": ", product: 7"}),
        (eds().replace("[DeviceInfo]", "[DeviceComissioning]\nNodeID=5\n[DeviceInfo]"), {"wired": ", cpr: 1000"}),
        (eds(), {"effort": 2}),
        (eds(without=(0x60A9,)), {"mode": "velocity"}),
        (eds(without=(0x60A9,)), {"mode": "velocity", "wired": ", velocity_unit: rpm"}),
    ],
    ids=["fits", "another product", "another cpr", "a large limit", "no unit", "a unit by the rig"],
)
def test_a_rig_with_its_mode_and_units(command, tmp_path, text, keys, said):
    rig, sheet = tmp_path / "rig.yaml", tmp_path / "drive.eds"
    rig.write_text(RIG.format(**{"mode": "position", "effort": 1, "wired": "", **keys}))
    sheet.write_text(text)
    code, out, err = command("check", rig, "--eds", sheet)
    said([f"exit code {code}", out.splitlines()[-1], *err])


def test_the_command_without_a_rig(command, tmp_path, said):
    (tmp_path / "drive.eds").write_text(eds(without=(0x6041,)))
    code, out, err = command("check", "--eds", tmp_path / "drive.eds")
    assert code == 1 and out.count("this drive does not fit, because it lacks statusword, 6041h") == 3
    said(err)
    said(command.refuses("check", "--eds", tmp_path / "none.eds"))
    said(command.refuses("check"))
