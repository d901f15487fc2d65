"""A processor in Python: decodes the machine code of kernels and executes it, for levels that this machine may not
have.

`Machine.call(code, ...)` runs bytes that selection, allocation and the encoder made; constants behind the code are read
from there. Memory is regions with gaps between them, so that touching a byte outside of a buffer is an error, also in a
lane that a mask should have kept from it. As a device (`open`; X86:0 has AVX2, X86:1 AVX-512) it runs whole tensor
programs. It knows the instructions that selection emits and refuses others.

Meaning: Intel SDM volume 2. The lanes of a vector instruction are in x86/lanes.py. Not modelled: flags that no kernel
reads (AF, PF), alignment, exceptions of floats, modes of rounding other than those kernels ask for.
"""
from __future__ import annotations
import bisect
import struct
from collections.abc import Callable, Sequence
from typing import Any

from x86 import lanes as x86_lanes, tiles as x86_tiles

from tinyhw.device import Allocator, Compiled, Launch
from tinyhw.isa.x86 import abi
from tinyhw.isa.x86.asm.decode import decode
from tinyhw.isa.x86.table import regs
from tinyhw.machine.ir.code import Code
from tinyhw.machine.ir.inst import MInst

Step = Callable[["Machine"], "int | None"]  # gives the address of the next instruction if that is not the one behind it
ALL = (1 << 64) - 1
STACK_BYTES = 1 << 16
LEVELS = ("x86_64:avx2", "x86_64:avx512", "x86_64:avx512vnni", "x86_64:avx512bf16", "x86_64:amx")

class Region:
  """Bytes at an address."""
  def __init__(self, address: int, data: memoryview): self.address, self.data = address, data

class Memory:
  """Regions in the order of their addresses."""
  def __init__(self) -> None:
    self.starts: list[int] = []
    self.regions: list[Region] = []
    self.end = 1 << 20

  def add(self, data: bytearray) -> Region:
    region = Region(self.end, memoryview(data))
    self.starts.append(self.end)
    self.regions.append(region)
    self.end += (len(data) + 4095) // 4096 * 4096 + 4096
    return region

  def add_at(self, address: int, data: bytearray) -> Region:
    """The same at an address of the caller's choice, where nothing is."""
    region, k = Region(address, memoryview(data)), bisect.bisect(self.starts, address)
    self.starts.insert(k, address)
    self.regions.insert(k, region)
    return region

  def find(self, address: int, size: int) -> tuple[memoryview, int]:
    k = bisect.bisect_right(self.starts, address) - 1
    region = self.regions[k] if k >= 0 else None
    if region is None or address - region.address + size > len(region.data):
      raise AssertionError(f"{size} bytes at {address:#x} are outside of what the kernel may touch")
    return region.data, address - region.address

  def read(self, address: int, size: int) -> bytes:
    data, at = self.find(address, size)
    return bytes(data[at:at + size])

  def write(self, address: int, data: bytes) -> None:
    found, at = self.find(address, len(data))
    found[at:at + len(data)] = data

class Machine:
  """Registers, flags and memory of one processor, of a level."""
  def __init__(self, arch: str):
    self.memory, self.arch = Memory(), arch
    self.stack = self.memory.add(bytearray(STACK_BYTES))
    self.general = [0] * 16
    self.vector = [bytes(64)] * 32
    self.masks = [0] * 8
    self.tiles: list[bytes] | None = None   # set while they are configured
    self.zero = self.carry = self.sign = self.overflow = False
    self.steps: dict[int, tuple[Step, int]] = {}
    self.seen: set[str] = set()   # keys of rows that were executed

  def load(self, text: bytes) -> Region: return self.memory.add(bytearray(text))

  def call(self, entry: int, arguments: Sequence[int]) -> None:
    """Run from `entry` to its ret. Raises AssertionError if registers that belong to the caller are changed."""
    convention = abi.abi()
    kept = [regs.NAMES64.index(name) for name in (*convention.saved, "rsp")]
    self.general[:] = [0xdead0000 + i for i in range(16)]
    self.masks[:] = [0x5aa5 * i for i in range(8)]
    self.vector[:] = [bytes([0x77 + i]) * 64 for i in range(32)]
    for name, value in zip(convention.arguments, arguments): self.general[regs.NAMES64.index(name)] = value & ALL
    self.general[4] = self.stack.address + STACK_BYTES - 64
    before = [self.general[k] for k in kept]
    at: int = entry
    while at:
      found = self.steps.get(at)
      if found is None: found = self.steps[at] = self.prepare(at)
      target = found[0](self)
      at = found[1] if target is None else target
    assert self.tiles is None, "tiles were not released"
    self.general[4] -= 8  # of the return address that a call would have pushed
    assert [self.general[k] for k in kept] == before, "a register of the caller was not restored"

  def prepare(self, at: int) -> tuple[Step, int]:
    data, offset = self.memory.find(at, 1)
    inst, size = decode(bytes(data[offset:offset + 16]))
    assert self.arch != LEVELS[0] or "avx512" not in inst.row.feature, f"{inst} is not of {self.arch}"
    self.seen.add(inst.row.isa.key)
    step = (x86_tiles.prepare(inst, at + size) or x86_lanes.prepare(inst, at + size)
            or prepare_general(inst, at + size, at))
    if step is None: raise AssertionError(f"the machine does not know {inst.row.isa.key}; add it to test/support")
    return step, at + size

# ***** general registers *****

def reader(inst: MInst, n: int, end: int) -> Callable[[Machine], int]:
  """Return a function that reads shown operand n as an unsigned integer."""
  at, kind = inst.row.isa.syntax[n]
  if kind.category in ("register", "fixed"):
    index, ones = inst.operands[at].index, (1 << inst.operands[at].cls.bits) - 1
    return lambda m: m.general[index] & ones
  if kind.category == "immediate":
    value = inst.operands[at]
    return lambda m: value
  place, size = x86_lanes.addresser(inst, at, end), kind.bits // 8
  return lambda m: int.from_bytes(m.memory.read(place(m), size), "little")

def writer(inst: MInst, n: int, end: int) -> tuple[Callable[[Machine, int], None], int]:
  """How shown operand n is written, and its bits. 32 bits clear the upper half, fewer leave it."""
  at, kind = inst.row.isa.syntax[n]
  if kind.category in ("register", "fixed"):
    index, bits = inst.operands[at].index, inst.operands[at].cls.bits
    def write(m: Machine, value: int) -> None:
      ones = (1 << bits) - 1
      m.general[index] = value & ones if bits >= 32 else m.general[index] & ~ones | value & ones
    return write, bits
  place, bits = x86_lanes.addresser(inst, at, end), kind.bits
  return lambda m, value: m.memory.write(place(m), (value & (1 << bits) - 1).to_bytes(bits // 8, "little")), bits

def signed(value: int, bits: int) -> int:
  value &= (1 << bits) - 1
  return value - (1 << bits) if value >> bits - 1 else value

def set_result(m: Machine, value: int, bits: int) -> None:
  m.zero, m.sign = value & (1 << bits) - 1 == 0, bool(value >> bits - 1 & 1)

def arithmetic(m: Machine, name: str, a: int, b: int, bits: int) -> int:
  """add, sub, cmp, and, or, xor, test and their flags."""
  ones = (1 << bits) - 1
  a, b = a & ones, b & ones
  if name == "add": exact, total = signed(a, bits) + signed(b, bits), a + b
  elif name in ("sub", "cmp"): exact, total = signed(a, bits) - signed(b, bits), a - b
  else:
    total = {"or": a | b, "xor": a ^ b}.get(name, a & b)
    exact = signed(total, bits)
  m.carry, m.overflow = not 0 <= total <= ones, not -(1 << bits - 1) <= exact < 1 << bits - 1
  set_result(m, total, bits)
  return total & ones

CONDITIONS: dict[str, Callable[[Machine], bool]] = {
  "e": lambda m: m.zero, "ne": lambda m: not m.zero, "b": lambda m: m.carry, "ae": lambda m: not m.carry,
  "s": lambda m: m.sign,
  "ns": lambda m: not m.sign, "be": lambda m: m.carry or m.zero, "a": lambda m: not (m.carry or m.zero),
  "l": lambda m: m.sign != m.overflow,
  "ge": lambda m: m.sign == m.overflow, "le": lambda m: m.zero or m.sign != m.overflow,
  "g": lambda m: not (m.zero or m.sign != m.overflow),
}

def shifted(name: str, value: int, count: int, bits: int) -> int:
  count &= 63 if bits == 64 else 31
  if name[:3] == "shl": return value << count
  return (signed(value, bits) if name[:3] == "sar" else value) >> count

def rotated(value: int, count: int, bits: int) -> int: return value << count | value >> bits - count

def prepare_general(inst: MInst, end: int, start: int) -> Step | None:
  """A step for an instruction on general registers."""
  name, shown = inst.row.name, len(inst.row.isa.syntax)
  if name == "ret": return lambda m: pop(m) and 0
  if name in ("push", "pop"):
    index = inst.operands[inst.row.isa.syntax[0][0]].index
    return (lambda m: push(m, m.general[index])) if name == "push" else (lambda m: m.general.__setitem__(index, pop(m)))
  if inst.row.isa.block >= 0:
    target = start + inst.operands[inst.row.isa.block]
    if name == "jmp": return lambda m: target
    condition = CONDITIONS[name[1:]]
    return lambda m: target if condition(m) else None
  if name in ("cqo", "cdq"):
    bits = 64 if name == "cqo" else 32
    return lambda m: m.general.__setitem__(2, (1 << bits) - 1 if m.general[0] >> bits - 1 & 1 else 0)
  if name in ("div", "idiv"): return division(inst, end)
  if not shown: return None
  write, bits = writer(inst, 0, end)
  if name == "lea":
    place = x86_lanes.addresser(inst, inst.row.isa.memory, end)
    return lambda m: write(m, place(m))
  sources = [reader(inst, k, end) for k in range(shown)]
  if name[:3] == "set":
    condition = CONDITIONS[name[3:]]
    return lambda m: write(m, condition(m))
  if name[:4] == "cmov":
    condition = CONDITIONS[name[4:]]
    return lambda m: write(m, sources[1](m) if condition(m) else sources[0](m))
  return plain(inst, name, write, bits, sources)

def plain(inst: MInst, name: str, write: Callable[[Machine, int], None], bits: int,
          sources: list[Callable[[Machine], int]]) -> Step | None:
  """Operands in, result out."""
  if name in ("mov", "movabs", "movzx"): return lambda m: write(m, sources[1](m))
  if name in ("movsx", "movsxd"):
    at, kind = inst.row.isa.syntax[1]
    narrow = kind.bits or inst.operands[at].cls.bits
    return lambda m: write(m, signed(sources[1](m), narrow))
  if name in ("add", "sub", "and", "or", "xor"):
    return lambda m: write(m, arithmetic(m, name, sources[0](m), sources[1](m), bits))
  if name in ("cmp", "test"): return lambda m: void(arithmetic(m, name, sources[0](m), sources[1](m), bits))
  if name == "neg": return lambda m: write(m, arithmetic(m, "sub", 0, sources[0](m), bits))
  if name == "not": return lambda m: write(m, ~sources[0](m))
  if name == "rol" and bits >= 32: return lambda m: write(m, rotated(sources[0](m), sources[1](m) % bits, bits))
  if name in ("shl", "shr", "sar"): return lambda m: write(m, shifted(name, sources[0](m), sources[1](m), bits))
  if name in ("shlx", "shrx", "sarx"): return lambda m: write(m, shifted(name, sources[1](m), sources[2](m), bits))
  if name == "imul" and len(sources) > 1: return lambda m: write(m, sources[-1](m) * sources[-2](m))
  if name == "xchg" and inst.row.isa.memory < 0 and bits == 64:
    a, b = inst.operands[0].index, inst.operands[1].index
    def exchange(m: Machine) -> None: m.general[a], m.general[b] = m.general[b], m.general[a]
    return exchange
  return None

def void(_: object) -> None: return None

def push(m: Machine, value: int) -> None:
  m.general[4] -= 8
  m.memory.write(m.general[4], value.to_bytes(8, "little"))

def pop(m: Machine) -> int:
  m.general[4] += 8
  return int.from_bytes(m.memory.read(m.general[4] - 8, 8), "little")

def division(inst: MInst, end: int) -> Step | None:
  divisor = reader(inst, 0, end)
  at, kind = inst.row.isa.syntax[0]
  bits = kind.bits or inst.operands[at].cls.bits
  if bits < 32: return None
  def step(m: Machine) -> None:
    ones, d = (1 << bits) - 1, divisor(m)
    n = (m.general[2] & ones) << bits | m.general[0] & ones
    if inst.row.name == "idiv": n, d = signed(n, 2 * bits), signed(d, bits)
    q = abs(n) // abs(d) * (1 if (n < 0) == (d < 0) else -1)
    assert q == (signed(q, bits) if inst.row.name == "idiv" else q & ones), "the quotient does not fit"
    m.general[0], m.general[2] = q & ones, n - q * d & ones
  return step

# ***** the device *****

def open(ordinal: int, runtime: Callable[[str], Code]) -> Compiled:
  """The device X86 or X86:1; see LEVELS."""
  return MachineDevice(f"X86:{ordinal}" if ordinal else "X86", LEVELS[ordinal])

class MachineAllocator(Allocator):
  """Buffers are regions."""
  def __init__(self, name: str, machine: Machine):
    super().__init__(name)
    self.machine = machine

  def _alloc(self, size: int) -> Region: return self.machine.memory.add(bytearray(size))
  def _copyin(self, dest: Region, src: memoryview) -> None: dest.data[:src.nbytes] = src
  def _copyout(self, dest: memoryview, src: Region) -> None: dest[:] = src.data[:dest.nbytes]
  def offset(self, opaque: Region, size: int, offset: int) -> Region:
    return Region(opaque.address + offset, opaque.data[offset:offset + size])
  def address(self, opaque: Region) -> int: return opaque.address

class MachineDevice(Compiled):
  """Runs everything at once, one grid after the other, in two parts, as workers would."""
  def __init__(self, name: str, arch: str):
    self.machine = Machine(arch)
    super().__init__(name, MachineAllocator(name, self.machine), arch=arch)

  def load(self, code: Code) -> tuple[Code, int, int]:
    assert code.arch == self.arch, f"{code.name} is for {code.arch}"
    scratch = self.machine.memory.add(bytearray(code.local_bytes))
    return code, self.machine.load(code.text).address, scratch.address

  def submit(self, launches: Sequence[Launch]) -> None:
    for launch in launches:
      _, entry, scratch = launch.program
      values = [b.address for b in launch.buffers] + [v & ALL for v in launch.variables]
      arguments = self.machine.memory.add(bytearray(struct.pack(f"<{len(values)}Q", *values)))
      half = launch.grid // 2
      for first, last in ((0, half), (half, launch.grid)):
        if last > first: self.machine.call(entry, [arguments.address, first, last, scratch])

  def record(self, launches: Sequence[Launch]) -> Any: raise AssertionError("the machine does not record")
