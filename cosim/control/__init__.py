"""What lies between measurement and command, as pure functions: control loop, guard, start and stop of motion."""
