"""The file of a recording: written data are read back; damaged, hostile or foreign files are refused."""
from __future__ import annotations
import json
import os
import random
import zipfile
from pathlib import Path

import pytest

from tinyhw.config import CACHEDIR, Context
from tinyhw.errors import FileFormatError, MissingFileError
from tinyhw.files import budget
from tinyhw.viz import archive
from tinyhw.viz.archive import VERSION, Archive, ArchiveWriter, latest, new_path

def write(path: Path, **members: object) -> str:
  writer = ArchiveWriter()
  for name, value in {"index": {"version": VERSION}, **members}.items(): writer.add(name.replace("_", "/"), value)
  writer.close(str(path))
  return str(path)

def test_what_is_written_is_read(tmp_path: Path) -> None:
  found = Archive(write(tmp_path / "a.zip", kernel_0={"name": "<é>"}))
  assert (json.loads(found.read("kernel/0") or b"") == {"name": "<é>"} and found.read("kernel/1") is None
          and found.read("../index") is None)
  found.close()

def test_members_of_other_names_are_not_there(tmp_path: Path) -> None:
  path = write(tmp_path / "a.zip")
  with zipfile.ZipFile(path, "a") as file:
    for name in ("../secret.json", "kernel/x.json", "/etc/passwd", "kernel/1.txt"): file.writestr(name, "{}")
  assert Archive(path).names == {"index.json"}

def test_a_full_archive_takes_what_must_be_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setattr(archive, "MOST_BYTES", 1000)
  writer = ArchiveWriter()
  assert (writer.add("kernel/0", "x") and not writer.add("kernel/1", os.urandom(5000).hex())
          and writer.add("index", {"version": VERSION}, always=True))
  writer.close(str(tmp_path / "a.zip"))
  assert Archive(str(tmp_path / "a.zip")).names == {"kernel/0.json", "index.json"}

def test_refusals(tmp_path: Path) -> None:
  with pytest.raises(MissingFileError, match="name one that VIZ=1 wrote"): Archive(str(tmp_path / "none.zip"))
  with pytest.raises(MissingFileError): Archive(str(tmp_path))
  (tmp_path / "text").write_text("hello")
  for path in (str(tmp_path / "text"), write(tmp_path / "b.zip", index={"version": -1}),
               write(tmp_path / "c.zip", index=[])):
    with pytest.raises(FileFormatError, match="no recording of VIZ=1"): Archive(path)

def test_a_member_that_unpacks_to_too_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
  path = write(tmp_path / "a.zip", kernel_0="x" * 100_000)
  monkeypatch.setattr(budget, "FREE", 20_000)
  found = Archive(path)
  with pytest.raises(FileFormatError, match="would make more than"): found.read("kernel/0")

def test_damaged_files_never_do_harm(tmp_path: Path) -> None:
  """Bytes changed or cut off at random: a file or its members are read or refused."""
  whole, draw, path = Path(write(tmp_path / "a.zip", kernel_0={"rows": list(range(99))})).read_bytes(), random.Random(
    7), tmp_path / "damaged.zip"
  refused = 0
  for _ in range(300):
    data = bytearray(whole)
    for _ in range(draw.randrange(1, 6)): data[draw.randrange(len(data))] = draw.randrange(256)
    path.write_bytes(data[:draw.randrange(len(data))] if draw.random() < 0.3 else data)
    try:
      found = Archive(str(path))
      for name in ("index", "kernel/0"): found.read(name)
      found.close()
    except FileFormatError: refused += 1
  assert refused > 100

def test_the_newest_recording(tmp_path: Path) -> None:
  with Context(CACHEDIR=str(tmp_path)):
    with pytest.raises(MissingFileError, match="run a program with VIZ=1"): latest()
    for n, name in enumerate(("old.viz.zip", "new.viz.zip", "other.txt")):
      (tmp_path / "viz").mkdir(exist_ok=True)
      (tmp_path / "viz" / name).write_text("")
      os.utime(tmp_path / "viz" / name, (n, n))
    assert latest() == str(tmp_path / "viz" / "new.viz.zip")
    assert os.path.dirname(new_path("../a b")) == str(tmp_path / "viz") and "a_b" in new_path("../a b")
  assert str(CACHEDIR) != str(tmp_path)
