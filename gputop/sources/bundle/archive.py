"""The files of a bundle: a folder, a file, a tar or zip archive, compressed or not, also one in another.

Nothing is ever written, so a member's path cannot lead anywhere; links, devices and pipes are not followed
or opened; sizes and counts are bounded while decompressing, so that an archive bomb costs a bounded amount.
Whatever is left out is told.
"""

import bz2
import gzip
import io
import lzma
import os
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import IO, Final, cast

from msgspec import Struct

from gputop.model.text import clean


class Limits(Struct, frozen=True):
    """How much is read.

    Attributes:
        file_bytes: Largest file that is read.
        total_bytes: Bytes read or decompressed in all.
        files: Files looked at in all.
        depth: Archives within archives.
    """

    file_bytes: int = 64 * 1024 * 1024
    total_bytes: int = 2 * 1024 * 1024 * 1024
    files: int = 50_000
    depth: int = 3


class Entry(Struct, frozen=True):
    """One file of a bundle.

    Attributes:
        path: Its path within the bundle, folders joined by "/", cleaned of control characters.
        data: Its content; empty if `skipped`.
        mtime: When it was last changed, as the file system or the archive says; None if neither does.
        skipped: Why it is not read, "" if it is.
        root: Name of the folder or archive that holds it (of the folder that holds a single file).
    """

    path: str
    data: bytes
    mtime: float | None
    skipped: str = ""
    root: str = ""


class _TooMuchError(Exception):
    """The bundle holds more than the limits allow."""


_DAMAGE: Final = (OSError, EOFError, zlib.error, lzma.LZMAError, tarfile.TarError, zipfile.BadZipFile)
_OPENERS: Final[dict[bytes, Callable[[IO[bytes]], object]]] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ\x00": lzma.open,
}
_ZIP: Final = b"PK\x03\x04"
_TAR_BLOCK: Final = 512


def _is_tar(head: bytes) -> bool:
    if len(head) < _TAR_BLOCK:
        return False
    try:
        tarfile.TarInfo.frombuf(head[:_TAR_BLOCK], "utf-8", "surrogateescape")
    except tarfile.HeaderError:
        return False
    return True


class _Meter(io.RawIOBase):
    """Counts what is decompressed and stops at the bundle's limit."""

    def __init__(self, inner: IO[bytes], walk: "_Walk") -> None:
        self._inner = inner
        self._walk = walk

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        view = cast("memoryview", buffer)
        data = self._inner.read(len(view))
        self._walk.spend(len(data))
        view[: len(data)] = data
        return len(data)


class _Walk:
    """One reading of a bundle with its budget."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.left = limits.total_bytes
        self.files = 0

    def spend(self, count: int) -> None:
        self.left -= count
        if self.left < 0:
            raise _TooMuchError(f"more than {self.limits.total_bytes >> 20} MiB in all")

    def count(self) -> None:
        self.files += 1
        if self.files > self.limits.files:
            raise _TooMuchError(f"more than {self.limits.files} files")

    def content(self, path: str, data: bytes, mtime: float | None, depth: int) -> Iterator[Entry]:
        """Yield a file, or the files in it when it is an archive."""
        opener = next((open_ for magic, open_ in _OPENERS.items() if data.startswith(magic)), None)
        is_archive = opener is not None or data.startswith(_ZIP) or _is_tar(data)
        if not is_archive:
            yield Entry(path, data, mtime)
        elif depth >= self.limits.depth:
            yield Entry(path, b"", mtime, f"an archive more than {self.limits.depth} deep")
        elif data.startswith(_ZIP):
            yield from self.zip(path, data, depth + 1)
        elif opener is not None:
            yield from self.compressed(path, cast("IO[bytes]", opener(io.BytesIO(data))), mtime, depth + 1)
        else:
            yield from self.tar(path, io.BytesIO(data), depth + 1)

    def compressed(self, path: str, stream: IO[bytes], mtime: float | None, depth: int) -> Iterator[Entry]:
        buffered = io.BufferedReader(_Meter(stream, self), 64 * 1024)
        try:
            head = buffered.peek(_TAR_BLOCK)
        except _DAMAGE as error:
            yield Entry(path, b"", mtime, f"damaged archive: {clean(str(error), 120)}")
            return
        if _is_tar(head):
            yield from self.tar(path, cast("IO[bytes]", buffered), depth)
            return
        data, damage = self.read(cast("IO[bytes]", buffered))
        name = PurePosixPath(path)
        inner = str(name.with_suffix("")) if name.suffix in {".gz", ".bz2", ".xz"} else path
        if len(data) > self.limits.file_bytes:
            yield Entry(inner, b"", mtime, f"larger than {self.limits.file_bytes >> 20} MiB")
            return
        if damage:
            yield Entry(path, b"", mtime, f"the archive is cut or damaged ({damage}); what came before is read")
        if data:
            yield from self.content(inner, data, mtime, depth)

    def read(self, stream: IO[bytes]) -> tuple[bytes, str]:
        """Return at most one byte more than a file may have, and what stopped the reading."""
        parts: list[bytes] = []
        size = 0
        try:
            while size <= self.limits.file_bytes:
                part = stream.read(256 * 1024)
                if not part:
                    break
                parts.append(part)
                size += len(part)
        except _DAMAGE as error:
            return b"".join(parts), clean(str(error), 120) or type(error).__name__
        return b"".join(parts), ""

    def tar(self, path: str, stream: IO[bytes], depth: int) -> Iterator[Entry]:
        try:
            with tarfile.open(fileobj=stream, mode="r|") as archive:
                for member in archive:
                    yield from self.member(archive, member, depth)
        except _DAMAGE as error:
            yield Entry(path, b"", None, f"the archive is cut or damaged: {clean(str(error), 120)}")

    def member(self, archive: tarfile.TarFile, member: tarfile.TarInfo, depth: int) -> Iterator[Entry]:
        if member.isdir():
            return
        self.count()
        path, mtime = _inside(member.name), float(member.mtime) or None
        if not member.isreg():
            yield Entry(path, b"", mtime, "a link or a device, not a file")
        elif member.size > self.limits.file_bytes:
            yield Entry(path, b"", mtime, f"larger than {self.limits.file_bytes >> 20} MiB")
        else:
            stream = archive.extractfile(member)
            data, damage = self.read(stream) if stream is not None else (b"", "")
            if damage or len(data) < member.size:
                yield Entry(path, b"", mtime, "the archive ends within it; what is there is read")
            yield from self.content(path, data, mtime, depth)

    def zip(self, path: str, data: bytes, depth: int) -> Iterator[Entry]:
        try:
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                for info in archive.infolist():
                    if not info.is_dir():
                        self.count()
                        yield from self.zipped(archive, info, depth)
        except (*_DAMAGE, RuntimeError, NotImplementedError) as error:
            yield Entry(path, b"", None, f"the archive is cut or damaged: {clean(str(error), 120)}")

    def zipped(self, archive: zipfile.ZipFile, info: zipfile.ZipInfo, depth: int) -> Iterator[Entry]:
        path = _inside(info.filename)
        kind = stat.S_IFMT(info.external_attr >> 16)
        # A zip entry carries a local time without a zone, which is no use as a capture time.
        if kind not in {0, stat.S_IFREG}:
            yield Entry(path, b"", None, "a link or a device, not a file")
        elif info.flag_bits & 1:
            yield Entry(path, b"", None, "encrypted")
        else:
            with archive.open(info) as stream:
                content, damage = self.read(cast("IO[bytes]", io.BufferedReader(_Meter(stream, self))))
            if damage or len(content) > self.limits.file_bytes:
                why = damage or f"larger than {self.limits.file_bytes >> 20} MiB"
                yield Entry(path, b"", None, why)
            else:
                yield from self.content(path, content, None, depth)

    def folder(self, top: Path) -> Iterator[Entry]:
        errors: list[OSError] = []
        for folder, names, files in os.walk(top, onerror=errors.append):
            names.sort()
            for name in [n for n in names if n.startswith(".")]:
                names.remove(name)
                yield Entry(_within(Path(folder, name), top), b"", None, "a hidden folder")
            for name in sorted(files):
                self.count()
                file = Path(folder, name)
                yield from self.file(file, _within(file, top), links=False)
            while errors:
                error = errors.pop()
                where = _within(Path(os.fsdecode(error.filename or "")), top)
                yield Entry(where, b"", None, clean(error.strerror or str(error), 120))

    def file(self, file: Path, path: str, *, links: bool) -> Iterator[Entry]:
        """Yield a file on disk; `links`: whether a link is followed, as for a path the user named."""
        try:
            found = file.stat() if links else file.lstat()
            if not stat.S_ISREG(found.st_mode):
                why = "a link, not followed" if stat.S_ISLNK(found.st_mode) else "neither a file nor a folder"
                yield Entry(path, b"", None, why)
                return
            with file.open("rb") as stream:
                head = stream.read(_TAR_BLOCK)
                stream.seek(0)
                yield from self.opened(stream, head, path, found)
        except OSError as error:
            yield Entry(path, b"", None, clean(error.strerror or str(error), 120))

    def opened(self, stream: IO[bytes], head: bytes, path: str, found: os.stat_result) -> Iterator[Entry]:
        opener = next((open_ for magic, open_ in _OPENERS.items() if head.startswith(magic)), None)
        if opener is not None:
            yield from self.compressed(path, cast("IO[bytes]", opener(stream)), found.st_mtime, 1)
        elif _is_tar(head):
            self.spend(found.st_size)
            yield from self.tar(path, stream, 1)
        elif found.st_size > self.limits.file_bytes:
            yield Entry(path, b"", found.st_mtime, f"larger than {self.limits.file_bytes >> 20} MiB")
        else:
            self.spend(found.st_size)
            data, damage = self.read(stream)
            if damage:
                yield Entry(path, b"", found.st_mtime, damage)
            yield from self.content(path, data, found.st_mtime, 0)


def _inside(name: str) -> str:
    """Return a member's path without what would lead out of a folder."""
    parts = [part for part in PurePosixPath(name.replace("\\", "/")).parts if part not in {"/", "..", "."}]
    return clean("/".join(parts)) or "unnamed"


def _within(file: Path, top: Path) -> str:
    try:
        return clean(file.relative_to(top).as_posix())
    except ValueError:
        return clean(file.name)


# The longest first, so that ".tar.gz" is not taken for ".gz".
_ENDINGS: Final = (
    ".tar.bz2",
    ".tar.gz",
    ".tar.xz",
    ".tbz2",
    ".bz2",
    ".tar",
    ".tgz",
    ".txz",
    ".zip",
    ".gz",
    ".xz",
)


def _without_ending(name: str) -> str:
    return next((name[: -len(ending)] for ending in _ENDINGS if name.endswith(ending)), "")


def walk(path: Path, limits: Limits | None = None) -> Iterator[Entry]:
    """Yield the files of a bundle, those that are not read included.

    Args:
        path: A folder, a file or an archive. A link named by the user is followed, one within is not.
        limits: How much is read.

    Raises:
        OSError: `path` itself cannot be opened.
    """
    budget = _Walk(limits or Limits())
    path = Path(path)
    mode = path.stat().st_mode
    resolved = path.resolve()
    root = _without_ending(resolved.name)
    if stat.S_ISDIR(mode):
        entries, root = budget.folder(path), resolved.name
    else:
        entries = budget.file(path, clean(path.name), links=True)
        root = root or resolved.parent.name
    try:
        for entry in entries:
            yield Entry(entry.path, entry.data, entry.mtime, entry.skipped, clean(root))
    except _TooMuchError as stop:
        yield Entry(clean(path.name), b"", None, f"{stop}: the rest is not read", clean(root))
