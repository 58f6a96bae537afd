"""Requests against a fleet under settings: traffic and fleets made ready, the engine, its report."""
