"""A small ``/proc`` and ``/sys`` of a simulated node, written into a folder.

Only what a GPU monitor reads: the processes on the GPUs with their command, user and cgroup, the driver's
version, memory, and the PCI devices with the driver that holds each.
"""

from pathlib import Path

from gputop.demo import noise
from gputop.demo.faults import GpuMissing, NvmlInit
from gputop.demo.world import Gpu, Load, Node, Process

_NVIDIA_VENDOR = "0x10de"
# 3D controller, and VGA controller for boards with display outputs.
_CLASS_3D, _CLASS_VGA = "0x030200", "0x030000"


def write(node: Node, t: float, root: Path, *, namespace: bool = False) -> None:
    """Write ``root/proc`` and ``root/sys`` as they are at ``t`` seconds after the scenario's start.

    Args:
        node: The node.
        t: Seconds after the scenario's start.
        root: The folder; it is made where it is missing.
        namespace: True to leave the processes out, as from inside another PID namespace.
    """
    proc, sys = root / "proc", root / "sys"
    _driver(node, t, proc)
    _text(proc / "meminfo", _meminfo(node))
    if not namespace:
        for gpu in node.gpus:
            for load in gpu.loads:
                if load.active(t):
                    for process in load.processes:
                        _process(proc, node, load, process, t)
    for gpu in node.gpus:
        _pci_device(sys, gpu, t)
    _bridge(sys)


def _text(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _driver(node: Node, t: float, proc: Path) -> None:
    loaded = node.group.driver
    for fault in node.faults:
        if isinstance(fault, NvmlInit) and fault.active(t):
            # 9 is a module that is not loaded: then the whole folder is missing.
            if fault.code == 9:
                return
            loaded = fault.kernel_driver or loaded
    _text(
        proc / "driver" / "nvidia" / "version",
        f"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  {loaded}  Release Build  (builder@host)\n"
        "GCC version:  gcc version 12.3.0 (Debian 12.3.0-17)\n",
    )
    for gpu in node.gpus:
        domain, rest = gpu.bus_id.split(":", 1)
        _text(
            proc / "driver" / "nvidia" / "gpus" / f"{int(domain, 16):04x}:{rest.lower()}" / "information",
            f"Model: \t\t {gpu.model.name}\nGPU UUID: \t {gpu.uuid}\nDevice Minor: \t {gpu.minor}\n",
        )


def _meminfo(node: Node) -> str:
    total = node.group.memory_gib * 1024 * 1024
    free = total * 2 // 5
    cached = total // 4
    rows = {
        "MemTotal": total,
        "MemFree": free,
        "MemAvailable": free + cached,
        "Buffers": 1024,
        "Cached": cached,
    }
    return "".join(f"{name + ':':<16}{value:>10} kB\n" for name, value in rows.items())


def user_id(user: str) -> int:
    """Return a numeric user id for a name; root is 0."""
    return 0 if user == "root" else 1000 + noise.fold(user) % 60_000


def _process(proc: Path, node: Node, load: Load, process: Process, t: float) -> None:
    folder = proc / str(process.pid)
    words = load.pod.command.split()
    name = Path(words[0]).name[:15]
    uid = user_id(load.pod.user)
    start_ticks = int((load.pod.start_s + node.group.uptime_s) * 100)
    _text(folder / "comm", f"{name}\n")
    _text(folder / "cmdline", "\0".join(words) + "\0")
    _text(
        folder / "cgroup",
        "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod"
        f"{load.pod.uid.replace('-', '_')}.slice/cri-containerd-{noise.hexadecimal(process.pid, 64)}.scope\n",
    )
    _text(
        folder / "status",
        f"Name:\t{name}\nState:\tS (sleeping)\nTgid:\t{process.pid}\nPid:\t{process.pid}\nPPid:\t1\n"
        f"Uid:\t{uid}\t{uid}\t{uid}\t{uid}\nGid:\t{uid}\t{uid}\t{uid}\t{uid}\nVmRSS:\t{8 * 1024 * 1024} kB\n"
        f"NSpid:\t{process.pid}\t1\n",
    )
    cpu_ticks = int(max(0.0, t - load.pod.start_s) * 100 * (0.2 + load.level))
    # Fields 14 and 15 are user and system time, 22 the start, 24 the resident pages (proc_pid_stat(5)).
    fields = [
        "S",
        "1",
        "1",
        "1",
        "0",
        "-1",
        "0",
        "0",
        "0",
        "0",
        "0",
        str(cpu_ticks),
        str(cpu_ticks // 9),
        "0",
        "0",
    ]
    fields += ["20", "0", "8", "0", str(start_ticks), "42949672960", "2097152"]
    _text(folder / "stat", f"{process.pid} ({name}) {' '.join(fields)}\n")
    environment = {
        "HOSTNAME": load.pod.name,
        "NVIDIA_VISIBLE_DEVICES": ",".join(gpu.uuid for gpu in node.gpus if load in gpu.loads),
        "KUBERNETES_SERVICE_HOST": "10.96.0.1",
    }
    _text(folder / "environ", "".join(f"{key}={value}\0" for key, value in environment.items()))


def _pci_device(sys: Path, gpu: Gpu, t: float) -> None:
    domain, rest = gpu.bus_id.split(":", 1)
    folder = sys / "bus" / "pci" / "devices" / f"{int(domain, 16):04x}:{rest.lower()}"
    _text(folder / "vendor", f"{_NVIDIA_VENDOR}\n")
    _text(folder / "device", f"0x{gpu.model.pci_device_id >> 16:04x}\n")
    _text(folder / "class", f"{_CLASS_VGA if gpu.model.display else _CLASS_3D}\n")
    _text(folder / "numa_node", f"{gpu.index * 2 // max(1, len(gpu.node.gpus))}\n")
    _text(folder / "power" / "runtime_status", "active\n")
    driver = _holder(gpu, t)
    if driver:
        target = sys / "bus" / "pci" / "drivers" / driver
        target.mkdir(parents=True, exist_ok=True)
        link = folder / "driver"
        link.unlink(missing_ok=True)
        link.symlink_to(target)


def _holder(gpu: Gpu, t: float) -> str:
    for fault in gpu.faults:
        if isinstance(fault, GpuMissing) and fault.active(t):
            return fault.driver
    unloaded = any(isinstance(one, NvmlInit) and one.code == 9 and one.active(t) for one in gpu.node.faults)
    return "" if unloaded else "nvidia"


def _bridge(sys: Path) -> None:
    """Write a device that is no GPU, as every machine has many."""
    folder = sys / "bus" / "pci" / "devices" / "0000:00:00.0"
    _text(folder / "vendor", "0x8086\n")
    _text(folder / "device", "0x09a2\n")
    _text(folder / "class", "0x060000\n")
