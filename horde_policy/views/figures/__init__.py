"""Plotly figures, one module per page."""
