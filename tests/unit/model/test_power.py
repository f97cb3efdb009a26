"""What a power number is, by chip."""

import pytest

from gputop.model.power import AVERAGE, INSTANTANEOUS, power_meaning
from gputop.model.reading import Absent


@pytest.mark.parametrize(
    ("architecture", "device_id", "meaning"),
    [
        ("Hopper", 0x2330, AVERAGE),
        ("Ampere", 0x20B0, INSTANTANEOUS),
        ("Ampere", 0x2237, AVERAGE),
        ("Turing", 0, INSTANTANEOUS),
        ("Blackwell", 0, AVERAGE),
        # Drivers before 470 name no architecture: P100, V100, T4, 1660 Ti, A100, A10.
        ("", 0x15F8, INSTANTANEOUS),
        ("", 0x1DB5, INSTANTANEOUS),
        ("", 0x1EB8, INSTANTANEOUS),
        ("", 0x2182, INSTANTANEOUS),
        ("", 0x20B0, INSTANTANEOUS),
        ("", 0x2236, AVERAGE),
    ],
)
def test_power_meaning(architecture: str, device_id: int, meaning: str) -> None:
    assert power_meaning(architecture, device_id) == meaning


@pytest.mark.parametrize("architecture", ["", "Ampere"])
def test_an_unknown_chip_is_not_guessed(architecture: str) -> None:
    # GA100 is Ampere and instantaneous, the rest of Ampere is not.
    assert isinstance(power_meaning(architecture, 0), Absent)
