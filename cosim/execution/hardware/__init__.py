"""Drivers as the loop sees them: enabling, emergency stop, and the emulated far end."""
