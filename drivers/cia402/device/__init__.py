"""The device side of CiA 402 on CANopen: one emulated drive. `node` holds its state, the rest are functions."""
