"""Tensors in notebooks: a table of a vector or a matrix, and a picture of bytes that have the shape of one.

As text does, it shows only values that are computed already, and elides long axes. A tensor of uint8 with the shape
(height, width), (height, width, 3) or (height, width, 4), and LEAST pixels at least along both, is a picture, too.
"""
from __future__ import annotations
from collections.abc import Sequence
import html
import struct
from typing import Any
import zlib

from tinyhw.arithmetic import elements
from tinyhw.dtype import dtypes
from tinyhw.methods.base import Handle
from tinyhw.methods.data import printing
from tinyhw.threads import alone

LEAST = 16           # pixels along an axis from which bytes are a picture
MOST_PIXELS = 1 << 24
# channels: the color type of PNG (gray, RGB, RGB with alpha). Source: PNG specification, third edition, 11.2.1
_COLORS = {1: 0, 3: 2, 4: 6}

@alone
def bundle(tensor: Handle) -> dict[str, Any]:
  """Return the forms of a tensor that a notebook can show, by their media type."""
  text = printing.described(tensor)
  found: dict[str, Any] = {"text/plain": text}
  memory = printing._memory(tensor)
  if memory is None or not memory[1].size: return found
  buffer, view = memory
  numbers = elements(buffer.as_memoryview(allow_zero_copy=True), tensor.dtype)
  if len(view.shape) in (1, 2):
    rows = printing._nested(numbers, view, 0, view.offset, view.size > printing.MOST_VALUES)
    found["text/html"] = _table(text.partition(", realized")[0].removeprefix("<"), rows)
  channels = view.shape[2] if len(view.shape) == 3 else 1
  if (tensor.dtype is dtypes.uint8 and len(view.shape) in (2, 3) and channels in _COLORS
      and min(view.shape[:2]) >= LEAST and view.size <= MOST_PIXELS):
    found["image/png"] = png(_bytes(numbers, view), view.shape[1], view.shape[0], channels)
  return found

def _table(title: str, rows: Any) -> str:
  """Return an HTML table of texts: a row for a vector, else one for each row of a matrix. "…" is an elided part."""
  lines = [rows] if rows and all(isinstance(x, str) for x in rows) and rows[0] != "…" else rows
  width = max(len(row) for row in lines if row != "…")
  body = ""
  for row in lines:
    cells = ["…"] * width if row == "…" else row
    body += "<tr>" + "".join(f"<td>{html.escape(x)}</td>" for x in cells) + "</tr>"
  return f"<table><caption>{html.escape(title)}</caption>{body}</table>"

def _bytes(numbers: Sequence[int], view: Any) -> bytes:
  """Return the elements of a view in order."""
  places = [view.offset]
  for n, stride in zip(view.shape, view.strides): places = [p + i * stride for p in places for i in range(n)]
  return bytes([numbers[p] for p in places])

def png(pixels: bytes, width: int, height: int, channels: int) -> bytes:
  """Return pixels (height x width x channels bytes, row by row) as a PNG file. channels: 1 gray, 3 RGB, 4 with alpha.
  """
  line = width * channels
  rows = b"".join(b"\0" + pixels[i * line:(i + 1) * line] for i in range(height))     # each without a filter
  head = struct.pack(">IIBBBBB", width, height, 8, _COLORS[channels], 0, 0, 0)
  chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
  return b"\x89PNG\r\n\x1a\n" + b"".join(struct.pack(">I", len(data)) + kind + data +
                                         struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks)
