"""The rules A1–A30, pure: scalar functions on small dataclasses and their Polars expressions."""
