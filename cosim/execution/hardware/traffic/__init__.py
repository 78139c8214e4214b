"""The traffic of real drivers: recorded at their connection and at their contract, and played to them again."""
