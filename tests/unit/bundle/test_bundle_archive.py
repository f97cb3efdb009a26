"""Folders, archives and single files: what is read, what is left out, and that each omission is told."""

import bz2
import gzip
import io
import lzma
import os
import tarfile
import zipfile
from pathlib import Path

import pytest

from gputop.sources.bundle.archive import Entry, Limits, walk


def entries(path: Path, limits: Limits | None = None) -> dict[str, Entry]:
    return {entry.path: entry for entry in walk(path, limits)}


def tar_of(files: dict[str, bytes], mode: str = "w:gz") -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as archive:  # type: ignore[call-overload]  # the mode is a parameter
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size, info.mtime = len(data), 1_700_000_000
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz"])
def test_tar_archives_by_content_not_by_name(tmp_path: Path, mode: str) -> None:
    path = tmp_path / "attachment.dat"
    path.write_bytes(tar_of({"gpu-a03/q.txt": b"one", "gpu-a04/q.txt": b"two"}, mode))
    found = entries(path)
    assert {name: entry.data for name, entry in found.items()} == {
        "gpu-a03/q.txt": b"one",
        "gpu-a04/q.txt": b"two",
    }
    assert {entry.mtime for entry in found.values()} == {1_700_000_000.0}


@pytest.mark.parametrize(("pack", "ending"), [(gzip.compress, "gz"), (bz2.compress, "bz2"), (lzma.compress, "xz")])
def test_single_compressed_files(tmp_path: Path, pack: object, ending: str) -> None:
    path = tmp_path / f"gpu-a03.txt.{ending}"
    path.write_bytes(pack(b"hello"))  # type: ignore[operator]  # parameters are objects
    assert {n: e.data for n, e in entries(path).items()} == {"gpu-a03.txt": b"hello"}


def test_zip_and_archives_in_archives(tmp_path: Path) -> None:
    path = tmp_path / "ticket-17.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a/x.txt", b"plain")
        archive.writestr("logs.tgz", tar_of({"b/y.txt.gz": gzip.compress(b"deep")}))
    found = entries(path)
    assert {n: e.data for n, e in found.items()} == {"a/x.txt": b"plain", "b/y.txt": b"deep"}
    assert {e.root for e in found.values()} == {"ticket-17"}


def test_paths_that_lead_out_and_links_and_devices(tmp_path: Path) -> None:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for name in ("../../etc/passwd", "/root/x", "a/./b"):
            info = tarfile.TarInfo(name)
            info.size = 1
            archive.addfile(info, io.BytesIO(b"x"))
        link = tarfile.TarInfo("link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/shadow"
        archive.addfile(link)
        pipe = tarfile.TarInfo("pipe")
        pipe.type = tarfile.FIFOTYPE
        archive.addfile(pipe)
    path = tmp_path / "evil.tgz"
    path.write_bytes(out.getvalue())
    found = entries(path)
    assert sorted(found) == ["a/b", "etc/passwd", "link", "pipe", "root/x"]
    assert "link" in found["link"].skipped
    assert found["link"].data == b""
    assert found["pipe"].skipped
    assert list(tmp_path.iterdir()) == [path]


def test_folders(tmp_path: Path) -> None:
    (tmp_path / "gpu-a03" / "nvidia").mkdir(parents=True)
    (tmp_path / "gpu-a03" / "nvidia" / "q.txt").write_bytes(b"q")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "config").write_bytes(b"secret")
    (tmp_path / "outside").symlink_to("/etc/hostname")
    os.mkfifo(tmp_path / "pipe")
    found = entries(tmp_path)
    assert found["gpu-a03/nvidia/q.txt"].data == b"q"
    assert "hidden" in found[".git"].skipped
    assert "link" in found["outside"].skipped
    assert found["pipe"].skipped
    assert len(found) == 4


def test_a_link_that_the_user_named_is_followed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "q.txt").write_bytes(b"q")
    (tmp_path / "latest").symlink_to("real")
    assert entries(tmp_path / "latest")["q.txt"].data == b"q"


def test_names_with_control_characters_are_cleaned(tmp_path: Path) -> None:
    path = tmp_path / "b.tar"
    path.write_bytes(tar_of({"gpu\x1b[2J/q\n.txt": b"q"}, "w"))
    (name,) = entries(path)
    assert name.isprintable()


def test_a_cut_archive_gives_what_came_before_and_says_so(tmp_path: Path) -> None:
    whole = tar_of({"first.txt": b"1" * 500, "second.txt": os.urandom(200_000)})
    path = tmp_path / "cut.tgz"
    path.write_bytes(whole[: len(whole) // 2])
    found = list(walk(path))
    assert found[0].data == b"1" * 500
    assert any("ends" in entry.skipped or "cut" in entry.skipped for entry in found)
    path.write_bytes(whole[:20])
    assert all(entry.skipped for entry in walk(path))


def test_limits_are_kept_and_told(tmp_path: Path) -> None:
    small = Limits(file_bytes=1000, total_bytes=50_000, files=3, depth=1)
    path = tmp_path / "big.tgz"
    path.write_bytes(tar_of({"big.txt": b"0" * 2000, "small.txt": b"1"}))
    found = entries(path, small)
    assert "larger" in found["big.txt"].skipped
    assert found["small.txt"].data == b"1"

    path.write_bytes(tar_of({f"{n}.txt": b"x" for n in range(9)}))
    assert "more than 3 files" in list(walk(path, Limits(files=3)))[-1].skipped

    path.write_bytes(gzip.compress(b"\0" * 50_000_000))
    bomb = list(walk(path, Limits(total_bytes=1_000_000)))
    assert "MiB in all" in bomb[-1].skipped
    assert all(not entry.data for entry in bomb)

    path.write_bytes(gzip.compress(gzip.compress(b"x")))
    assert "deep" in next(walk(path, Limits(depth=1))).skipped


def test_a_path_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        list(walk(tmp_path / "nothing"))
