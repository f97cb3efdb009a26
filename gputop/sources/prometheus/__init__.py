"""Prometheus and everything that speaks its HTTP API."""
