"""The format of recordings: what writes and reads them knows it from here."""
