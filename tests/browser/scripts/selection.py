"""A page of the tests: a table whose rows change their order or go, and what is selected in it."""

import polars as pl
import streamlit as st

from horde_policy.ui.tables import selected_id, show_frame

ORDERS = {"first": ["alpha", "beta", "gamma"], "turned": ["gamma", "beta", "alpha"], "gone": ["beta", "gamma"]}

order = st.radio("Order", list(ORDERS), horizontal=True)
show_frame(pl.DataFrame({"id": ORDERS[order]}), key="test.rows", alt="Rows to select", id_column="id", height=160)
st.text(f"selected: {selected_id('test.rows')}")
