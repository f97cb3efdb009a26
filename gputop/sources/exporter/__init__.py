"""Exporters read directly, where there is no Prometheus."""
