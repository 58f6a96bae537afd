"""Checked frames: their schemas and one module per kind of row."""
