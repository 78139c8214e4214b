"""One emulated drive: its state and modes, its control loop, its registers and its diagnostic console."""
