"""From samples to facts: one decoder for exporter text, Prometheus answers and files of either."""
