"""Bytes in, snapshots out: the live API, recorded folders, the bundled demo, Prometheus."""
