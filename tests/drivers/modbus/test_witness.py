"""The package pymodbus as the other end: its client with the emulated drives, its server with the driver."""

import asyncio
import contextlib
import inspect
import os
import select
import threading
import tty
from collections.abc import Iterator
from typing import Any

import pytest
from pymodbus.client import ModbusSerialClient
from pymodbus.client.mixin import ModbusClientMixin
from pymodbus.framer import FramerRTU, FramerType
from pymodbus.pdu import DecodePDU
from pymodbus.pdu.mei_message import ReadDeviceInformationRequest
from pymodbus.server import ModbusSerialServer
from pymodbus.simulator import DataType, SimData, SimDevice

from cosim.core.types import JointCommand, JointState
from cosim.plugins.drivers import modbus
from cosim.plugins.drivers.common.motor import Rotor
from cosim.plugins.drivers.modbus import codec, identification
from cosim.plugins.drivers.modbus.driver import ModbusDriver
from cosim.plugins.drivers.transport import now
from cosim.rig.rig import Rig
from cosim.rig.sections.rig_spec import read_rig
from tests.conformance.families import FLOATS, WHOLE_NUMBERS, rig, write_rig
from tests.drivers.bench import refused
from tests.kit.clock import MS

BAUDRATE = 115200
SIX = {  # functions 6 and 3, one register per number
    **{key: value for key, value in WHOLE_NUMBERS.items() if not key.endswith("_target")},
    "write": 6,
    "effort_target": {"register": 0x3010, "scale": 1e-4},
}


@contextlib.contextmanager
def joined(echo: bool) -> Iterator[tuple[str, str]]:
    """Two serial ports, joined; echo: the first one hears what it sends, as with many adapters for RS-485."""
    ends = [os.openpty() for _ in range(2)]
    for _, slave in ends:
        tty.setraw(slave)
    (here, _), (there, _) = ends
    done = threading.Event()

    def forward() -> None:
        while not done.is_set():
            for source in select.select((here, there), (), (), 0.02)[0]:
                chunk = os.read(source, 4096)
                if echo and source == here:
                    os.write(here, chunk)
                os.write(there if source == here else here, chunk)

    thread = threading.Thread(target=forward)
    thread.start()
    try:
        yield os.ttyname(ends[0][1]), os.ttyname(ends[1][1])
    finally:
        done.set()
        thread.join()
        for end in ends:
            for descriptor in end:
                os.close(descriptor)


def built(tmp_path, port: str, **maps) -> tuple[ModbusDriver, modbus.Params, object]:
    """The driver of joints a and b on a port, and its parameters and context."""
    line = {"port": port, "baudrate": BAUDRATE}
    driver = {"type": "modbus", "port": line, "watchdog": 1.0, "response_time": 0.05}
    data = rig(driver, [{"id": 1, "registers": maps["a"]}, {"id": 2, "registers": maps["b"]}])
    data["schedule"]["step"] = "400 ms"
    spec = read_rig(write_rig(tmp_path / "rig.yaml", data))
    (context,) = Rig(spec, interpret=True).contexts.values()
    params = spec.drivers[0].plugin.params
    return modbus.load(params, context), params, context


# --- their server, our driver ---------------------------------------------------------------------------


def simulated_drive(node: int) -> SimDevice:
    """A drive with the map WHOLE_NUMBERS whose measured effort is its target."""
    registers = {
        register: 0
        for first, n in ((0x1000, 3), (0x2000, 8), (0x3000, 4), (0x3010, 5))
        for register in range(first, first + n)
    }
    registers |= {0x1000: 402, 0x1001: 2000, 0x1002: 20000, 0x2003: 1234}

    async def action(function, start, address, count, current, values) -> None:
        def put(register: int, value: int) -> None:
            current[register - start] = value

        for register, value in enumerate(values or (), address):
            if register == 0x3000:
                put(0x2000, {15: 4, 0: 0}.get(value, current[0x2000 - start]))
            if register == 0x3010:
                put(0x2006, value)

    blocks = [SimData(register, values=value, datatype=DataType.REGISTERS) for register, value in registers.items()]
    return SimDevice(node, simdata=blocks, action=action)


@contextlib.contextmanager
def serving(port: str) -> Iterator[None]:
    """Two drives behind pymodbus' server."""
    loop, servers, ready = asyncio.new_event_loop(), [], threading.Event()

    async def serve() -> None:
        devices = [simulated_drive(1), simulated_drive(2)]
        servers.append(ModbusSerialServer(devices, framer=FramerType.RTU, port=port, baudrate=BAUDRATE))
        task = asyncio.ensure_future(servers[0].serve_forever(background=False))
        ready.set()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    ready.wait()
    try:
        yield
    finally:
        asyncio.run_coroutine_threadsafe(servers[0].shutdown(), loop).result(30)
        thread.join()
        loop.close()


@pytest.mark.parametrize(
    ("map", "echo"),
    [(WHOLE_NUMBERS, False), ({**WHOLE_NUMBERS, "write": 16}, True), (SIX, True)],
    ids=["23", "16 with echo", "6 with echo"],
)
def test_the_driver_with_a_server_of_pymodbus(tmp_path, map, echo):
    with joined(echo) as (host, device), serving(device):
        driver, _, _ = built(tmp_path, host, a=map, b=map)
        out, command = JointState.zeros(2), JointCommand.zeros(2)
        driver.open()
        driver.enable("effort")
        try:
            assert driver.report()[0]["resolution"] == pytest.approx(2e-4)
            assert driver.report()[0]["limit"] == pytest.approx(2 * 0x7FFF * 1e-4)
            for effort in (0.05, -0.07):
                command.effort[:], command.valid_until_ns = effort, now() + 30_000 * MS
                driver.write(command, now() + 30_000 * MS)
                driver.read(out, now() + 30_000 * MS)
                assert out.effort == pytest.approx([effort, effort], abs=1e-4)
                assert out.position == pytest.approx([-0.1234 / 2 + 0.3, 0.1234])
                assert not out.fault.any()
        finally:
            driver.close()


def test_what_a_drive_refuses_is_an_error_with_its_exception(tmp_path, said):
    wrong = {**WHOLE_NUMBERS, "model": {"register": 0x1F00, "value": 1}}
    with joined(False) as (host, device), serving(device):
        driver, _, _ = built(tmp_path, host, a=WHOLE_NUMBERS, b=wrong)
        said(refused(driver.open))


# --- their client, our drives ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A client of emulated drives with the maps WHOLE_NUMBERS (1) and FLOATS (2), and these drives."""
    folder, done = tmp_path_factory.mktemp("served"), threading.Event()
    _, params, context = built(folder, str(folder / "tty"), a=WHOLE_NUMBERS, b=FLOATS)
    rotors = [Rotor(), Rotor()]
    emulator, link = modbus.emulate(params, context, rotors), modbus.device(params, context)
    link.open()
    emulator.reset(now())

    def serve() -> None:
        while not done.is_set():
            item = link.receive(now() + MS)
            for answer in emulator.handle(item, now()) if item else ():
                link.send(answer, now() + 100 * MS)
            for rotor in rotors:
                rotor.advance(1e-3)
            emulator.process(now())

    thread = threading.Thread(target=serve)
    thread.start()
    made = ModbusSerialClient(str(folder / "tty"), baudrate=BAUDRATE, timeout=30)
    assert made.connect()
    yield made, emulator, rotors
    made.close()
    done.set()
    thread.join()
    link.close()


@pytest.fixture
def client(served):
    """The client, and the rotors, of drives that were switched on anew."""
    made, emulator, rotors = served
    emulator.reset(now())
    return made, rotors


def test_a_client_of_pymodbus_moves_an_emulated_drive(client):
    client, rotors = client
    assert client.read_holding_registers(0x1000, count=3, device_id=1).registers == [402, 2000, 10000]
    assert not client.write_registers(0x3001, [4, 5000, 1500], device_id=1).isError()  # effort, 5 s, 0.15 N·m
    assert not client.write_register(0x3000, 15, device_id=1).isError()
    both = {"read_address": 0x2000, "read_count": 8, "write_address": 0x3010, "values": [400], "device_id": 1}
    assert client.readwrite_registers(**both).registers[0] == 4
    for _ in range(1000):
        state = client.readwrite_registers(**both)
        assert not state.isError(), state
        state = state.registers
        if (speed := state[4] << 16 | state[5]) > 20_000:  # 2 rad/s
            break
    assert 2.0 < speed * 1e-4 <= rotors[0].velocity + 1e-3 and state[6] == 400
    assert not client.write_register(0x3000, 0, device_id=1).isError()
    assert client.read_holding_registers(0x2000, count=1, device_id=1).registers == [0]
    assert rotors[0].effort == 0.0


def test_a_client_of_pymodbus_reads_floats(client):
    client, rotors = client
    found = client.read_input_registers(200, count=4, device_id=2).registers
    values = client.convert_from_registers(found, client.DATATYPE.FLOAT32, word_order="little")
    assert values == pytest.approx([rotors[1].max_effort, rotors[1].max_velocity])


def test_exceptions_of_an_emulated_drive(client):
    client, _ = client
    assert client.read_holding_registers(0x5000, count=1, device_id=1).exception_code == 2
    assert client.write_register(0x2000, 1, device_id=1).exception_code == 2  # measured
    assert client.write_register(0x3001, 77, device_id=1).exception_code == 3  # no mode


# --- by rule: every request that the client has -----------------------------------------------------------

# request of the client -> what it is sent with, and what a drive answers: registers, an exception, or other values
READS = ("read_coils", "read_discrete_inputs")
REQUESTS: dict[str, tuple[dict, object]] = {
    **{name: ({"address": 0, "count": 1}, 1) for name in READS},
    "write_coil": ({"address": 0, "value": True}, 1),
    "write_coils": ({"address": 0, "values": [True] * 9}, 1),
    "read_exception_status": ({}, 1),
    "diag_restart_communication": ({"toggle": True}, 1),
    "diag_query_data": ({"msg": b"\x12\x34"}, {"message": b"\x12\x34"}),
    "diag_get_comm_event_counter": ({}, 1),
    "diag_get_comm_event_log": ({}, 1),
    "report_device_id": ({}, 1),
    "read_file_record": ({"records": []}, 1),
    "write_file_record": ({"records": []}, 1),
    "read_fifo_queue": ({"address": 0}, 1),
    "read_device_information": ({"read_code": 1}, {"information": {0: b"cosim", 1: b"emulated drive", 2: b"1.0"}}),
    "read_holding_registers": ({"address": 0x1000, "count": 3}, [402, 2000, 10000]),
    "read_input_registers": ({"address": 0x1000, "count": 1}, [402]),
    "write_register": ({"address": 0x3002, "value": 700}, {"registers": [700]}),
    "write_registers": ({"address": 0x3002, "values": [700, 800]}, {"address": 0x3002, "count": 2}),
    "mask_write_register": ({"address": 0x3002, "and_mask": 0xFF, "or_mask": 0x100}, {"or_mask": 0x100}),
    "readwrite_registers": ({"read_address": 0x1000, "read_count": 1, "write_address": 0x3002, "values": [9]}, [402]),
}


def requests_of_the_client() -> list[str]:
    """Its methods that send a request."""
    methods = inspect.getmembers(ModbusClientMixin, inspect.isfunction)
    return [name for name, method in methods if "device_id" in inspect.signature(method).parameters]


@pytest.mark.parametrize("name", requests_of_the_client())
def test_every_request_of_the_client_is_answered(client, name):
    client, _ = client
    # the others are diagnostics with counters that the drive does not have
    given, wanted = ({}, 1) if name not in REQUESTS and name.startswith("diag_") else REQUESTS[name]
    answer = getattr(client, name)(**given, device_id=1, no_response_expected=False)
    if isinstance(wanted, int):
        assert answer.exception_code == wanted
    elif isinstance(wanted, list):
        assert answer.registers == wanted
    else:
        assert {key: getattr(answer, key) for key in wanted} == wanted


def test_a_mask_changes_some_bits_of_a_register(client):
    client, _ = client
    client.write_register(0x3002, 0x1234, device_id=1)
    client.mask_write_register(address=0x3002, and_mask=0xFF00, or_mask=0x0056, device_id=1)
    both = {"read_address": 0x3002, "read_count": 1, "write_address": 0x3003, "values": [1], "device_id": 1}
    assert client.readwrite_registers(**both).registers == [0x1256]
    assert client.mask_write_register(address=0x2000, and_mask=0, or_mask=0, device_id=1).exception_code == 2


# exception -> requests that are answered with it; most of them the client does not send
REFUSED = {
    1: ("08 0001 0000", "64", "41 0102030405"),
    2: (
        *("04 ffff 0002", "10 ffff 0002 04 00000000", "17 1000 0001 2000 0001 02 0000"),
        "17 5000 0001 3002 0001 02 0007",
    ),
    3: (
        *("03 1000 0000", "03 1000 007e", "10 3002 0000 00", "10 3002 007c 02 0000", "10 3002 0002 02 0000"),
        "17 1000 007e 3002 0001 02 0000",
    ),
}


def test_quantities_and_addresses_beyond_their_limits_and_broadcasts(tmp_path):
    _, params, context = built(tmp_path, str(tmp_path / "tty"), a=WHOLE_NUMBERS, b=WHOLE_NUMBERS)
    emulator: Any = modbus.emulate(params, context, [Rotor(), Rotor()])
    before = dict(emulator.drives[1].written)
    for exception, request in ((code, each) for code, requests in REFUSED.items() for each in requests):
        frame = codec.checked(bytes.fromhex("01" + request))
        for cut in range(len(frame)):  # in chunks, as it may come
            assert emulator.handle(frame[:cut], 0) == []
            assert emulator.handle(frame[cut:], 1) == [codec.refusal_of(1, frame[1], exception)], request
    assert emulator.drives[1].written == before
    # a broadcast is carried out by all and answered by none
    assert emulator.handle(codec.encode(codec.RtuRequest(0, codec.WRITE_ONE, at=0x3002, words=(321,))), 0) == []
    assert [drive.written[0x3002] for drive in emulator.drives.values()] == [321, 321]
    assert emulator.handle(codec.encode(codec.RtuRequest(0, codec.READ, 0x1000, 1)), 0) == []
    assert emulator.handle(codec.checked(b"\0\x64"), 0) == []


# --- the identification of a device: `pymodbus` sends and decodes the same frames ---

TEXTS = ("Maker", "Servo 5", "V1.2")


def test_the_request_is_that_of_pymodbus():
    request = ReadDeviceInformationRequest(read_code=1, object_id=0, dev_id=5)
    assert FramerRTU(DecodePDU(True)).buildFrame(request) == identification.request(5)


def test_pymodbus_decodes_the_answer():
    frame = identification.answer(5, TEXTS)
    _, decoded = FramerRTU(DecodePDU(False)).handleFrame(frame, 5, 0)
    assert decoded.dev_id == 5
    assert list(decoded.information.values()) == [text.encode() for text in TEXTS]


def test_an_answer_is_found_among_other_bytes_and_a_damaged_one_is_none():
    frame = identification.answer(5, TEXTS)
    assert identification.texts(5, identification.request(5) + frame) == list(TEXTS)
    assert identification.texts(6, frame) == []
    for k in range(4, len(frame)):
        assert identification.texts(5, frame[:k]) == []
        assert identification.texts(5, frame[:k] + bytes([frame[k] ^ 1]) + frame[k + 1 :]) in ([], list(TEXTS))


@pytest.mark.parametrize(
    ("code", "first", "found"),
    [
        (1, 0, {0: b"Maker", 1: b"Servo 5", 2: b"V1.2"}),
        (2, 0, {0: b"Maker", 1: b"Servo 5", 2: b"V1.2"}),
        (4, 1, {1: b"Servo 5"}),
    ],
)
def test_pymodbus_decodes_what_it_asks_for(code, first, found):
    request = ReadDeviceInformationRequest(read_code=code, object_id=first, dev_id=5)
    frame = identification.reply(FramerRTU(DecodePDU(True)).buildFrame(request), TEXTS)
    _, decoded = FramerRTU(DecodePDU(False)).handleFrame(frame, 5, 0)
    assert decoded.information == found


@pytest.mark.parametrize(("asked", "exception"), [("0e0403", 2), ("0e0500", 3), ("0d0100", 1), ("0e", 1)])
def test_other_requests_are_refused(asked, exception):
    request = codec.checked(bytes.fromhex("052b" + asked))
    assert identification.reply(request, TEXTS) == codec.refusal_of(5, 43, exception)
