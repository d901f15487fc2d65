"""Files of each format, written here, and what is refused."""
import struct
from typing import Any
import zlib

import numpy as np
import pytest

from formats.onnx_writer import run
from tinyhw.errors import ArgumentError
from tinyhw.nn.onnx.ops.images import decoded_file

X = np.random.default_rng(0).integers(0, 256, (5, 7, 3)).astype(np.uint8)
GRAY = X[:, :, :1]

def decoded(raw: bytes, pixel_format: str = "RGB") -> Any:
  return run("ImageDecoder", np.frombuffer(raw, np.uint8), pixel_format=pixel_format)

def png(rows: Any, color: int, filters: bool = True, palette: bytes = b"", bits: int = 8) -> bytes:
  """Write rows with each filter in turn."""
  height, width = rows.shape[:2]
  flat, step, lines = rows.reshape(height, -1).astype(int), rows.shape[2], b""
  for y, row in enumerate(flat):
    up = flat[y - 1] if y else row * 0
    left, corner = np.pad(row, (step, 0))[:len(row)], np.pad(up, (step, 0))[:len(row)]
    p = left + up - corner
    a, b, c = abs(p - left), abs(p - up), abs(p - corner)
    paeth = np.where((a <= b) & (a <= c), left, np.where(b <= c, up, corner))
    kind = y % 5 if filters else 0
    guess = (row * 0, left, up, (left + up) // 2, paeth)[kind]
    lines += bytes([kind]) + ((row - guess) % 256).astype(np.uint8).tobytes()
  def chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
  head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, bits, color, 0, 0, 0))
  return b"\x89PNG\r\n\x1a\n" + head + (chunk(b"PLTE", palette) if palette else b"") + chunk(
    b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b"")

def bmp(x: Any) -> bytes:
  height, width = x.shape[:2]
  rows = b"".join(x[y, :, ::-1].tobytes() + bytes(-width * 3 % 4) for y in reversed(range(height)))
  return struct.pack("<2sIII", b"BM", 54 + len(rows), 0, 54) + struct.pack("<IiiHHIIiiII", 40, width, height, 1, 24, 0,
                                                                           0, 0, 0, 0, 0) + rows

def tiff(x: Any, order: str) -> bytes:
  height, width, channels = x.shape
  tags = [(256, width), (257, height), (259, 1), (262, 2 if channels == 3 else 1), (273, 200), (277, channels),
          (279, x.size)]
  bits = struct.pack(f"{order}HHI", 258, 3, channels) + (
    struct.pack(f"{order}I", 180) if channels == 3 else struct.pack(f"{order}HH", 8, 0))
  rows = b"".join(struct.pack(f"{order}HHII", tag, 4, 1, value) for tag, value in tags) + bits
  head = (b"II*\0" if order == "<" else b"MM\0*") + struct.pack(f"{order}IH", 8, len(tags) + 1)
  return (head + rows).ljust(180, b"\0") + struct.pack(f"{order}HHH", 8, 8, 8).ljust(20, b"\0") + x.tobytes()

def test_formats() -> None:
  text = b"P3 # a comment\n7 5\n255\n" + " ".join(map(str, X.ravel())).encode()
  for raw in (png(X, 2), png(np.concatenate([X, GRAY], 2), 6), bmp(X), tiff(X, "<"), tiff(X, ">"), text,
              b"P6\n7 5\n255\n" + X.tobytes()):
    np.testing.assert_array_equal(decoded(raw), X)
  palette = bytes(range(255, -1, -1)) * 3
  for raw in (png(GRAY, 0), png(np.concatenate([GRAY, GRAY], 2), 4), tiff(GRAY, "<"), b"P5 7 5 255\n" + GRAY.tobytes()):
    np.testing.assert_array_equal(decoded(raw), np.repeat(GRAY, 3, 2))
    np.testing.assert_array_equal(decoded(raw, "Grayscale"), GRAY)
  colors = np.frombuffer(palette, np.uint8).reshape(-1, 3)
  np.testing.assert_array_equal(decoded(png(GRAY, 3, palette=palette)), colors[GRAY[:, :, 0]])

def test_orders_of_channels() -> None:
  np.testing.assert_array_equal(decoded(bmp(X), "BGR"), X[:, :, ::-1])
  gray = decoded(bmp(X), "Grayscale")
  np.testing.assert_allclose(gray[:, :, 0], X @ [0.299, 0.587, 0.114], atol=0.51)
  with pytest.raises(ArgumentError, match="pixel_format is"): decoded(bmp(X), "CMYK")

@pytest.mark.parametrize("raw, why", [
  (b"\xff\xd8\xff\xe0", "decode others"), (b"", "decode others"), (b"BM", "damaged"), (bmp(X)[:-9], "bytes for 7 x 5"),
  (png(X, 2)[:40], "damaged|bytes for"), (png(X, 2, bits=16), "16 bits a channel"), (b"P6 7 5 65535\n", "up to 65535"),
  (b"P6 7 5 255\nxx", "2 bytes for"), (b"P6", "another head"), (tiff(X, "<")[:30], "damaged"),
  (struct.pack(">8sI4sIIBBBBBI", b"\x89PNG\r\n\x1a\n", 13, b"IHDR", 1 << 30, 1 << 30, 8, 2, 0, 0, 0, 0), "more than")])
def test_damaged_and_unsupported_files(raw: bytes, why: str) -> None:
  with pytest.raises(ArgumentError, match=why): decoded_file(raw)
