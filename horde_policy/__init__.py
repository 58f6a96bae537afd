"""The free output allowance of AI Horde and capped output reservations: watched, judged and tried."""

__version__ = "0.1.0"
