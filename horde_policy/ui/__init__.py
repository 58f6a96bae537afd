"""The only Streamlit of the package."""
