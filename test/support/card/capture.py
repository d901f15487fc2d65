"""The commands of the vendor's library to a GPU: the launch (QMD), pushbuffer and constant bank that it makes for a
kernel of ours, beside our own.

The kernel is started with a grid and an argument that occur nowhere else. Then this process's own mappings of the
devices' files are searched. A QMD is where the grid stands at the right distance from the number of lanes. A constant
bank is where the argument stands. Pushbuffers are where an object of the compute class is bound, and where a QMD is
sent.
"""
from __future__ import annotations
import ctypes
import functools
import re
import struct
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from card.frame import Notes
from card.system import device_of, our_device

from tinyhw.autogen.nvidia import methods, qmd
from tinyhw.device import Launch
from tinyhw.drivers.nvidia.channel import show
from tinyhw.drivers.nvidia.chips import Chip
from tinyhw.drivers.nvidia.launch import describe
from tinyhw.drivers.nvidia.selftest.kernels import STORE, kernel
from tinyhw.selftest.command import assemble

GROUPS, LANES, MARK = 0x357, 64, 0x1122_3344_5566_7788
MOST_BYTES = 64 << 20        # of a mapping: larger ones are buffers
PIECE = 1 << 20
SENDS = {0x2B4: "SEND_PCAS_A", 0x2C0: "SEND_SIGNALING_PCAS2_B", 0x2BC: "SEND_SIGNALING_PCAS_B",
         0x320: "LOAD_INLINE_QMD_DATA"}
# Methods that set up a channel, with how many follow each other: windows, local memory, version of the shader
# processors
SETS = {0x2A0: 2, 0x2E4: 3, 0x310: 1, 0x790: 2, 0x7B0: 2}
SHOWN_WORDS, MOST_SETS = 160, 40

class Region(NamedTuple):
  start: int
  size: int
  path: str

def regions(every: bool = False) -> list[Region]:
  """Mappings of this process that may be read, the smaller ones first: of the devices' files, or all that are shared
  or anonymous."""
  found = []
  with open("/proc/self/maps", encoding="utf-8") as file:
    for line in file:
      matched = re.match(r"([0-9a-f]+)-([0-9a-f]+) (\S+) \S+ \S+ \S+\s*(.*)", line)
      if matched is None or "r" not in matched[3]: continue
      start, end = int(matched[1], 16), int(matched[2], 16)
      if end - start > MOST_BYTES: continue
      if matched[4].startswith("/dev/nvidia") or every and matched[4] in ("", "[heap]"):
        found.append(Region(start, end - start, matched[4] or "memory"))
  return sorted(found, key=lambda region: region.size)

def pieces(region: Region) -> Iterator[tuple[int, bytes]]:
  """(address, bytes) of a region, each piece a little longer than the distance to the next one, so that nothing is
  cut."""
  for at in range(region.start, region.start + region.size, PIECE):
    yield at, ctypes.string_at(at, min(PIECE + qmd.BYTES[9], region.start + region.size - at))

def places(data: bytes, wanted: bytes, step: int = 4) -> Iterator[int]:
  """Where bytes stand, at multiples of `step`."""
  at = data.find(wanted)
  while at >= 0:
    if at % step == 0: yield at
    at = data.find(wanted, at + 1)

def launches(data: bytes, groups: int = GROUPS, lanes: int = LANES) -> Iterator[tuple[int, int, bytes]]:
  """(offset, generation, bytes) of each QMD with this grid and these lanes, in any known layout."""
  for generation in qmd.VERSIONS:
    layout = qmd.layout(generation)
    back = layout.place("grid_width")[1] // 8
    for at in places(data, groups.to_bytes(4, "little")):
      blob = data[max(at - back, 0):at - back + layout.bytes]
      if at < back or len(blob) < layout.bytes or layout.get(blob, "cta_thread_dimension0") != lanes: continue
      if layout.get(blob, "grid_height") == 1 and layout.get(blob, "qmd_major_version"):
        yield at - back, generation, blob

MOST_COUNT = 96

@functools.cache
def _headers(wanted: tuple[int, ...]) -> dict[int, tuple[int, int]]:
  """(method, count) by the words that are headers of these methods."""
  return {methods.HEADER(method=method // 4, subchannel=subchannel, count=count, opcode=opcode): (method, count)
          for opcode in (methods.INCREASE, methods.SAME, methods.INCREASE_ONCE) for subchannel in range(8)
          for method in wanted
          for count in range(1, MOST_COUNT + 1)}

def headers(data: bytes, wanted: tuple[int, ...]) -> Iterator[tuple[int, int, int]]:
  """(offset, method, count) of words that are headers of these methods."""
  known = _headers(wanted)
  for at, word in enumerate(memoryview(data)[:len(data) // 4 * 4].cast("I")):
    if word in known: yield 4 * at, *known[word]

def words_around(data: bytes, at: int, before: int = 0) -> list[int]:
  start = max(at - 4 * before, 0)
  return [word
          for word, in struct.iter_unpack("<I", data[start:start + 4 * SHOWN_WORDS][:4 * ((len(data) - start) // 4)])]

def read_methods(words: list[int], generation: int) -> list[str]:
  """Methods as text, as far as the words are such."""
  for end in range(len(words), 0, -1):
    try: return show(methods.decode(words[:end]), generation)
    except ValueError: continue
  return []

def compare(blob: bytes, generation: int, code: Any, chip: Chip) -> dict[str, str]:
  """Fields of a QMD that differ from ours, as "theirs, ours"; those that are addresses of code and arguments are told
  apart."""
  layout = qmd.layout(generation)
  theirs = layout.show(blob)
  own = describe(code, chip, theirs.get("program_address", 0)) if generation == chip.generation else {}
  ours = {**own, "grid_width": GROUPS, "constant_buffer_size[0]": chip.arguments + 16}
  names = sorted(name for name in {*theirs, *ours} if name != "constant_buffer_addr[0]")
  return {name: f"{theirs.get(name, 0):#x}, ours {ours.get(name, 0):#x}" for name in names
          if theirs.get(name, 0) != ours.get(name, 0)}

def bank(data: bytes, at: int, arguments: int) -> dict[str, str]:
  """The words of constant bank 0 that are not 0, by their offset; the marked argument, the second one, is at an offset
  of the data."""
  start = at - arguments - 8
  if start < 0: return {}
  return {hex(offset): hex(word) for offset in range(0, arguments + 16, 4)
          if (word := int.from_bytes(data[start + offset:start + offset + 4], "little"))}

def search(notes: Notes, found: Sequence[Region], code: Any, chip: Chip) -> None:
  """Look through regions, and tell all that is there."""
  launched, banks, bound, sent, settings = list[Any](), list[Any](), list[Any](), list[Any](), dict[str, int]()
  for region in found:
    # it may be the last that this process does
    notes("looking at", f"{region.path} {region.start:#x} {region.size:#x}")
    for start, data in pieces(region):
      for at, generation, blob in launches(data):
        layout = qmd.layout(generation)
        version = ".".join(str(layout.get(blob, f"qmd_{part}_version")) for part in ("major", "minor"))
        launched.append({"at": hex(start + at), "in": region.path, "version": version,
                         "aligned": (start + at) % 256 == 0,
                         "differs": compare(blob, generation, code, chip), "bytes": blob.hex()})
        notes("QMDs", launched)
      for at in places(data, MARK.to_bytes(8, "little"), 8):
        banks.append({"at": hex(start + at), "in": region.path, "words": bank(data, at, chip.arguments)})
        notes("constant banks", banks)
      for at, method, count in headers(data, (*SENDS, *SETS)):
        if method in SETS:
          if count != SETS[method]: continue
          for text in read_methods(words_around(data, at)[:count + 1], chip.generation):
            settings[text] = settings.get(text, 0) + 1
          if len(settings) <= MOST_SETS: notes("windows and local memory (how often)", settings)
          continue
        words = words_around(data, at, 24)
        sent.append({"at": hex(start + at), "method": SENDS[method], "count": count,
                     "words": " ".join(f"{word:08x}" for word in words[:64])})
        notes("sends", sent[-8:])
      for at in places(data, chip.compute.to_bytes(4, "little")):
        if at < 4 or int.from_bytes(data[at - 4:at], "little") & 0xE000_0FFF != methods.INCREASE << 29: continue
        bound.append({"at": hex(start + at - 4), "methods": read_methods(words_around(data, at - 4), chip.generation)})
        notes("class setup", bound[:4])
  notes("looking at", "all that there is")
  if not launched: raise LookupError("no QMD with the grid was found in these mappings")

def marked(device: Any, chip: Chip) -> Any:
  """Start the kernel that is looked for: its code."""
  code = kernel(assemble, chip, STORE, "marked", ("buffer", "int64"))
  out = device.allocator.alloc(4 * LANES * GROUPS)
  device.submit([Launch(device.load(code), [out], [MARK], GROUPS)])
  device.synchronize()
  return code

def library(notes: Notes, every: bool = False) -> None:
  """The vendor's library's launch, searched for in this process."""
  device = device_of("NV:CUDA")
  chip: Chip = device.chip  # type: ignore[attr-defined]
  code = marked(device, chip)
  found = regions()
  notes("mappings", [f"{region.path} {region.start:#x} {region.size:#x}" for region in found])
  try: search(notes, found, code, chip)
  except LookupError:
    notes("not in the devices' mappings", True)
    search(notes, regions(every=True), code, chip)

def own(notes: Notes) -> None:
  """The same of our own driver: that what is searched for is found, and does not differ."""
  device = our_device()
  chip = device.card.chip
  code = marked(device, chip)
  memory = device.transient.memory
  search(notes, [Region(memory.address, memory.size, "commands and arguments")], code, chip)
