"""Descriptions of mechanisms: reading, checking, numbering, cutting of loops."""
