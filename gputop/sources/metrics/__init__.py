"""Metric samples to facts: one semantic layer for exporters, Prometheus and files of both."""
