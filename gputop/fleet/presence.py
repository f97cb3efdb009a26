"""Whether a GPU is there, from what each source sees."""

from gputop.fleet.state import Sighting
from gputop.model.facts import PciGpu, Presence

_DRIVER_WORDS = {
    "vfio-pci": "held by vfio-pci: given to a virtual machine",
    "nouveau": "held by nouveau, not by the NVIDIA driver",
    "": "no driver holds it",
}


def judge_presence(sightings: tuple[Sighting, ...], pci: PciGpu | None) -> tuple[Presence, str, float]:
    """Return the presence, one phrase with it, and since when it is so (0 when not known).

    The nearest source that can speak decides; one that has fallen behind the newest by more than its own
    staleness gives way. If only the PCI bus shows the GPU, the driver that holds it is the answer.
    """
    if not sightings:
        return _from_pci(pci)
    newest = max(s.origin.at for s in sightings)
    speaking = [s for s in sightings if not s.silent]
    fresh = [s for s in speaking if newest - s.origin.at <= s.origin.stale_after_s] or speaking
    if not fresh:
        last = max(sightings, key=lambda s: s.origin.at)
        return Presence.UNKNOWN, f"{last.origin.source}: {last.silent}", last.since
    nearest = min(fresh, key=lambda s: (s.origin.rank, -s.origin.at))
    if nearest.listed:
        presence = nearest.presence or Presence.PRESENT
        return presence, nearest.reason, nearest.since
    listing = [s for s in fresh if s.listed]
    if listing:
        # The nearest does not list it and a farther one does: an exporter may serve an old list, so the
        # nearer is believed and the contradiction is told.
        words = f"not listed by {nearest.origin.source}, still listed by {listing[0].origin.source}"
        return Presence.MISSING, words, nearest.since
    return Presence.MISSING, nearest.reason or f"no longer listed by {nearest.origin.source}", nearest.since


def _from_pci(pci: PciGpu | None) -> tuple[Presence, str, float]:
    if pci is None:
        return Presence.UNKNOWN, "no source lists it", 0.0
    if pci.asleep:
        return Presence.DRIVERLESS, "asleep: runtime power management has suspended it", 0.0
    if pci.driver is None:
        return Presence.UNKNOWN, "shown by the PCI bus; which driver holds it is not told", 0.0
    if pci.driver == "nvidia":
        return Presence.UNKNOWN, "held by the NVIDIA driver, but NVML does not list it", 0.0
    return Presence.DRIVERLESS, _DRIVER_WORDS.get(pci.driver, f"held by {pci.driver}"), 0.0
