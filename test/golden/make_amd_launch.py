"""Writes amd_launch.txt beside it: the words of two launches on each chip, with what they are. Run by hand, when the
launch changes; review the diff.

  python3 test/golden/make_amd_launch.py

The words were compared by hand with the sequences of ROCm's kfdtest (Dispatch.cpp), LLVM's register values
(amd_hsa.txt) and the kernel's headers.
"""
from __future__ import annotations
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from amd.box import AMDBox

from tinyhw.autogen.amd import gc, pm4
from tinyhw.device import Launch
from tinyhw.drivers import amd
from tinyhw.drivers.amd import kfd
from tinyhw.drivers.linux import files
from tinyhw.machine.ir.code import Code

HERE = Path(__file__).resolve().parent
CHIPS = ("gfx1100", "gfx1200", "gfx942")
REGISTERS = {"gfx942": (("vgpr", 40), ("agpr", 32), ("sgpr", 20)), "gfx1100": (("vgpr", 40), ("sgpr", 20)),
             "gfx1200": (("vgpr", 40), ("sgpr", 20))}

def code(chip: str) -> Code:
  """A kernel of two buffers and a variable, 2 KiB of shared memory, 128 lanes."""
  return Code("example", chip, bytes(1000), ("buffer", "buffer", "int64"), local_bytes=2048, registers=REGISTERS[chip],
              lanes=128)

def dump(chip: str) -> Iterator[str]:
  """A submission of two launches of 7 and 3 workgroups, of which the second needs the first; a line for each packet.
  Addresses are shown by what they are."""
  box = AMDBox(chip)
  before, files.COMPUTER = files.COMPUTER, box
  try: device = amd.open(0, lambda name: None)  # type: ignore[arg-type,return-value]
  finally: files.COMPUTER = before
  words: list[int] = []
  put = device.compute.put
  def keep(*pieces: Any) -> None:
    for piece in pieces: words.extend(piece)
    put(*pieces)
  device.compute.put = keep  # type: ignore[method-assign]
  buffers = [device.allocator.alloc(1024) for _ in range(2)]
  box.stopped = True          # the copy of the code is still on its way, so the launch waits for it
  program = device.load(code(chip))
  device.submit([Launch(program, buffers, [5], 7), Launch(program, buffers, [6], 3)])
  arguments = device.transient.address + device.transient.sealed[-1][0] % device.transient.size - 128
  if chip == "gfx942": arguments -= -(-4 * len(words) // 64) * 64  # the commands lie behind the arguments
  names = {program.place.address >> 8: "code / 256", arguments: "arguments", arguments + 64: "arguments + 64",
           device.timeline.address: "timeline",
           device.events.mailbox: "mailbox",
           device.barrier_words[0]: "barrier_words[0]", device.barrier_words[1]: "barrier_words[1]"}
  yield f"# {chip}"
  place, table = 0, pm4.GFX9 if chip == "gfx942" else pm4.GFX10
  while place < len(words):
    packet, fields, size = table.read(words, place)
    yield line(chip, packet.name, fields, words[place:place + size], names)
    place += size
  box.stopped = False
  for queue in (device.copies, device.compute): queue.publish(queue.ring.written)  # type: ignore[attr-defined]
  device.close()
  kfd.forget(box)

def line(chip: str, name: str, fields: dict[str, object], words: list[int], names: dict[int, str]) -> str:
  """Words in hex, and what they are."""
  pairs = {i: names[low | high << 32] for i, (low, high) in enumerate(zip(words, words[1:]))
           if (low | high << 32) in names}
  shown = [f"{word:08x}" for word in words]
  for i in pairs: shown[i] = shown[i + 1] = "........"
  if name == "SET_SH_REG":
    registers = gc.registers({"gfx942": 9, "gfx1100": 11, "gfx1200": 12}[chip])
    first = pm4.SET_SH_REG_START + int(str(fields["reg_offset"]))
    what = " ".join(f"{registers.addresses[first + i].name}={pairs.get(i + 2) or hex(word)}"
                    for i, word in enumerate(words[2:])
                    if i + 1 not in pairs)
    return f"{' '.join(shown):<75} SET_SH_REG {re.sub('COMPUTE_', '', what)}"
  what = " ".join(f"{field}={names.get(int(str(value)), hex(int(str(value))))}" for field, value in fields.items()
                  if value)
  return f"{' '.join(shown):<75} {name} {what}"

if __name__ == "__main__":
  (HERE / "amd_launch.txt").write_text("\n".join(text for chip in CHIPS for text in dump(chip)) + "\n")
