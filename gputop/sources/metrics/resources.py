"""Names of device resources as kube-state-metrics spells them.

It replaces every character that a label value of its own would not have: `nvidia.com/mig-1g.5gb` becomes
`nvidia_com_mig_1g_5gb`. What a vendor's names look like tells which underscore was what.
"""

import re
from typing import Final

_VENDORS: Final = (
    ("nvidia_com_", "nvidia.com/"),
    ("amd_com_", "amd.com/"),
    ("gpu_intel_com_", "gpu.intel.com/"),
)
_NOT_DEVICES: Final = frozenset({"nvidia.com/imex-channel", "nvidia.com/imex_channel"})
_MIG: Final = re.compile(r"mig_((?:\d+c_)?\d+g_\d+gb)((?:_\w+)?)")
_SHARED: Final = re.compile(r"(.+)_shared")


def real_resource(label: str) -> str:
    """Return the resource name that a label of kube-state-metrics stands for, or "" if it is no GPU."""
    if "/" in label:
        return label if label.partition("/")[0] in {v.rstrip("/") for _, v in _VENDORS} else ""
    for prefix, vendor in _VENDORS:
        if label.startswith(prefix):
            name = vendor + _real_name(label.removeprefix(prefix))
            return "" if name in _NOT_DEVICES else name
    return ""


def _real_name(rest: str) -> str:
    shared = _SHARED.fullmatch(rest)
    if shared is not None:
        return _real_name(shared.group(1)) + ".shared"
    mig = _MIG.fullmatch(rest)
    if mig is not None:
        return "mig-" + (mig.group(1) + mig.group(2)).replace("_", ".")
    return rest
