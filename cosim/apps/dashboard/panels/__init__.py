"""The widgets of a page; what they show is decided elsewhere."""
