"""Whether this machine has NVIDIA GPUs worth starting the NVML source for, told without touching them."""

from pathlib import Path

from gputop.sources.nvml.pci import PciBus


def signs(proc_root: Path = Path("/proc"), sys_root: Path = Path("/sys"), dev_root: Path = Path("/dev")) -> str:
    """Return what shows that there are NVIDIA GPUs here, "" when nothing does.

    A library alone is no sign: images carry it to machines without a GPU.
    """
    for path in (dev_root / "nvidiactl", proc_root / "driver" / "nvidia" / "version"):
        if path.exists():
            return str(path)
    # WSL has no PCI device and no nvidiactl: the GPU is behind a device of Windows.
    if (dev_root / "dxg").exists():
        return str(dev_root / "dxg")
    gpus = PciBus(sys_root, proc_root, ()).gpus()
    return f"{len(gpus)} NVIDIA GPUs on the PCI bus" if gpus else ""
