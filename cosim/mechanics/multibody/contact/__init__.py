"""Contact between shapes: their gaps, the law of a contact, and the impulses that follow from it."""
