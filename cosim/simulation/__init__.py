"""The simulated plant, the tick that a control loop runs, the code of its loops, and parts of other programs."""
