"""First steps with real drives: finding them, checking their wiring, moving, homing and calibrating single joints."""
