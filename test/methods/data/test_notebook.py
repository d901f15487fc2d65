"""methods/data/notebook.py: tables and pictures, from computed values alone."""
from __future__ import annotations
import re
import struct
import zlib

from tinyhw import Tensor
from tinyhw.methods.data.notebook import LEAST, png

def cells(page: str) -> list[list[str]]:
  return [re.findall("<td>(.*?)</td>", row) for row in re.findall("<tr>(.*?)</tr>", page)]

def test_tables() -> None:
  found = Tensor([[1, 2], [3, 4]]).realize()._repr_mimebundle_()
  assert cells(found["text/html"]) == [["1", "2"], ["3", "4"]] and "Tensor (2, 2) int32" in found["text/html"]
  assert found["text/plain"] == repr(Tensor([[1, 2], [3, 4]]).realize())
  assert cells(Tensor([1.5, 2.0]).realize()._repr_mimebundle_()["text/html"]) == [["1.5", "2.0"]]

def test_long_tables_are_elided() -> None:
  rows = cells(Tensor.arange(10000).reshape(100, 100).contiguous().realize()._repr_mimebundle_()["text/html"])
  assert len(rows) == 7 and all(len(row) == 7 for row in rows)
  assert rows[0] == ["0", "1", "2", "…", "97", "98", "99"] and set(rows[3]) == {"…"}
  assert cells(Tensor.arange(5000).contiguous().realize()._repr_mimebundle_()["text/html"]) == [
    ["0", "1", "2", "…", "4997", "4998", "4999"]]

def test_nothing_is_computed() -> None:
  x = Tensor([1.0, 2.0]) + 1
  assert set(x._repr_mimebundle_()) == {"text/plain"} and "not realized" in repr(x)
  assert set(Tensor.ones(2, 2, 2).contiguous().realize()._repr_mimebundle_()) == {"text/plain"}

def pixels(file: bytes) -> tuple[int, int, bytes]:
  width, height, _, color, *_ = struct.unpack(">IIBBBBB", file[16:29])
  line = width * {0: 1, 2: 3, 6: 4}[color]
  at, size = 33, struct.unpack(">I", file[33:37])[0]
  assert struct.unpack(">I", file[at + 8 + size:at + 12 + size])[0] == zlib.crc32(file[at + 4:at + 8 + size])
  rows = zlib.decompress(file[at + 8:at + 8 + size])
  return width, height, b"".join(rows[k * (line + 1) + 1:(k + 1) * (line + 1)] for k in range(height))

def test_pictures() -> None:
  for channels in (1, 3, 4):
    data = bytes([(7 * k) % 256 for k in range(LEAST * 20 * channels)])
    assert pixels(png(data, 20, LEAST, channels)) == (20, LEAST, data)
  x = Tensor(list(range(256)), dtype="uint8").reshape(16, 16).contiguous().realize()
  assert pixels(x._repr_mimebundle_()["image/png"]) == (16, 16, bytes(range(256)))
  flipped = x.permute(1, 0)       # a view of the same memory
  columns = bytes([16 * j + i for i in range(16) for j in range(16)])
  assert pixels(flipped._repr_mimebundle_()["image/png"])[2] == columns
  assert "image/png" not in x.float().realize()._repr_mimebundle_()
