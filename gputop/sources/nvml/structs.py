"""NVML structs that older bindings lack, as nvml.h lays them out.

The binding is older than the driver as often as the other way round; the layouts never change once
published, and the version word tells the library which one it is given.
"""

from ctypes import Structure, c_char, c_int, c_ubyte, c_uint, c_ulonglong, sizeof
from typing import ClassVar


class Temperature(Structure):
    """`nvmlTemperature_v1_t`."""

    _fields_: ClassVar = [("version", c_uint), ("sensorType", c_uint), ("temperature", c_int)]


class MarginTemperature(Structure):
    """`nvmlMarginTemperature_v1_t`."""

    _fields_: ClassVar = [("version", c_uint), ("marginTemperature", c_int)]


class SramEccStatus(Structure):
    """`nvmlEccSramErrorStatus_v1_t`."""

    _fields_: ClassVar = [
        ("version", c_uint),
        ("aggregateUncParity", c_ulonglong),
        ("aggregateUncSecDed", c_ulonglong),
        ("aggregateCor", c_ulonglong),
        ("volatileUncParity", c_ulonglong),
        ("volatileUncSecDed", c_ulonglong),
        ("volatileCor", c_ulonglong),
        ("aggregateUncBucketL2", c_ulonglong),
        ("aggregateUncBucketSm", c_ulonglong),
        ("aggregateUncBucketPcie", c_ulonglong),
        ("aggregateUncBucketMcu", c_ulonglong),
        ("aggregateUncBucketOther", c_ulonglong),
        ("bThresholdExceeded", c_uint),
    ]


class FabricInfo(Structure):
    """`nvmlGpuFabricInfo_v2_t`."""

    _fields_: ClassVar = [
        ("version", c_uint),
        ("clusterUuid", c_ubyte * 16),
        ("status", c_uint),
        ("cliqueId", c_uint),
        ("state", c_ubyte),
        ("healthMask", c_uint),
    ]


class ProcessInfoV1(Structure):
    """`nvmlProcessInfo_v1_t`, the only one before driver 450."""

    _fields_: ClassVar = [("pid", c_uint), ("usedGpuMemory", c_ulonglong)]


class LicensableFeature(Structure):
    """`nvmlGridLicensableFeature_t` as of driver 470 (v4)."""

    _fields_: ClassVar = [
        ("featureCode", c_uint),
        ("featureState", c_uint),
        ("licenseInfo", c_char * 128),
        ("productName", c_char * 128),
        ("featureEnabled", c_uint),
        ("licenseExpiry", c_ubyte * 16),
    ]


class LicensableFeatures(Structure):
    """`nvmlGridLicensableFeatures_t` (v4)."""

    _fields_: ClassVar = [
        ("isGridLicenseSupported", c_int),
        ("licensableFeaturesCount", c_uint),
        ("gridLicensableFeatures", LicensableFeature * 3),
    ]


def version_of(struct: type[Structure], number: int) -> int:
    """Return the version word: the size in the low 24 bits, the number above (`NVML_STRUCT_VERSION`)."""
    return sizeof(struct) | (number << 24)
