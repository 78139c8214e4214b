"""One control cycle as tasks on one memory."""
