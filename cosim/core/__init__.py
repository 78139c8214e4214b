"""The words that all rooms share, the compiler, the loops of a servo drive, and what came from elsewhere read as
data."""
