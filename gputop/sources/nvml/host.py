"""The node around the GPUs: memory, driver versions, and why NVML cannot be used."""

import re
from pathlib import Path
from typing import Final

from gputop.model.facts import PciGpu
from gputop.model.reading import Value, failed
from gputop.model.sanity import judge
from gputop.model.text import clean
from gputop.sources.nvml import errors
from gputop.sources.nvml.protocol import NoNvml

# "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.54.03  Tue …"; the open modules say "… Open Kernel
# Module for x86_64  570.86.15 …".
_KERNEL_VERSION: Final = re.compile(r"Kernel Module\b.*?\s(\d+\.\d+(?:\.\d+)*)")
_LIBRARY_FILE: Final = re.compile(r"libnvidia-ml\.so\.(\d+\.\d+(?:\.\d+)*)")


def kernel_driver_version(proc_root: Path) -> str:
    """Return the version of the loaded kernel module, "" when none is loaded or it does not say."""
    try:
        text = (proc_root / "driver" / "nvidia" / "version").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    match = _KERNEL_VERSION.search(text)
    return match.group(1) if match else ""


def mapped_library_version() -> str:
    """Return the version in the file name of the NVML library this process has loaded, or ""."""
    try:
        maps = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    match = _LIBRARY_FILE.search(maps)
    return match.group(1) if match else ""


def library_version(nvml_version: Value) -> str:
    """Return the driver version the loaded library belongs to.

    Args:
        nvml_version: What `nvmlSystemGetNVMLVersion` says: the CUDA major number and the driver version
            ("12.550.54.15"). It is told even when the init has failed, and so is the file name.
    """
    mapped = mapped_library_version()
    if mapped or not isinstance(nvml_version, str):
        return mapped
    return nvml_version.partition(".")[2]


def numbers(version: Value) -> tuple[int, ...]:
    """Return a dotted version as numbers, () when it is none."""
    parts = version.split(".") if isinstance(version, str) else []
    return tuple(int(part) for part in parts) if all(part.isdigit() for part in parts) else ()


def system_memory(proc_root: Path) -> dict[str, Value]:
    """Return total and available system memory, by quantity.

    MemAvailable, not MemFree: the page cache is given back on demand (unslothai/unsloth#10704 saw MemFree
    fall by 60 GiB after a file was written).
    """
    wanted = {"MemTotal": "system_memory_total_mib", "MemAvailable": "system_memory_available_mib"}
    readings: dict[str, Value] = {}
    try:
        lines = (proc_root / "meminfo").read_text(encoding="ascii", errors="replace").splitlines()
    except OSError as error:
        absent = failed(f"/proc/meminfo: {error.strerror}")
        return dict.fromkeys(wanted.values(), absent)
    for line in lines:
        key, _, rest = line.partition(":")
        quantity = wanted.get(key)
        if quantity:
            kib = rest.split()[0] if rest.split() else ""
            readings[quantity] = (
                judge(quantity, int(kib) / 1024.0) if kib.isdigit() else failed(f"{key} is {clean(rest)}")
            )
    return readings


def explain_init_failure(code: int, library: str, kernel: str, pci: tuple[PciGpu, ...] | None) -> NoNvml:
    """Return the words for a failed init.

    Args:
        code: What `nvmlInit` returned, or LIBRARY_NOT_FOUND when the library could not be loaded.
        library: Version of the loaded library, "" if not known.
        kernel: Version of the loaded kernel module, "" if none.
        pci: What the bus shows.
    """
    if code == errors.LIB_RM_VERSION_MISMATCH:
        return NoNvml(
            "driver_mismatch",
            f"NVIDIA library {library or '(version unknown)'} does not fit the loaded kernel module "
            f"{kernel or '(version unknown)'}, as after an upgrade: reboot, or unload and load the module",
        )
    if code == errors.LIBRARY_NOT_FOUND:
        return NoNvml(
            "no_library",
            "libnvidia-ml.so.1 was not found: install the NVIDIA driver's compute libraries, or give the "
            f"container the utility capability{_module_note(kernel)}",
        )
    if code == errors.DRIVER_NOT_LOADED:
        return NoNvml("driver_not_loaded", f"the NVIDIA driver is not loaded{_holders(pci)}: modprobe nvidia")
    if code == errors.NO_PERMISSION:
        return NoNvml(
            "no_permission",
            "this user may not open /dev/nvidiactl: check its mode, the user's groups and the container's devices",
            denied=True,
        )
    if code == errors.GPU_NOT_FOUND:
        return no_gpu(pci)
    return NoNvml("nvml_error", f"NVML cannot be opened: {errors.describe(code)}{_holders(pci)}")


def no_gpu(pci: tuple[PciGpu, ...] | None) -> NoNvml:
    """Return the words for a driver that is loaded and lists no GPU."""
    return NoNvml("no_gpu", f"the NVIDIA driver lists no GPU{_holders(pci)}")


def _module_note(kernel: str) -> str:
    return f" (kernel module {kernel} is loaded)" if kernel else ""


def _holders(pci: tuple[PciGpu, ...] | None) -> str:
    if not pci:
        return "" if pci is None else " and the PCI bus shows none"
    counts: dict[str, int] = {}
    for gpu in pci:
        counts[gpu.driver or "no driver"] = counts.get(gpu.driver or "no driver", 0) + 1
    held = ", ".join(f"{count} held by {driver}" for driver, count in sorted(counts.items()))
    return f", the PCI bus shows {len(pci)} ({held})"
