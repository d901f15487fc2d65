"""Bulk copies from global to shared memory that an mbarrier counts: UTMALDG copies a box of a tensor, UBLKCP a run of
bytes. A warp issues one at a time.

A tensor map of 128 bytes in global memory has the address, dimensions and strides of a tensor, and the size of a box.
The instruction adds the coordinates of the box's first element, the innermost one first. Elements outside of the tensor
are 0. Rows of a box are contiguous in shared memory, with a swizzle as in descriptors.py.

A copy may write at any time until its mbarrier's phase is complete and the reader has seen that. Here its bytes come at
some test of an mbarrier.

Sources: PTX ISA, "Tensor copies"; fields of the map as NVIDIA's assembler sets them (tensormap.replace); those after
byte 64 as in reed-lau/cute-gemm, which found them equal to the driver's.
"""
from __future__ import annotations
import struct
from collections.abc import Callable, Iterator
from itertools import product
from math import prod

from tinyhw.emulator.errors import OutOfBounds, UnknownInstruction
from tinyhw.emulator.memory.lds import ATOMIC, RIVALS
from tinyhw.emulator.nvidia.memory.descriptors import LINES, PIECE, swizzled
from tinyhw.emulator.nvidia.memory.mbarrier import barrier_at, checked, shared_of
from tinyhw.emulator.nvidia.memory.shared import MBARRIER_BYTES, VIEW, Delivery
from tinyhw.emulator.nvidia.warp.numbers import WORD, signed
from tinyhw.emulator.nvidia.warp.operands import Operands
from tinyhw.emulator.nvidia.warp.state import Warp
from tinyhw.named_tuple import NamedTuple

Step = Callable[[Warp, int], None]
MAP_BYTES, MAP_ALIGN, BOX_ALIGN, RANKS = 128, 64, 128, 5
SIZES = (1, 2, 4, 4, 8, 8, 2, 4, 4, 8, 2)   # bytes by number of a type: u8 u16 u32 s32 u64 s64 f16 f32 f32.ftz f64 bf16
LINE_BYTES = (PIECE, 32, 64, 128)           # by number of a swizzle
SEES = (*RIVALS[ATOMIC], VIEW)               # accesses that a copy must know of when an mbarrier counts it
FLAGS = 0x67ff0                             # rank, type, interleave, swizzle, and the policy of the second-level cache

class TensorMap(NamedTuple):
  """A decoded tensor map. address: of the first element. size: bytes of an element. line: of a swizzled line, 16
  without.

  dims, box: elements; strides: bytes, innermost first.
  """
  address: int
  size: int
  line: int
  dims: tuple[int, ...]
  strides: tuple[int, ...]
  box: tuple[int, ...]

  @property
  def row_bytes(self) -> int: return self.box[0] * self.size

def tensor_map(data: bytes) -> TensorMap:
  """Decode the fields of a map. Raises UnknownInstruction for one that is not as documented."""
  def wrong(why: str) -> UnknownInstruction: return UnknownInstruction(f"tensor map: {why}")
  address, flags, *words = struct.unpack_from("<QI4I", data)
  high, dims = int.from_bytes(data[28:30], "little"), struct.unpack_from("<5I", data, 32)
  steps, box = int.from_bytes(data[52:55], "little"), data[55:60]
  rank, kind, line = (flags >> 4 & 7) + 1, flags >> 7 & 15, LINE_BYTES[flags >> 13 & 3]
  if flags & ~FLAGS or rank > RANKS: raise wrong(f"flags {flags:#x} are not supported yet")
  if kind >= len(SIZES): raise wrong(f"there is no type {kind}")
  if flags >> 11 & 3: raise wrong("interleaved tensors are not supported yet")
  if steps & (1 << 3 * rank) - 1: raise wrong("steps between elements are not supported yet")
  if address % PIECE: raise wrong(f"the tensor begins at {address:#x}, which is no multiple of {PIECE}")
  strides = [((high >> 4 * k & 15) << 32 | words[k]) * PIECE for k in range(rank - 1)]
  made = TensorMap(address, SIZES[kind], line, tuple(n + 1 for n in dims[:rank]), (SIZES[kind], *strides),
                   tuple(n + 1 for n in box[:rank]))
  if made.row_bytes % PIECE:
    raise wrong(f"a row of the box has {made.row_bytes} bytes, which is no multiple of {PIECE}")
  if line > PIECE and made.row_bytes != line:
    raise wrong(f"a row of the box has {made.row_bytes} bytes, a line of the swizzle {line}")
  total, period = struct.unpack_from("<I4xI", data, 64)
  if total != prod(made.box) * made.size:
    raise wrong(f"byte 64 says that a box has {total} bytes; it has {prod(made.box) * made.size}")
  if period != (LINES * line if line > PIECE else PIECE): raise wrong(f"byte 72 says that a pattern has {period} bytes")
  return made

def rows(warp: Warp, tensor: TensorMap, first: tuple[int, ...]) -> Iterator[bytes]:
  """Yield the rows of a box from global memory, zeros outside of the tensor."""
  low, high = max(0, first[0]), min(tensor.dims[0], first[0] + tensor.box[0])
  for place in product(*(range(at, at + n) for at, n in reversed(tuple(zip(first[1:], tensor.box[1:]))))):
    outer = tuple(reversed(place))
    if high <= low or not all(0 <= at < n for at, n in zip(outer, tensor.dims[1:])): yield bytes(tensor.row_bytes)
    else:
      address = tensor.address + low * tensor.size + sum(at * stride for at, stride in zip(outer, tensor.strides[1:]))
      found = warp.memory.load(address, (high - low) * tensor.size)
      yield bytes((low - first[0]) * tensor.size) + found + bytes((first[0] + tensor.box[0] - high) * tensor.size)

def deliver_later(warp: Warp, barrier: int, pieces: list[tuple[int, bytes]]) -> None:
  """Send pieces of 16 bytes to shared memory; an mbarrier counts them.

  Raises UninitialisedRead, OutOfBounds, DataRace.
  """
  shared = shared_of(warp)
  counter = barrier_at(shared, checked(barrier))
  shared.knows[counter.actor], shared.now[counter.actor] = shared.release(warp.number), counter.phase + 1
  shared.touch(counter.actor, barrier, MBARRIER_BYTES, ATOMIC, SEES)
  shared.check_fenced(barrier, MBARRIER_BYTES)
  total = sum(len(data) for _, data in pieces)
  for address, data in pieces: shared.expect(counter.actor, address, len(data))
  shared.deliveries.append(Delivery(counter.actor, pieces, lambda: counter.change(0, -total)))

def aligned(what: str, address: int, to: int) -> int:
  if address % to: raise OutOfBounds(f"{what} {address:#x} is no multiple of {to}")
  return address

# ***** instructions *****

def load_box(o: Operands) -> Step:
  """UTMALDG: ub has the address in shared memory, the mbarrier, and the coordinates; ua the address of the map."""
  rank, base, map_at = int(o.word("dims")[0]), o.values["ub"].index, o.raw("ua", "q")
  def run(warp: Warp, mask: int) -> None:
    goal, barrier, *first = (warp.uniform[base + k] for k in range(2 + rank))
    tensor = tensor_map(warp.memory.load(aligned("a tensor map at", map_at(warp)[0], MAP_ALIGN), MAP_BYTES))
    if len(tensor.dims) != rank: raise OutOfBounds(f"UTMALDG.{rank}D of a tensor with {len(tensor.dims)} dimensions")
    aligned("a box at shared memory", goal, BOX_ALIGN)
    data = b"".join(rows(warp, tensor, tuple(map(signed, first))))
    deliver_later(warp, barrier,
                  [(swizzled(goal + at, tensor.line), data[at:at + PIECE]) for at in range(0, len(data), PIECE)])
  return run

def load_run(o: Operands) -> Step:
  """UBLKCP.S.G: ub has the address in shared memory and the mbarrier, ua the address, uc the bytes."""
  base, source, count = o.values["ub"].index, o.raw("ua", "q"), o.raw("uc", "u")
  def run(warp: Warp, mask: int) -> None:
    goal, barrier = warp.uniform[base], warp.uniform[base + 1]
    address, size = source(warp)[0], count(warp)[0] & WORD
    for what, number in (("a copy to shared memory", goal), ("a copy from", address), ("a number of bytes", size)):
      aligned(what, number, PIECE)
    data = warp.memory.load(address, size)
    deliver_later(warp, barrier, [(goal + at, data[at:at + PIECE]) for at in range(0, size, PIECE)])
  return run

def forget(o: Operands) -> Step:
  """UTMACCTL.IV: the unit reads a map anew. PF, which prefetches it, changes nothing here."""
  map_at = o.raw("ua", "q")
  if o.word("utmacctl") not in ("IV", "PF"):
    raise UnknownInstruction(f"UTMACCTL.{o.word('utmacctl')} is not supported yet")
  def run(warp: Warp, mask: int) -> None:
    tensor_map(warp.memory.load(aligned("a tensor map at", map_at(warp)[0], MAP_ALIGN), MAP_BYTES))
  return run

SEMANTICS: dict[str, Callable[[Operands], Step]] = {"UTMALDG.plain": load_box, "UBLKCP.S.G": load_run,
                                                    "UTMACCTL": forget}
