"""Readers of exported metrics and of request traffic."""
