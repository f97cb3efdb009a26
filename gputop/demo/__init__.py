"""A simulated GPU cluster that speaks the real protocols on loopback.

The demo is the outside world: it answers NVML through pynvml's function table, exporter text and the
Prometheus HTTP API over HTTP, and writes a small ``/proc`` and ``/sys``. Nothing here is imported by the
sources, and nothing here imports them: what reads the demo are the very clients that read a real machine.

Everything is a pure function of (scenario, seed, time), see :mod:`gputop.demo.world`.
"""
