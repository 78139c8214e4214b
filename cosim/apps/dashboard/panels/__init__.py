"""The widgets of a page, one panel per file; what they show is decided elsewhere."""
