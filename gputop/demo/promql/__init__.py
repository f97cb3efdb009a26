"""The part of PromQL that the simulated Prometheus answers."""
