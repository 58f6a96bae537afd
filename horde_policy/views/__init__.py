"""Figures, tables, words and exports; no Streamlit."""
