"""Loads and stores: global memory, shared memory of a block, local memory of a lane, constant memory.

Addresses are multiples of the size of an access. Inactive lanes touch nothing.
"""
from __future__ import annotations
import struct
from collections.abc import Callable
from itertools import chain

from tinyhw.emulator.errors import Misplaced, OutOfBounds, UninitialisedRead, UnknownInstruction
from tinyhw.emulator.nvidia.warp.numbers import LONG, WORD, signed
from tinyhw.emulator.nvidia.warp.operands import Operands, Source, constants, put
from tinyhw.emulator.nvidia.warp.state import LANES, Warp, lanes_of
from tinyhw.isa.sass.table import regs

Step = Callable[[Warp, int], None]
Load = Callable[[Warp, list[int], list[int], int], list[bytes]]     # warp, lanes, addresses, size
Store = Callable[[Warp, list[int], list[int], list[bytes]], None]
SIZES = {"U8": (1, False), "S8": (1, True), "U16": (2, False), "S16": (2, True), "": (4, False), "64": (8, False),
         "128": (16, False)}

def load(o: Operands, address: Source, fetch: Load) -> Step:
  """Load d from memory. Narrow elements are extended to 32 bits."""
  size, is_signed = SIZES[o.word("size")]
  index = o.values["d"].index
  def run(warp: Warp, mask: int) -> None:
    lanes = lanes_of(mask)
    places = address(warp)
    try: data = fetch(warp, lanes, aligned([places[lane] for lane in lanes], size), size)
    except Misplaced as error:
      error.blame(lanes, [places[lane] for lane in lanes])
      raise
    for k in range(max(size // 4, 1)):
      words = [0] * LANES
      for lane, piece in zip(lanes, data):
        word = int.from_bytes(piece[4 * k:4 * k + 4], "little")
        words[lane] = signed(word, 8 * size) & WORD if is_signed else word
      if index != regs.ZERO: put(warp, index + k, words, mask)
  return run

def store(o: Operands, address: Source, write: Store) -> Step:
  """Store b to memory."""
  size, _ = SIZES[o.word("size")]
  index = o.values["b"].index
  def run(warp: Warp, mask: int) -> None:
    lanes = lanes_of(mask)
    places = address(warp)
    count = max(size // 4, 1)
    rows = [warp.registers[index if index == regs.ZERO else index + k] for k in range(count)]
    whole = struct.pack(f"<{count * LANES}I", *chain.from_iterable(zip(*rows)))
    data = [whole[4 * count * lane:4 * count * lane + size] for lane in lanes]
    try: write(warp, lanes, aligned([places[lane] for lane in lanes], size), data)
    except Misplaced as error:
      error.blame(lanes, [places[lane] for lane in lanes])
      raise
  return run

def aligned(addresses: list[int], size: int) -> list[int]:
  for address in addresses:
    if address % size:
      raise OutOfBounds(f"an access of {size} bytes at {address:#x}: the address is no multiple of its size")
  return addresses

# ***** addresses *****

def sum_of(o: Operands, wide: bool) -> Source:
  """Return the register of an address, plus the constant."""
  kind, ones = ("q", LONG) if wide else ("u", WORD)
  if o.has("index") and o.word("index"): raise UnknownInstruction("a scaled address is not supported yet")
  read, offset = o.raw("a", kind), o.number("o")
  return lambda warp: [x + offset & ones for x in read(warp)]

def based(o: Operands, base: str, offset: str = "o") -> Source:
  """Return 32 bits of each lane, without a sign, plus 64 of two uniform registers, plus the constant."""
  read, start, more = o.raw("a", "u"), o.raw(base, "q"), o.number(offset)
  def places(warp: Warp) -> list[int]:
    first = start(warp)[0] + more
    return [x + first & LONG for x in read(warp)]
  return places

def hints(o: Operands) -> None:
  """Accept hints for caches, and the scope of an access: memory is coherent here."""
  for name in ("evict", "ltc", "scope", "wscope", "volatile"):
    if o.has(name): o.word(name)

# ***** global memory *****

def gather(warp: Warp, lanes: list[int], addresses: list[int], size: int) -> list[bytes]:
  return warp.memory.gather(addresses, size)
def scatter(warp: Warp, lanes: list[int], addresses: list[int], data: list[bytes]) -> None:
  warp.memory.scatter(addresses, data)

def global_load(o: Operands) -> Step:
  hints(o)
  return load(o, sum_of(o, True), gather)

def global_store(o: Operands) -> Step:
  hints(o)
  return store(o, sum_of(o, True), scatter)

def based_load(o: Operands) -> Step:
  hints(o)
  return load(o, based(o, "ub"), gather)

def based_store(o: Operands) -> Step:
  hints(o)
  return store(o, based(o, "uc"), scatter)

# ***** shared memory *****

def shared_gather(warp: Warp, lanes: list[int], addresses: list[int], size: int) -> list[bytes]:
  return [warp.shared.load(warp.number, address, size) for address in addresses]

def shared_scatter(warp: Warp, lanes: list[int], addresses: list[int], data: list[bytes]) -> None:
  for address, piece in zip(addresses, data): warp.shared.store(warp.number, address, piece)

def shared_load(o: Operands) -> Step: return load(o, sum_of(o, False), shared_gather)
def shared_store(o: Operands) -> Step: return store(o, sum_of(o, False), shared_scatter)

# ***** local memory *****

def local_gather(warp: Warp, lanes: list[int], addresses: list[int], size: int) -> list[bytes]:
  found = []
  for lane, address in zip(lanes, addresses):
    inside(warp, address, size)
    if 0 in warp.local_known[lane][address:address + size]:
      raise UninitialisedRead(f"local memory {address:#x}: {size} bytes are read, which lane {lane} has not all "
                              f"written")
    found.append(bytes(warp.local[lane][address:address + size]))
  return found

def local_scatter(warp: Warp, lanes: list[int], addresses: list[int], data: list[bytes]) -> None:
  for lane, address, piece in zip(lanes, addresses, data):
    inside(warp, address, len(piece))
    warp.local[lane][address:address + len(piece)] = piece
    warp.local_known[lane][address:address + len(piece)] = b"\1" * len(piece)

def inside(warp: Warp, address: int, size: int) -> None:
  if address + size > warp.launch.local_bytes:
    raise OutOfBounds(f"local memory {address:#x}: a lane has {warp.launch.local_bytes} bytes; raise "
                      f"SHADER_LOCAL_MEMORY_LOW_SIZE")

def local_load(o: Operands) -> Step:
  hints(o)
  return load(o, sum_of(o, False), local_gather)

def local_store(o: Operands) -> Step:
  hints(o)
  return store(o, sum_of(o, False), local_scatter)

# ***** constant memory *****

def constant_load(o: Operands) -> Step:
  """LDC with a register in its address. semantics/integer.py has the one without."""
  size, is_signed = SIZES[o.word("csize")]
  bank, offset, read, index = o.number("bank"), o.number("w"), o.raw("a", "u"), o.values["d"].index
  def run(warp: Warp, mask: int) -> None:
    lanes = lanes_of(mask)
    places = read(warp)
    for k in range(max(size // 4, 1)):
      words = [0] * LANES
      for lane in lanes:
        word = int.from_bytes(constants(warp, bank, places[lane] + offset & WORD, size)[4 * k:4 * k + 4], "little")
        words[lane] = signed(word, 8 * size) & WORD if is_signed else word
      put(warp, index + k, words, mask)
  return run

SEMANTICS: dict[str, Callable[[Operands], Step]] = {
  "LDG": global_load, "LDG.plain": global_load, "STG": global_store, "STG.plain": global_store,
  "LDG.U": based_load, "STG.U": based_store,
  "LDS": shared_load, "STS": shared_store, "LDL": local_load, "STL": local_store, "LDC": constant_load,
}
