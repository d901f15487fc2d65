"""Writes nvidia_launch.txt beside it: two launches on each chip, as entry of the ring, pushbuffer, QMD and constant
bank. Run by hand, when the launch changes; review the diff.

  python3 test/golden/make_nvidia_launch.py

The methods and fields were compared by hand with what the open drivers tinygrad and NVK (Mesa) send to Ampere; no card
has read them yet.
"""
from __future__ import annotations
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from nvidia.box import Note

from tinyhw.autogen.nvidia import methods, qmd
from tinyhw.config import Context
from tinyhw.device import Launch
from tinyhw.drivers import nvidia
from tinyhw.drivers.linux import files
from tinyhw.drivers.nvidia import rm
from tinyhw.drivers.nvidia.channel import show
from tinyhw.emulator.nvidia.card.computer import GpuHost
from tinyhw.machine.ir.code import Code

HERE = Path(__file__).resolve().parent
CHIPS = ("sm_80", "sm_90")
ADDRESS = "........"

def code(chip: str) -> Code:
  """A kernel of two buffers and a variable, 2 KiB of shared memory, 128 lanes, 40 registers."""
  return Code("example", chip, bytes(1024), ("buffer", "buffer", "int64"), local_bytes=2048,
              registers=(("r", 40), ("barrier", 1)), lanes=128)

def dump(chip: str) -> Iterator[str]:
  """A submission of two launches of 7 and 3 blocks, of which the second needs the first.

  Addresses are shown by what they are.
  """
  computer = GpuHost(chip, [chip])
  before, files.COMPUTER = files.COMPUTER, computer
  try:
    with Context(EMULATE=""): yield from _dump(chip, computer)
  finally:
    files.COMPUTER = before
    rm.forget(computer)

def _dump(chip: str, computer: GpuHost) -> Iterator[str]:
  Note(computer)                       # the code is none: nothing executes it
  device: Any = nvidia.open(0, lambda name: None)  # type: ignore[arg-type]
  buffers = [device.allocator.alloc(1024) for _ in range(2)]
  moves, computer.scheduler.advance = (computer.scheduler.advance,
                                       lambda caller=None: None)  # type: ignore[method-assign]
  entry = device.compute.ring.written  # the copy of the code is still on its way, so the launch waits for it
  program = device.load(code(chip))
  device.submit([Launch(program, buffers, [5], 7), Launch(program, buffers, [6], 3)])
  words = [device.compute.memory.mapping.load32(4 * (entry + i)) for i in range(2)]
  pushed = methods.ENTRY.decode(words)
  yield f"# {chip}: the entry of the ring"
  yield f"{ADDRESS} {words[1] & ~0xFF:08x}   {pushed['length']} words of commands, at 4 times the rest"
  yield f"# {chip}: the pushbuffer"
  names = {device.timeline.address: "timeline"}
  launches = []
  commands = device.words(pushed["address"] << 2, pushed["length"])
  for call in methods.decode(commands):
    if (methods.engines(program.device.card.chip.generation).compute.rows["SEND_PCAS_A"].address == call.offset
        and call.subchannel == 1):
      launches.append(call.data << 8)
      names[launches[-1]] = f"QMD {len(launches)}"
  yield from pushbuffer(commands, device.card.chip.generation, names)
  names |= {program.start: "code", buffers[0].address: "the first buffer", buffers[1].address: "the second buffer"}
  layout = qmd.layout(device.card.chip.generation)
  yield f"# {chip}: QMD 1"
  data = b"".join(word.to_bytes(4, "little") for word in device.words(launches[0], layout.bytes // 4))
  for name, value in layout.show(data).items():
    field, low = layout.place(name)
    bits = f"{low}-{low + field.high - field.low}" if field.high > field.low else f"{low}"
    yield f"{bits:<10} {name:<36} {'........' if 'addr' in name else hex(value)}"
  bank = layout.get(data, "constant_buffer_addr[0]")
  yield f"# {chip}: constant bank 0, from {bank - launches[0]:#x} bytes after the QMD on"
  found = device.words(bank, layout.get(data, "constant_buffer_size[0]") // 4)
  for offset in range(0, 4 * len(found), 8):
    value = found[offset // 4] | found[offset // 4 + 1] << 32
    if value: yield f"{offset:#05x}      {names.get(value, hex(value))}"
  computer.scheduler.advance = moves  # type: ignore[method-assign]
  del program
  for buffer in buffers: device.allocator.free(buffer)
  device.close()

def pushbuffer(words: list[int], generation: int, names: dict[int, str]) -> Iterator[str]:
  """A line for each header, with what its methods are."""
  at = 0
  while at < len(words):
    count = methods.HEADER.decode([words[at]])["count"] if words[at] else 0
    part = words[at:at + 1 + count]
    at += 1 + count
    shown = [f"{word:08x}" for word in part]
    calls = methods.decode(part)
    pairs = {i: names[low | high << 32] for i, (low, high) in enumerate(zip(part[1:], part[2:]))
             if (low | high << 32) in names}
    text = "; ".join(show(calls, generation))
    for i, name in pairs.items():
      shown[1 + i] = shown[2 + i] = ADDRESS
      text = text.replace(show(calls[i:i + 1], generation)[0],
                          f"SEM_ADDR {name}").replace("; " + show(calls[i + 1:i + 2], generation)[0], "")
    if len(part) == 2 and part[1] << 8 in names:
      shown[1], text = ADDRESS, f"SEND_PCAS_A {names[part[1] << 8]}"
    yield f"{' '.join(shown):<60} {text}"

if __name__ == "__main__":
  (HERE / "nvidia_launch.txt").write_text("\n".join(text for chip in CHIPS for text in dump(chip)) + "\n")
