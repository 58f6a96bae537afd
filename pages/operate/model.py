"""Why does a model give what it gives, and what would change it?"""
import streamlit as st
st.write("model")
