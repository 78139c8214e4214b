"""What drives report beside the numbers of the cycle: emergencies, and that they left the operational state."""

from __future__ import annotations

from cosim.plugins.drivers.cia402 import codec, faults, profile

PDOS = tuple(codec.TPDO + number * codec.PDO_STRIDE for number in range(4))
RECEIVED = (*PDOS, codec.EMCY, codec.HEARTBEAT, codec.SDO_ANSWER)  # + id


class NetworkStates:
    """Of n drives, by index. error: codes of their last emergencies, 0 for none."""

    def __init__(self, n: int) -> None:
        self.error = [0] * n
        self.set_operational(False)

    def set_operational(self, operational: bool) -> None:
        """The drives were commanded to be operational, or not to be."""
        n, self.operational = len(self.error), operational
        self._left = [False] * n
        self._was_operational = [False] * n  # reported the operational state since it was commanded

    def heartbeat(self, k: int, state: int, answered: bool) -> None:
        """The NMT state, 0 at boot-up, with the toggle bit of node guarding; answered: it has sent process data since
        it was commanded to be operational."""
        state &= 0x7F
        # a drive may report its state from just before the command
        self._was_operational[k] |= answered or state == codec.RUNNING
        self._left[k] = self.operational and state != codec.RUNNING and (self._was_operational[k] or not state)

    def emergency(self, k: int, code: int) -> None:
        """Code 00xx: no error any more. A missed heartbeat does not replace an earlier fault."""
        if code != faults.HEARTBEAT or not self.error[k]:
            self.error[k] = code if code & 0xFF00 else 0

    def fault(self, k: int, word: int, display: int, mode: int | None) -> int:
        """The fault of a drive with this statusword and mode display, 0 for none; mode: the commanded one, None if the
        drive is commanded off."""
        if word & profile.FAULTY:
            return self.error[k] or faults.UNNAMED
        if self._left[k]:
            return self.error[k] or faults.RESTARTED
        if mode is None:
            return 0
        state = profile.state_of(word)
        if state != profile.ENABLED:
            return faults.STOPPING if state == profile.QUICK_STOP else faults.SWITCHED_OFF
        return 0 if display == mode else faults.OTHER_MODE
