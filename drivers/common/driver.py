"""The base of all drivers of real motors: states, checks, timing, units and messages.

A family of drives derives from `MotorDriver` and supplies the methods of its last section: how to connect, switch on,
send, receive and switch off. Where it has fixed frames it declares what is sent and received in every cycle (`cycle`),
which then runs here or in machine code. Everything that a user of a driver can rely on is here.

    CLOSED --open--> OFF --enable--> ON --stop--> OFF --close--> CLOSED      (`stop`, `close`: in any state)

* One thread opens, enables, reads and writes. Any thread may stop: a command that another thread is sending at that
  moment is finished first (for at most STOP_NS), and none follows it until the next `enable`.
* A drive that reports a fault is not enabled. `latched` is set then; `clear` clears faults, nothing else does.
* A command is sent only while the motors are on, before its `valid_until_ns`, and if it is finite. Efforts are clipped
  to what the drive's command can carry, and counted (`feedforward`).
* Feedback is polled: every command requests it; `read` requests it if no command was sent since the last `read`, in a
  way that does not feed the drives' watchdogs.
* `read` returns when all drives have answered, at the latest at its deadline. A measurement has the time of the
  drive that was heard longest ago; it does not advance when a drive is silent.
* Errors until it is open are `InputError`s at the joint's address in the rig; later ones are `RunError`s that start
  with the joint's name. `ConnectionLost` is raised by the connection, from any call but `stop` and `close`. What the
  rig alone shows is refused when a driver is made: every rig that is loaded makes all of its drivers, and opens none.
"""

from __future__ import annotations

import math
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ClassVar

from cosim.core.driver_contract import AddedTurns, DriverContext, FeedforwardReport
from cosim.core.errors import RunError
from cosim.core.types import Array, JointCommand, JointState, closed_loop_effort
from cosim.plugins.drivers.common.cycle import STATE_TEMPERATURE, CycleLayout, Transmission
from cosim.plugins.drivers.common.drive_checks import DriveChecks, Item, Joint, ListedCommand, State
from cosim.plugins.drivers.common.feedforward_field import FeedforwardField
from cosim.plugins.drivers.common.frame_layout import ReceivedFrame
from cosim.plugins.drivers.common.interpreted_cycle import InterpretedCycle
from cosim.plugins.drivers.common.power_on_turns import PowerOnTurns
from cosim.plugins.drivers.common.wiring import Units
from cosim.plugins.drivers.transport import Connection

if TYPE_CHECKING:
    from cosim.plugins.drivers.common.compiled_driver import CompiledDriver
    from cosim.plugins.drivers.transport.compiled_link import CompiledLink

MODES = frozenset({"effort", "velocity", "position"})
STOP_NS = 20_000_000  # for sending all that switches the motors off
MAX_BURST = 256  # items taken at once, so that a flood of them blocks nothing
RETRY_NS = 50_000_000  # between two requests for the same answer
POSITION_RETRIES = 10  # of requests for the position of drives that did not report while they were switched on


class Feedback:
    """The latest feedback of n drives, in their own units: rad, rad/s, N·m, °C; t_ns: when it came, 0 for never.

    In lists, as in `Units`.
    """

    def __init__(self, n: int) -> None:
        self.position, self.velocity, self.effort = [0.0] * n, [0.0] * n, [0.0] * n
        self.temperature = [math.nan] * n
        self.t_ns = [0] * n

    def update(self, states: Iterable[Sequence[float]], t_ns: list[int]) -> None:
        """states: of each joint, see `cycle`."""
        columns = map(list, zip(*states, strict=True))
        self.position, self.velocity, self.effort, self.temperature, _ = columns
        self.t_ns = t_ns


class MotorDriver(DriveChecks[Item, Joint], ABC):
    """n joints, each with a drive, behind one connection. Satisfies `cosim.core.driver_contract.HardwareDriver`.

    Arrays and lists are per joint, in the order of the context; k is the index of a joint.
    """

    modes: frozenset[str] = MODES
    _encode: Callable[[Any], Any] | None = None  # declared frame -> item of the connection, unless it is one
    stop_clears_faults: ClassVar[bool] = False  # the drives' command to switch off clears their faults too

    @property
    def faults_outlast_stop(self) -> bool:
        return not self.stop_clears_faults

    def __init__(self, context: DriverContext, link: Connection[Item], watchdog: float) -> None:
        """watchdog [s]: after which drives without commands stop."""
        n = len(context.joints)
        self.joints, self.limits, self.link, self.watchdog = context.joints, context.limits, link, watchdog
        self.latched = False  # `enable` was refused for a fault that `clear` may clear
        self.feedforward = FeedforwardField(self.joints)
        self._context = context
        self._wiring = context.wiring
        self.units, self._names = Units(context.wiring), ", ".join(context.joints)
        self._turns = PowerOnTurns(self.units, context.limits, context.turns)
        self._compared_limits = {}
        self._now = link.now
        self._state, self._mode = State.CLOSED, context.mode
        self._stopped = True  # no command may be sent any more
        self._gate = threading.Lock()  # held while commands are sent
        self._commanded = False  # a command was sent since the last read
        self._pending: set[int] = set()  # joints whose drives have not answered the last request
        self._lost = 0
        self._feedback = Feedback(n)
        self._position, self._velocity = [0.0] * n, [0.0] * n  # of the joints, by the last read
        self.interpreted: InterpretedCycle | None = None  # where frames and functions are declared, see `cycle`
        self.compiled: CompiledDriver | None = None  # while its cycle runs in machine code

    @property
    def _is_on(self) -> bool:
        return self._state is State.ON

    @property
    def lost(self) -> int:
        """Replies that did not come, or could not be decoded, since `open`."""
        return self._lost if self.interpreted is None else self._lost + self.interpreted.lost

    # --- the contract -------------------------------------------------------------------------------

    def open(self) -> None:
        """Connect and check every drive; motors are off afterwards.

        Raises InputError at the joint whose drive does not answer, is of another kind or allows less than the guard;
        the connection is closed then.
        """
        self._state, self._lost = State.OPENING, 0
        self._feedback = Feedback(len(self.joints))
        self._turns.forget()
        if (cycle := self.interpreted) is not None:
            cycle.forget()
            self._rewire()
        self.link.open()
        try:
            self._connect()
        except BaseException:
            self.close()
            raise
        self._state = State.OFF

    def enable(self, mode: str) -> None:
        """Switch the motors on; they hold still until the first command.

        Raises RunError for a mode that is not in `modes`, a drive with a fault (`latched` is set then) and one that
        does not switch on; motors are off then.
        """
        if mode not in self.modes:
            known = ", ".join(sorted(self.modes))
            raise RunError(f"the drives of {self._names} have no mode '{mode}'; use one of {known}")
        self._require_open()
        self._state, self._stopped, self.latched = State.OFF, False, False
        try:
            self._prepare(mode)
            self._mode = mode
            for k in range(len(self.joints)):
                if code := self._fault_before_enable(k):
                    self.latched = True
                    raise self._joint_error(k, f"fault: {self.describe_fault(k, code)}")
            if self.interpreted is not None:
                self.interpreted.send_as(self._transmission(mode), self._encode)
            self._switch_on(mode)
            self._require_turns()
            self._rewire()
            with self._gate:
                self.check_not_stopped()
                self._state = State.ON
        except BaseException:
            if self.latched and self.stop_clears_faults:
                self._stopped = True  # nothing was switched on, and the fault is to stay visible
            else:
                self.stop()
            raise
        self._commanded = False

    def read(self, out: JointState, deadline_ns: int) -> None:
        """The newest measurement that has come by the deadline. Raises ConnectionLost, and RunError for a drive that is
        on and reports no number as its position or velocity.

        Joints that were never heard of keep their values in `out`.
        """
        if not self._commanded:
            self._poll(deadline_ns)
        self._commanded = False
        self._receive(deadline_ns)
        self._find_turns()
        self._convert_feedback()
        if (cycle := self.interpreted) is not None:
            effort, times = cycle.effort, cycle.times
            temperature = [state[STATE_TEMPERATURE] for state in cycle.states]
        else:
            feedback = self._feedback
            effort, times = self.units.joint_effort(feedback.effort), feedback.t_ns
            temperature = feedback.temperature
        t_ns = min(times)
        if self._state is State.ON:
            self._check_measured()
        if t_ns:
            out.position[:], out.velocity[:] = self._position, self._velocity
            out.effort[:], out.temperature[:] = effort, temperature
        else:
            for k in [k for k, heard_ns in enumerate(times) if heard_ns]:
                out.position[k], out.velocity[k] = self._position[k], self._velocity[k]
                out.effort[k], out.temperature[k] = effort[k], temperature[k]
        out.fault[:] = self._fault_codes()
        out.t_ns = t_ns

    def write(self, cmd: JointCommand, deadline_ns: int) -> None:
        """Send one command to every drive. Raises RunError: the motors are off, the command has expired or is not
        finite, another thread stopped the motors. Raises ConnectionLost."""
        if self._state is not State.ON:
            raise RunError(f"the motors of {self._names} are off; enable the driver first")
        if self._now() > cmd.valid_until_ns:
            raise RunError(f"the command of {self._names} has expired and was not sent; the program is too late")
        command = ListedCommand(
            cmd.position.tolist(), cmd.velocity.tolist(), cmd.effort.tolist(), cmd.kp.tolist(), cmd.kd.tolist()
        )
        if self.interpreted is not None:
            self._drain()
            requested = self._fill(command)
            self.check_finite(command, requested)
            self.feedforward.count(requested)
            self._commanded = True
            with self._gate:
                self.check_not_stopped()
                self._send_filled(deadline_ns)
            return
        units = self.units
        position, velocity = units.drive_position(command.position), units.drive_velocity(command.velocity)
        requested = self._requested_effort(command, position, velocity)
        self.check_finite(command, requested)
        effort = units.drive_effort(self.feedforward.fit(requested))
        self._commanded = True
        with self._gate:
            self.check_not_stopped()
            self._send_commands(position, velocity, effort, deadline_ns)

    def stop(self) -> None:
        """Motors off, without waiting for an answer; from any state and thread; never raises."""
        self._stopped = True
        if (compiled := self.compiled) is not None:
            compiled.forbid(STOP_NS * 1e-9)
        if self._state is State.ON:
            self._state = State.OFF
        acquired = self._gate.acquire(timeout=STOP_NS * 1e-9)  # a writer that hangs does not prevent a stop
        try:
            self._send_stop()
        finally:
            if acquired:
                self._gate.release()
        self._commanded = False

    def clear(self) -> None:
        """Clear the drives' faults; motors are off afterwards. Raises RunError: not open, no answer, or a fault that
        persists."""
        self._require_open()
        self.stop()
        begun = self._now()
        self._clear_faults()
        self._turns.forget(begun)  # some restart
        self.latched = False

    def close(self) -> None:
        """Motors off, settings of the drives restored, connection closed. Never raises."""
        self.stop()
        if self._state is State.OFF:
            with suppress(Exception):
                self._disconnect()
        self._state = State.CLOSED
        self.link.close()

    # --- the cycle in machine code --------------------------------------------------------------------

    @property
    def why_not_compiled(self) -> str:
        """Why its cycle cannot run in machine code; empty if it can."""
        if self.interpreted is None:
            return f"the cycle of {type(self).__name__} is in Python"
        if find_spec("numba") is None:
            return "Numba is not installed; pip install 'cosim[buses]'"
        return self.link.why_not_compiled

    def load_cycle(self) -> None:
        """Compile its cycle, or load what was compiled before: takes seconds the first time on a machine."""
        from cosim.plugins.drivers.common.exchange import joint_function

        assert self.interpreted is not None
        import_module("cosim.plugins.drivers.common.compiled_driver")
        self._compiled_link()
        reception = self.interpreted.reception
        for function in (reception.state, reception.whole):
            if function is not None:
                joint_function(function)
        for mode in sorted(self.modes):
            joint_function(self._transmission(mode).command)

    def compile(self) -> CompiledDriver:
        """Its cycle in machine code, in the mode in which the motors are on; after `load_cycle`."""
        from cosim.plugins.drivers.common.compiled_driver import CompiledDriver

        return CompiledDriver(self, self._cycle_layout(), self._compiled_link()(self.link))

    def _cycle_layout(self) -> CycleLayout:
        """What makes its cycle in the present mode in machine code."""
        cycle, stops = self.interpreted, tuple[Any, ...](self._stop_items())
        assert cycle is not None
        declared = cycle.reception, cycle.transmission
        return CycleLayout(*declared, cycle.settings, cycle.numbers, self._polls(), stops)

    def _compiled_link(self) -> Callable[[Any], CompiledLink]:
        """What makes its connection, once it is open, one in machine code."""
        from cosim.plugins.drivers.transport.can_socket import CanSocket

        return CanSocket

    def take_back(self, came: Iterable[ReceivedFrame], waiting: Sequence[bool]) -> None:
        """After its cycle ran in machine code: the frames that came then, whose last numbers and times are those of
        `interpreted`, and which the next `read` judges before it requests others; waiting: which have not come."""
        assert self.interpreted is not None
        self.compiled, self._commanded = None, True
        for received in came:
            self._judge(received, self.interpreted.last_of(received).t_ns)
        self.interpreted.wait_for(waiting)

    def report(self) -> list[FeedforwardReport]:
        """See `FeedforwardField.report`."""
        return self.feedforward.report()

    def added_turns(self) -> list[AddedTurns]:
        return [AddedTurns(*pair) for pair in zip(self.units.turns, self.units.shifts(), strict=True)]

    def _send_stop(self) -> None:
        deadline_ns = self._now() + STOP_NS
        with suppress(Exception):
            for item in self._stop_items():
                with suppress(Exception):  # the other drives are stopped all the same
                    self.link.send(item, deadline_ns)

    # --- the cycle that is declared -------------------------------------------------------------------

    def _fill(self, command: ListedCommand) -> list[float]:
        """The numbers of the frames for a command of the joints; the efforts that it requests."""
        assert self.interpreted is not None
        return self.interpreted.fill(zip(*command, strict=True))

    def _send_filled(self, deadline_ns: int) -> None:
        """Send the frames that are due, with the numbers that they have now, and await answers. The gate is held."""
        cycle, send, instead = self.interpreted, self.link.send, self._instead()
        assert cycle is not None
        cycle.expect(after_command=True)
        for sent, make in cycle.due():
            if self._stopped:  # by a thread that waited no longer: some drives would run again
                self.check_not_stopped()
            if instead and sent.fields and sent.joint in instead:
                for item in instead[sent.joint]:
                    send(item, deadline_ns)
            else:
                send(make(), deadline_ns)

    def _send_hold(self, deadline_ns: int) -> None:
        """Command every drive to stay where it was measured, without effort. The gate is held."""
        rest = [0.0] * len(self.joints)
        if (cycle := self.interpreted) is None:
            self._send_commands(self._feedback.position, rest, rest, deadline_ns)
            return
        self._rewire()
        self._convert_feedback()
        self._fill(ListedCommand(cycle.position, rest, rest, rest, rest))
        self._send_filled(deadline_ns)

    def _measure(self) -> None:
        """`_feedback` from the numbers that have come."""
        if (cycle := self.interpreted) is not None:
            cycle.measure()
            self._feedback.update(cycle.states, cycle.times)

    def _forget_times(self) -> None:
        """Only what comes from now on counts as feedback."""
        self._feedback.t_ns = [0] * len(self.joints)
        if self.interpreted is not None:
            self.interpreted.forget_times()

    def _rewire(self) -> None:
        """After a change of the turns of the drives, or of the limits of their feedforward fields."""
        if self.interpreted is not None:
            self.interpreted.wire(self.units.scale, self.units.zero, self.feedforward.limit.tolist())

    def _drain(self) -> None:
        """Take what has come already: answers that are no longer waited for."""
        for _ in range(MAX_BURST):
            if (item := self.link.receive(0)) is None:
                return
            self._take(item)

    def _wait(self, done: Callable[[], bool], seconds: float, again: Callable[[], object]) -> bool:
        """Take items until it is done; False when it is not in time. `again` is called first and from time to time,
        often enough for the watchdog. Outside of the cycle only."""
        pause_ns = min(RETRY_NS, int(self.watchdog * 0.25e9))
        end_ns = self._now() + int(seconds * 1e9)
        while True:
            again()
            until_ns = self._now() + pause_ns
            while not done():
                item = self.link.receive(until_ns) if self._now() < until_ns else None
                if item is None:
                    break
                self._take(item)
            else:
                return True
            if self._now() >= end_ns:
                return False

    # --- checks and messages -------------------------------------------------------------------------

    def _require_open(self) -> None:
        if self._state in (State.CLOSED, State.OPENING):
            raise RunError(f"the drives of {self._names} are not open; open the driver first")

    def check_not_stopped(self) -> None:
        """Raises RunError after another thread called `stop`."""
        if self._stopped:
            raise RunError(f"the motors of {self._names} were stopped; enable the driver first")

    def _find_turns(self) -> None:
        """Fold the positions of the drives, once all have reported. Raises RunError for limits that are beyond the
        drive's own then."""
        if not self._turns.pending:
            return
        if self.interpreted is not None:
            self._measure()
        changed = self._turns.find(self._feedback.position, self._feedback.t_ns)
        self._rewire()
        if changed:
            for k, (own, tolerance) in self._compared_limits.items():
                self._check_limits(k, own, tolerance)

    def _require_turns(self) -> None:
        """No command can be converted before the turns are known: drives that did not report while they were switched
        on are asked. Raises RunError for those that do not answer, and see `_find_turns`."""
        self._find_turns()
        for _ in range(POSITION_RETRIES):
            if not self._turns.pending:
                return
            deadline_ns = self._now() + RETRY_NS
            self._poll(deadline_ns)
            self._receive(deadline_ns)
            self._find_turns()
        if self._turns.pending:
            raise RunError(f"the drives of {self._names} report no position; check their power and their bus")

    def _check_measured(self) -> None:
        if math.isfinite(sum(self._position) + sum(self._velocity)):  # the usual way
            return
        for k, (position, velocity) in enumerate(zip(self._position, self._velocity, strict=True)):
            if not math.isfinite(position + velocity):
                what = f"{self._drive_name(k)} reports no number as its position or velocity"
                raise self._joint_error(k, f"{what}; check its encoder")

    # --- what a family supplies ----------------------------------------------------------------------

    @abstractmethod
    def _connect(self) -> None:
        """Identify and check every drive, switch it off, read its configuration; the connection has just been opened.

        Raise `_no_answer(k)`, `_drive_error(k, what)`; call `_check_limits`. Set `feedforward.limit` and `.resolution`.
        """

    def _prepare(self, mode: str) -> None:
        """Before faults are looked for in `enable`: whatever the drives need for that."""
        return None

    @abstractmethod
    def _fault_before_enable(self, k: int) -> int:
        """The code of a fault for which the drive must not be enabled, 0 for none. Raise `_no_answer(k)`."""

    @abstractmethod
    def _switch_on(self, mode: str) -> None:
        """Set the drives' watchdogs, then switch all on at their measured positions, without effort; return when they
        report that they are on. Call `check_not_stopped` before whatever switches a motor on. Raise `_not_on(k, why)`.
        """

    def _convert_feedback(self) -> None:
        """Convert the latest feedback to the positions and velocities of the joints."""
        if (cycle := self.interpreted) is not None:
            cycle.measure()
            cycle.convert()
            self._position, self._velocity = cycle.position, cycle.velocity
        else:
            self._position = self.units.joint_position(self._feedback.position)
            self._velocity = self.units.joint_velocity(self._feedback.velocity)

    # --- with frames and functions that are declared: `interpreted` is set when a driver is made ---

    def _transmission(self, mode: str) -> Transmission:
        """What is sent in a mode; before the drives are open too."""
        raise NotImplementedError

    def _polls(self) -> Sequence[Any]:
        """The frames by which machine code requests measurements without feeding a watchdog, see `CycleLayout`."""
        return ()

    def _judge(self, received: ReceivedFrame, t_ns: int) -> None:
        """A declared frame has come, whose numbers are in `interpreted`: what is more than a state, faults mostly."""
        return None

    def _instead(self) -> Mapping[int, Sequence[Item]]:
        """Joints whose drives get no command now -> what they get in its place."""
        return {}

    def _item(self, frame: Any) -> Any:
        """What the connection sends of a declared frame."""
        return frame if self._encode is None else self._encode(frame)

    # --- with methods: each sends and decodes by itself ---

    def _requested_effort(self, cmd: ListedCommand, position: list[float], velocity: list[float]) -> list[float]:
        """(n,) efforts to send [N·m or N]: in effort mode kp and kd are closed here, with the last measurement.

        position, velocity: of the command, in the drives' units.
        """
        if self._mode != "effort":
            return cmd.effort
        loops = map(closed_loop_effort, cmd.kp, cmd.kd, cmd.position, cmd.velocity, self._position, self._velocity)
        return [loop + effort for loop, effort in zip(loops, cmd.effort, strict=True)]

    def _send_commands(
        self, position: list[float], velocity: list[float], effort: list[float], deadline_ns: int
    ) -> None:
        """Send one command to every drive and request feedback; (n,) in the drives' units. The gate is held."""
        raise NotImplementedError

    @abstractmethod
    def _poll(self, deadline_ns: int) -> None:
        """Request feedback without feeding a watchdog."""

    def _receive(self, deadline_ns: int) -> None:
        """Take items until no joint is pending or the deadline has passed."""
        cycle = self.interpreted
        for _ in range(MAX_BURST):
            if not (self._pending if cycle is None else cycle.pending):
                return
            if (item := self.link.receive(deadline_ns)) is None:
                return
            self._take(item)

    def _take(self, item: Item) -> None:
        """Decode an item into `_feedback`; count it in `_lost` if that fails; remove joints that have answered from
        `_pending`. Where frames are declared: take those."""
        if self.interpreted is None:
            raise NotImplementedError
        frame: Any = item
        if (received := self.interpreted.take(frame)) is not None:
            self._judge(received, frame.t_ns)

    @abstractmethod
    def _fault_codes(self) -> Sequence[int] | Array | int:
        """Per joint, or 0 for none at all: the fault that the drive reported last, negative for states that the driver
        itself takes for a fault."""

    @abstractmethod
    def _stop_items(self) -> Iterable[Item]:
        """What switches all motors off, in the order of sending; in any state."""

    @abstractmethod
    def _clear_faults(self) -> None:
        """Clear the faults of all drives, by the manufacturer's procedure. Raise `_fault_persists(k, code)`,
        `_no_answer(k)`."""

    def _disconnect(self) -> None:
        """Restore settings of the drives that this driver changed; the motors are off, the connection is still open."""
        return None
