"""Deterministic noise: a value for (seed, channel, time), the same in every process and Python version.

Python's own ``hash`` is not used: its mixing differs between interpreter versions, and a demo that a test
compares with numbers must not.
"""

_MASK = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15


def mix(value: int) -> int:
    """Scramble a 64-bit integer (the finaliser of SplitMix64)."""
    value = (value + _GOLDEN) & _MASK
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _MASK
    return value ^ (value >> 31)


def fold(*parts: int | str) -> int:
    """Fold integers and strings into one 64-bit seed; the order of the parts matters."""
    seed = 0
    for part in parts:
        if isinstance(part, str):
            for offset in range(0, len(part), 8):
                seed = mix(seed ^ int.from_bytes(part[offset : offset + 8].encode("utf-8"), "little"))
            seed = mix(seed ^ len(part))
        else:
            seed = mix(seed ^ (part & _MASK))
    return seed


def unit(seed: int, channel: int) -> float:
    """Return a constant in [0, 1) for a seed and a channel number."""
    return mix(seed ^ (channel * _GOLDEN)) / 18446744073709551616.0


def wave(seed: int, channel: int, t: float, period_s: float) -> float:
    """Return a value in [-1, 1] that moves smoothly with time: value noise, one knot per period."""
    position = t / period_s
    knot = int(position // 1)
    part = position - knot
    base = seed ^ (channel * _GOLDEN)
    left = mix(base ^ (knot & _MASK)) / 9223372036854775808.0 - 1.0
    right = mix(base ^ ((knot + 1) & _MASK)) / 9223372036854775808.0 - 1.0
    return left + (right - left) * part


def hexadecimal(seed: int, digits: int) -> str:
    """Return so many lower-case hexadecimal digits that depend on the seed."""
    text = ""
    while len(text) < digits:
        seed = mix(seed)
        text += f"{seed:016x}"
    return text[:digits]


def uuid(seed: int) -> str:
    """Return a UUID spelt as NVML spells it, without a prefix."""
    digits = hexadecimal(seed, 32)
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
