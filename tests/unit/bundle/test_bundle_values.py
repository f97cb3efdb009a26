"""Texts of nvidia-smi to typed values: numbers with their unit, and each kind of "no value"."""

import pytest

from gputop.model.facts import Presence
from gputop.model.reading import NA, UNKNOWN, Absent, Value
from gputop.sources.bundle import smi_values
from gputop.sources.bundle.smi_decode import timestamp
from gputop.sources.bundle.smi_values import Read, flag, number, word, words

MIB, CELSIUS, WATT, COUNT = number("MiB"), number("°C"), number("W"), number("")


@pytest.mark.parametrize(
    ("read", "quantity", "text", "value"),
    [
        (MIB, "memory_used_mib", "81559 MiB", 81559.0),
        (MIB, "memory_used_mib", "0 MiB", 0.0),
        (MIB, "memory_used_mib", "2 GiB", 2048.0),
        (CELSIUS, "temperature_margin_c", "-8 C", -8.0),
        (WATT, "power_w", "618.35 W", 618.35),
        (number("MHz"), "sm_clock_mhz", "1980 MHz", 1980.0),
        (number("%"), "utilization", "100 %", 100.0),
        (number("%"), "utilization", "7%", 7.0),
        (number("lanes"), "pcie_width", "16x", 16.0),
        (number("banks"), "row_remap_banks_max", "2560 bank(s)", 2560.0),
        (number("B/s"), "pcie_rx_bytes_per_s", "3092 KB/s", 3_092_000.0),
        (number("ns"), "clock_event_power_cap_ns", "15 us", 15_000.0),
        (COUNT, "ecc_volatile_dram_corrected", "12", 12.0),
        (flag, "persistence_mode", "Enabled", 1.0),
        (flag, "persistence_mode", "Disabled", 0.0),
        (flag, "row_remap_pending", "Yes", 1.0),
        (flag, "", "Not Active", 0.0),
        (flag, "", "Active", 1.0),
        (smi_values.performance_state, "performance_state", "P8", 8.0),
        (smi_values.recovery_action, "recovery_action", "None", 0.0),
        (smi_values.recovery_action, "recovery_action", "Drain and Reset", 4.0),
        (smi_values.recovery_action, "recovery_action", "GPU Reset", 1.0),
        (smi_values.licensed, "vgpu_licensed", "Licensed (Expiry: 2026-4-3 0:0:0 GMT)", 1.0),
        (smi_values.licensed, "vgpu_licensed", "Unlicensed (Restricted)", 0.0),
        (smi_values.compute_mode, "compute_mode", "Exclusive_Process", "exclusive process"),
        (smi_values.virtualization_mode, "virtualization_mode", "Pass-Through", "passthrough"),
        (words, "virtualization_mode", "None", "None"),
        (
            words,
            "driver_version",
            "610.57.04 [Deprecated; will be removed in CUDA 14.0. Use KMD Version instead]",
            "610.57.04",
        ),
    ],
)
def test_a_value_is_read_in_the_unit_of_its_quantity(read: Read, quantity: str, text: str, value: Value) -> None:
    assert read(quantity, text) == value


@pytest.mark.parametrize(
    ("text", "state", "code"),
    [
        ("N/A", NA, "not_supported"),
        ("[N/A]", NA, "not_supported"),
        ("Not Supported", NA, "not_supported"),
        ("[Not Supported]", NA, "not_supported"),
        ("Requested functionality has been deprecated", NA, "deprecated"),
        ("[Requested functionality has been deprecated]", NA, "deprecated"),
        ("GPU is lost", UNKNOWN, "lost"),
        ("[GPU is lost]", UNKNOWN, "lost"),
        ("GPU requires reset", UNKNOWN, "reset_required"),
        ("[GPU requires reset]", UNKNOWN, "reset_required"),
        ("GPU requires restart", UNKNOWN, "reset_required"),
        ("[Reset Required]", UNKNOWN, "reset_required"),
        ("Insufficient Permissions", UNKNOWN, "denied"),
        ("[Insufficient Permissions]", UNKNOWN, "denied"),
        ("Unknown Error", UNKNOWN, "error"),
        ("[Unknown Error]", UNKNOWN, "error"),
        ("ERR!", UNKNOWN, "error"),
        ("", UNKNOWN, "empty"),
        ("   ", UNKNOWN, "empty"),
    ],
)
@pytest.mark.parametrize("read", [MIB, COUNT, flag, words, smi_values.performance_state, smi_values.licensed])
def test_words_in_place_of_a_value_keep_their_meaning(read: Read, text: str, state: str, code: str) -> None:
    value = read("memory_used_mib", text)
    assert isinstance(value, Absent)
    assert (value.state, value.code) == (state, code)


@pytest.mark.parametrize("text", ["81559 M", "81559", "12,5 MiB", "eleven MiB", "12 W", "1e5 MiB", "0x10 MiB", "- MiB"])
def test_half_a_number_or_a_foreign_unit_is_no_number(text: str) -> None:
    value = MIB("memory_used_mib", text)
    assert isinstance(value, Absent)
    assert value.state == UNKNOWN
    assert text.split(maxsplit=1)[0] in value.reason


@pytest.mark.parametrize(
    ("quantity", "read", "text"),
    [
        ("utilization", number("%"), "808334905 %"),
        ("temperature_c", CELSIUS, "82505 C"),
        ("power_w", WATT, "4294967295 W"),
        ("retired_pages_sbe", COUNT, "18446744073709551615"),
        ("pcie_rx_bytes_per_s", number("B/s"), "4294967295 KB/s"),
    ],
)
def test_numbers_no_device_can_have_are_not_shown(quantity: str, read: Read, text: str) -> None:
    value = read(quantity, text)
    assert isinstance(value, Absent)
    assert value.state == NA


def test_control_characters_of_a_file_never_reach_the_screen() -> None:
    assert words("model", "NVIDIA\x1b[31m H100\x07") == "NVIDIA[31m H100"
    value = MIB("memory_used_mib", "\x1b]0;x\x07 12 MiB")
    assert isinstance(value, Absent)
    assert "\x1b" not in value.reason


@pytest.mark.parametrize(
    ("text", "presence"),
    [
        ("GPU is lost.  Reboot the system to recover this GPU", Presence.LOST),
        ("GPU requires reset", Presence.RESET_REQUIRED),
        ("Insufficient Permissions", Presence.DENIED),
        ("Unknown Error", Presence.ERROR),
        ("N/A", None),
        ("Requested functionality has been deprecated", None),
    ],
)
def test_what_a_word_says_of_the_gpu(text: str, presence: Presence | None) -> None:
    found = word(text)
    assert found is not None
    assert found.presence is presence


def test_time_stamps_are_read_without_the_locale() -> None:
    assert timestamp("Thu Jan  1 00:00:10 1970") == 10.0
    assert timestamp("Sun Mar 2 15:02:02 2025") == 1740927722.0
    assert timestamp("N/A") is None
    assert timestamp("Mon Foo 99 10:10:10 2025") is None
    assert timestamp("Mon Feb 31 10:10:10 2025") is None


@pytest.mark.parametrize(
    ("quantity", "unit", "text", "value"),
    [
        ("temperature_c", "°C", "٤١ C", 41.0),
        ("temperature_c", "°C", "４１ C", 41.0),
        # A comma is a decimal sign here and a thousands sign there, so such a number is not read.
        ("power_w", "W", "133,70 W", None),
        ("memory_total_mib", "MiB", "81,559 MiB", None),
        ("memory_total_mib", "MiB", "81.559 GiB", 83516.416),
        ("memory_total_mib", "MiB", "81559", None),
        ("utilization", "%", "41 %%", None),
    ],
)
def test_digits_and_signs_of_other_places(quantity: str, unit: str, text: str, value: float | None) -> None:
    read = number(unit)(quantity, text)
    if value is None:
        assert isinstance(read, Absent)
        assert read.code == "unreadable"
    else:
        assert read == pytest.approx(value)
