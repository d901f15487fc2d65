"""Kernels for the AMD emulator from rows of the assembler, memory for them, and the run of one workgroup."""
from __future__ import annotations
import struct
from collections.abc import Callable, Sequence
from typing import Any

from tinyhw.emulator.amd.registers import DispatchRegisters
from tinyhw.emulator.amd.workgroup import Workgroup
from tinyhw.emulator.memory.memory import FlatMemory
from tinyhw.isa.amd.asm.encode import encode
from tinyhw.isa.amd.table import regs
from tinyhw.isa.amd.table.table import build, table
from tinyhw.machine.ir.inst import Reg

CODE, DATA, ARGUMENTS = 0x10000, 0x100000, 0x20000

class Kernel:
  """Instructions one after the other. Registers: s, v, a of the architecture."""
  def __init__(self, arch: str = "gfx1100", lanes: int | None = None):
    self.arch, self.cdna = arch, arch.startswith("gfx9")
    self.lanes = lanes or (64 if self.cdna else 32)
    self.table = table(f"{arch}:wave64" if self.lanes == 64 and not self.cdna else arch)
    self.code: list[bytes] = []
    self.labels: dict[str, int] = {}
    self.jumps: list[tuple[int, str, str]] = []

  def __call__(self, name: str, *operands: Any, **modifiers: int) -> Kernel:
    """Append an instruction."""
    self.code.append(encode(build(self.table[name], *operands, **modifiers)))
    return self

  def label(self, name: str) -> None: self.labels[name] = len(self.code)

  def jump(self, name: str, label: str) -> None:
    """Append a branch to a label."""
    self.jumps.append((len(self.code), name, label))
    self.code.append(bytes(4))

  def v(self, index: int, units: int = 1) -> Reg:
    return regs.ve(index, units) if self.cdna and units > 1 else regs.v(index, units)
  def s(self, index: int, units: int = 1) -> Reg: return regs.s(index, units)
  def mask(self, index: int) -> Reg: return regs.s(index, self.lanes // 32)

  def wait(self, **limits: int) -> None:
    """Wait until at most so many loads (vm), stores (vs), LDS or scalar operations (lgkm) are outstanding."""
    if self.cdna:
      self("s_waitcnt", (limits.get("vm", 63) & 15) | limits.get("vm", 63) >> 4 << 14 | 7 << 4
           | limits.get("lgkm", 15) << 8)
    elif self.arch.startswith("gfx12"):
      for name, counters in (("vm", ("loadcnt",)), ("vs", ("storecnt",)), ("lgkm", ("dscnt", "kmcnt"))):
        if name in limits:
          for counter in counters: self(f"s_wait_{counter}", limits[name])
    else:
      if "vm" in limits or "lgkm" in limits:
        self("s_waitcnt", limits.get("vm", 63) << 10 | limits.get("lgkm", 63) << 4 | 7)
      if "vs" in limits: self("s_waitcnt_vscnt", regs.s(regs.NULL), limits["vs"])

  def bytes(self) -> bytes:
    places = [0]
    for piece in self.code: places.append(places[-1] + len(piece))
    for at, name, label in self.jumps:
      self.code[at] = encode(build(self.table[name], (places[self.labels[label]] - places[at + 1]) // 4))
    return b"".join(self.code)

class Box:
  """Memory with buffers, and dispatches of one workgroup. User registers s[0:1] have the address of the arguments."""
  def __init__(self) -> None:
    self.memory = FlatMemory()
    self.arguments = bytearray(256)
    self.memory.add(ARGUMENTS, self.arguments)
    self.buffers: list[bytearray] = []

  def buffer(self, content: bytes | bytearray | int) -> bytearray:
    """A buffer, whose address is the next argument."""
    data, number = bytearray(content), len(self.buffers)
    self.buffers.append(data)
    address = DATA + (number << 16)
    self.memory.add(address, data)
    self.arguments[8 * number:8 * number + 8] = struct.pack("<Q", address)
    return data

  def registers(self, kernel: Kernel, group_size: Sequence[int] = (32, 1, 1), **more: Any) -> DispatchRegisters:
    given = dict(vgprs=64, sgprs=106 if not kernel.cdna else 102, groups=(1, 1, 1), user_data=(ARGUMENTS, 0),
                 float_denorm=15, work_item_ids=1)
    size = (*group_size, 1, 1)[:3]
    return DispatchRegisters(kernel.arch, CODE, kernel.lanes, group_size=size,
                             **{**given, **more})  # type: ignore[arg-type]  # by name

  def run(self, kernel: Kernel, group_size: Sequence[int] = (32, 1, 1), seed: int = 0, lds: int = 0,
          group: tuple[int, int, int] = (0, 0, 0),
          watch: Callable[..., None] | None = None, **more: Any) -> Workgroup:
    """Execute one workgroup to its end."""
    code = FlatMemory()
    code.add(CODE, bytearray(kernel.bytes()))
    workgroup = Workgroup(kernel.arch, code.load, self.registers(kernel, group_size, lds_bytes=lds, **more), group,
                          self.memory, lds, seed, watch)
    workgroup.run()
    return workgroup

def floats(data: bytes | bytearray) -> list[float]: return list(struct.unpack(f"<{len(data) // 4}f", data))
def words(data: bytes | bytearray) -> list[int]: return list(struct.unpack(f"<{len(data) // 4}I", data))
