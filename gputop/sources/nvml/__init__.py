"""Local GPUs through NVML, read by a child process of its own.

A call into NVML can block for minutes, crash the process, keep the driver from being unloaded, and stay
tied to a library that an upgrade has replaced. All four are answered by ending a process, so NVML is
never loaded into the process that draws: `child` reads, `source` decodes and supervises.
"""
