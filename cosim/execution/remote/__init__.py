"""Control of a run by other programs: requests over ZeroMQ, checked and answered in a separate process."""
