"""ImageDecoder of ONNX: PNG, BMP, PNM and TIFF files without lossy compression, decoded on the host.

Source: ONNX operator schemas (ai.onnx 20); PNG specification, third edition; TIFF revision 6.0; Netpbm's formats;
Microsoft's BITMAPINFOHEADER.
"""
from __future__ import annotations
import re
import struct
from typing import Any
import zlib

from tinyhw.dtype import dtypes
from tinyhw.errors import ArgumentError
from tinyhw.named_tuple import NamedTuple
from tinyhw.nn.onnx.operator import as_numbers, operator
from tinyhw.nn.onnx.ops.shape import check_count
from tinyhw.tensor import Tensor

class Pixels(NamedTuple):
  """Rows of pixels from the top, with 1 (gray) or 3 (red, green, blue) bytes each."""
  width: int
  height: int
  channels: int
  data: bytes

@operator("ImageDecoder", 20, folds=False)
def image_decoder(data: Tensor, *, pixel_format: str = "RGB") -> Tensor:
  """Return the pixels of a file: bytes (n,)  ->  (height, width, 3), or 1 for Grayscale. The file is read."""
  if pixel_format not in ("RGB", "BGR", "Grayscale"):
    raise ArgumentError(f"pixel_format is RGB, BGR or Grayscale, not {pixel_format!r}")
  found = decoded_file(bytes(as_numbers(data)))
  x = Tensor(found.data, dtype=dtypes.uint8).reshape(found.height, found.width, found.channels).to(data.device)
  if pixel_format == "Grayscale": return x if found.channels == 1 else _gray(x)
  if found.channels == 1: return x.expand(found.height, found.width, 3)
  return x.flip(2) if pixel_format == "BGR" else x

def _gray(x: Tensor) -> Tensor:
  """Return the luma of ITU-R BT.601, in fixed point of 16 bits."""
  weights = Tensor([19595, 38470, 7471], dtype=dtypes.int32, device=x.device)
  return (((x.cast(dtypes.int32) * weights).sum(2, keepdim=True) + 32768) >> 16).cast(dtypes.uint8)

def decoded_file(raw: bytes) -> Pixels:
  """Return the pixels of a file of a known format. Raises ArgumentError for others, and for damaged files."""
  for head, name, decode in _FORMATS:
    if not raw.startswith(head): continue
    try: return decode(raw)
    except (struct.error, IndexError, zlib.error, ValueError, KeyError) as error:
      if isinstance(error, ArgumentError): raise
      raise ArgumentError(f"the {name} file is damaged: {error}") from error
  raise ArgumentError("an image is a PNG, BMP, PNM or uncompressed TIFF file here; decode others (JPEG, WebP) before, "
                      "and give the pixels to the rest of the model")

def _refuse(name: str, what: str) -> ArgumentError:
  return ArgumentError(f"a {name} file with {what} is not supported; save it as a PNG with 8 bits a channel")

def _whole(width: int, height: int, channels: int, data: bytes, name: str) -> Pixels:
  if width < 1 or height < 1 or len(data) != width * height * channels:
    raise ArgumentError(f"the {name} file has {len(data)} bytes for {width} x {height} pixels of {channels} bytes")
  return Pixels(width, height, channels, data)

# ***** PNG *****

_CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}   # by color type: gray, color, palette, gray with alpha, color with alpha

def _png(raw: bytes) -> Pixels:
  at, parts, palette = 8, [], b""
  width, height, bits, color, _, _, interlaced = struct.unpack_from(">IIBBBBB", raw, 16)
  while at < len(raw):
    size, kind = struct.unpack_from(">I4s", raw, at)
    if kind == b"IDAT": parts.append(raw[at + 8:at + 8 + size])
    elif kind == b"PLTE": palette = raw[at + 8:at + 8 + size]
    at += size + 12
  if bits != 8 or interlaced: raise _refuse("PNG", f"{bits} bits a channel" if bits != 8 else "interlaced rows")
  channels = _CHANNELS[color]
  stride = width * channels
  check_count(height * (stride + 1), "an image")
  rows = zlib.decompressobj().decompress(b"".join(parts), height * (stride + 1))
  pixels = _unfiltered(rows, height, stride, channels)
  if color == 3: return _whole(width, height, 3, b"".join(palette[3 * i:3 * i + 3] for i in pixels), "PNG")
  if color in (4, 6): pixels = bytes(v for i, v in enumerate(pixels) if i % channels != channels - 1)   # no alpha
  return _whole(width, height, 3 if color in (2, 6) else 1, pixels, "PNG")

def _unfiltered(rows: bytes, height: int, stride: int, step: int) -> bytes:
  """Undo the filters of rows: each byte is the difference to a prediction from those to the left and above."""
  above, found = bytearray(stride), []
  for y in range(height):
    kind, row = rows[y * (stride + 1)], bytearray(rows[y * (stride + 1) + 1:(y + 1) * (stride + 1)])
    if kind > 4 or len(row) != stride: raise ValueError(f"row {y} has filter {kind} and {len(row)} bytes")
    for x in range(stride) if kind else ():
      left, up, corner = row[x - step] if x >= step else 0, above[x], above[x - step] if x >= step else 0
      row[x] = (row[x] + (left, up, (left + up) // 2, _paeth(left, up, corner))[kind - 1]) & 255
    found.append(bytes(row))
    above = row
  return b"".join(found)

def _paeth(left: int, up: int, corner: int) -> int:
  """Return the neighbour that is closest to left + up - corner."""
  value = left + up - corner
  return min((left, up, corner), key=lambda v: abs(value - v))

# ***** uncompressed formats *****

def _bmp(raw: bytes) -> Pixels:
  begin, = struct.unpack_from("<I", raw, 10)
  width, height, _, bits, compression = struct.unpack_from("<iiHHI", raw, 18)
  if compression or bits not in (24, 32): raise _refuse("BMP", f"{bits} bits a pixel or compression {compression}")
  step, rows = bits // 8, []
  stride = (width * step + 3) // 4 * 4
  check_count(abs(height) * stride, "an image")
  for y in range(abs(height)):
    row = raw[begin + y * stride:begin + y * stride + width * step]
    colors = bytearray(3 * (len(row) // step))
    for channel in range(3): colors[2 - channel::3] = row[channel::step]   # blue, green, red
    rows.append(bytes(colors))
  return _whole(width, abs(height), 3, b"".join(rows if height < 0 else rows[::-1]), "BMP")

def _pnm(raw: bytes) -> Pixels:
  found = re.match(rb"P([2356])" + rb"(?:\s|#[^\n]*\n)+(\d+)" * 3 + rb"\s", raw)
  if found is None: raise _refuse("PNM", "another head than P2, P3, P5 or P6")
  kind, width, height, most = map(int, found.groups())
  if most != 255: raise _refuse("PNM", f"numbers up to {most}")
  channels, body = 3 if kind in (3, 6) else 1, raw[found.end():]
  check_count(width * height * channels, "an image")
  if kind in (2, 3): body = bytes(map(int, body.split()))
  return _whole(width, height, channels, body[:width * height * channels], "PNM")

def _tiff(raw: bytes) -> Pixels:
  order = "<" if raw[:2] == b"II" else ">"
  at, = struct.unpack_from(order + "I", raw, 4)
  tags: dict[int, tuple[Any, ...]] = {}
  for i in range(struct.unpack_from(order + "H", raw, at)[0]):
    tag, kind, count = struct.unpack_from(order + "HHI", raw, at + 2 + 12 * i)
    if kind not in (3, 4): continue
    code, size = ("H", 2) if kind == 3 else ("I", 4)
    where = at + 10 + 12 * i
    if count * size > 4: where, = struct.unpack_from(order + "I", raw, where)
    if count * size > len(raw): raise ValueError(f"the tag {tag} has {count} numbers")
    tags[tag] = struct.unpack_from(f"{order}{count}{code}", raw, where)
  (width,), (height,), channels = tags[256], tags[257], tags.get(277, (1,))[0]
  if tags.get(259, (1,)) != (1,) or set(tags.get(258, (1,))) != {8} or tags.get(284, (1,)) != (1,):
    raise _refuse("TIFF", "compression, planes, or other than 8 bits a channel")
  if tags[262] != (2 if channels == 3 else 1,) or channels not in (1, 3): raise _refuse("TIFF", f"colors {tags[262]}")
  data = b"".join(raw[begin:begin + size] for begin, size in zip(tags[273], tags[279]))
  return _whole(width, height, channels, data, "TIFF")

_FORMATS = ((b"\x89PNG\r\n\x1a\n", "PNG", _png), (b"BM", "BMP", _bmp), (b"II*\0", "TIFF", _tiff),
            (b"MM\0*", "TIFF", _tiff), *((b"P%d" % n, "PNM", _pnm) for n in (2, 3, 5, 6)))
