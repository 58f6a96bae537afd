"""The history database: recorder, store, exporter, transfer."""
