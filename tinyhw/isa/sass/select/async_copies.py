"""Select asynchronous copies to shared memory: of lanes (LDGSTS), and bulk tensor copies (UTMALDG).

A signal is an mbarrier of one arrival. The first thread of a block arrives and announces the count of bytes. Then its
warp issues the bulk tensor copies. Every warp that waits polls until the phase is complete.

Tensor maps are data of the launch (tensor_map.py). Their address is the last argument. The first warp keeps the
addresses of the maps in uniform registers. It invalidates the unit's cache of maps, because earlier launches may have
had other maps there (PTX ISA: fence.proxy.tensormap).

The whole warp executes UTMALDG, which has uniform operands only, and the unit issues one copy. That this holds for all
lanes of a warp is a guess.
"""
from __future__ import annotations
from typing import Any

from tinyhw.errors import CompileError
from tinyhw.isa.sass.select.address import BULK_COPIES, MAPS
from tinyhw.isa.sass.select.async_products import wait_products
from tinyhw.isa.sass.select.matrix import Matrices
from tinyhw.isa.sass.select.tensor_map import BYTES, Map
from tinyhw.isa.sass.table import regs
from tinyhw.isa.sass.table.branch import JUMP_IF
from tinyhw.isa.sass.table.units import WARP
from tinyhw.machine.ir.inst import Access, Block, MInst, Reg
from tinyhw.machine.select.macros import Macro
from tinyhw.threads import once
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

NEAREST = 1 << 11       # bytes that LDGSTS can add to an address, or subtract
PLACES = BULK_COPIES[::4]     # the first of four uniform registers, for each bulk tensor copy
SIGNAL_BYTES = 8
ARRIVALS = 1 << 20      # the word of a signal counts the missing arrivals up to this
PARITY = 31             # the bit of a number that is a phase's parity

class AsyncCopies(Matrices):
  """The layer of Selector for asynchronous copies.

  started: copies of lanes without a group yet: the ASYNC_COPY, a macro and its operands. boxes: ASYNC_COPY nodes
  without a signal yet.
  maps: of the program, numbered; the slot `maps_slot` holds their addresses. counted: there are groups of lanes'
  copies.
  """
  started: list[tuple[UOp, str, tuple[Any, ...]]]
  boxes: list[UOp]
  maps: dict[Map, int]
  maps_slot: int
  lanes: UOp | None
  crowded: bool
  counted: bool

  def async_copy(self, u: UOp) -> None:
    """Record an LDGSTS, whose constant offset is small. The COMMIT emits it.

    Addresses are read late, so each copy has address registers of its own, if there are enough.
    """
    if u.src[1].op is Ops.TENSOR_BOX:
      self.boxes.append(u)
      return
    goal, near = self.shared_place(u.src[0])
    address = self.address(u.src[1], NEAREST)
    size = u.arg * u.src[0].dtype.itemsize
    gate = [self.value(u.src[2])] if len(u.src) > 2 else []
    name = self.access(address, f"copy_b{8 * size}{'_if' * len(gate)}")
    self.started.append((u, name, (*gate, goal, address.register, near, address.offset)))
    if self.crowded: self.start_copies()

  def commit(self, u: UOp) -> None:
    """Emit the copies of the group after all of their addresses, then the instruction that counts them."""
    if u.src:
      self.ask(u)
      return
    self.start_copies()
    self.origin = u
    self.emit("commit")

  def start_copies(self) -> None:
    """Emit the recorded copies."""
    for origin, name, operands in self.started:
      self.origin = origin
      self.emit(name, *operands)
    self.started = []

  def wait(self, u: UOp) -> None:
    """Wait for copies, and for asynchronous products, if the program asks for them."""
    copies, *products = u.arg if isinstance(u.arg, tuple) else (u.arg,)
    if self.counted: self.emit("wait", copies)
    if u.src: self.look(*u.src)
    self.block.insts += [wait_products(self.generation.arch, n) for n in products]

  # ***** bulk tensor copies *****

  def signals(self, u: UOp) -> None:
    """Select SIGNALS: the first warp initializes or invalidates mbarriers.

    async_products.py makes them visible to the unit before the next barrier.
    """
    address, count = self.abi.shared + self.offsets[u.src[0]], u.src[0].arg[1]
    if u.arg == "end":
      after = self.first_warp(None)
      for k in range(count): self.emit("end_signal", regs.RZ, address + SIGNAL_BYTES * k)
      self.go_on(after)
      return
    maps = self.op(regs.R[2], "argument_b64", self.maps_slot)
    after = self.first_warp(None)
    self.emit(begin(address, count, len(self.maps)), maps)
    self.go_on(after)

  def ask(self, u: UOp) -> None:
    """Select a COMMIT to a signal: the first warp issues its bulk tensor copies."""
    boxes, self.boxes = self.boxes, []
    gate = self.value(u.src[1]) if len(u.src) > 1 else None
    after = self.first_warp(gate if isinstance(gate, Reg) else None)
    signal = self.shared_address(u.src[0])
    size = sum(box.arg * box.src[0].dtype.itemsize for box in boxes)
    self.emit("expect", self.op(regs.P, "eq_u32", self.lane(), 0), signal, size, 0)
    for k, box in enumerate(boxes):
      self.origin = box
      place = box.src[1]
      first = [self.in_register(self.half(self.value(x), "low") if x.dtype.itemsize == 8 else self.value(x), 1)
               for x in place.src[1:]]
      number = self.maps[place.src[0].arg[0], place.arg, place.dtype]
      self.emit(asked(PLACES[k % len(PLACES)], MAPS[number], len(first)), self.shared_address(box.src[0]), signal,
                *first)
    self.origin = u
    self.go_on(after)

  def look(self, signal: UOp, phase: UOp) -> None:
    """Wait until a phase is complete, in a loop."""
    address = self.shared_address(signal)
    number = self.value(phase)
    parity = self.in_register(self.once(regs.R[1], "shl32", number, PARITY) if isinstance(number, Reg)
                              else (number & 1) << PARITY, 1)
    again, after = self.function.new_block(self.block.depth + 1,
                                           "look"), self.function.new_block(self.block.depth, "after")
    self.branch(again, [])
    self.enter(again)
    self.jump_unless(self.op(regs.P, "phase_done", address, parity, 0), again)
    self.go_on(after)

  def shared_address(self, index: UOp) -> Reg:
    """Return an address in shared memory as one number."""
    address, offset = self.shared_place(index)
    if address is regs.RZ: return self.in_register(offset, 1)
    return self.once(regs.R[1], "add32", address, offset) if offset else address

  def lane(self) -> Reg:
    """Return the number of the thread in its block."""
    assert self.lanes is not None, "boxes are copied for workgroups"
    return self.part(regs.R[1], self.values[self.lanes], 0)

  def first_warp(self, gate: Reg | None) -> Block:
    """Open a block that only the first warp executes, if the gate holds. Return the block where all warps continue."""
    after, inside = self.function.new_block(self.block.depth,
                                            "after"), self.function.new_block(self.block.depth, "first")
    first = self.op(regs.P, "lt_s32", self.lane(), WARP)
    self.jump_unless(first if gate is None else self.op(regs.P, "p_and", first, gate), after)
    self.branch(inside, [])
    self.enter(inside)
    return after

  def jump_unless(self, predicate: Reg, block: Block) -> None:
    self.block.insts.append(MInst(JUMP_IF, [block, predicate, 1], self.origin, ([],)))

  def go_on(self, block: Block) -> None:
    self.branch(block, [])
    self.enter(block)

@once
def begin(address: int, signals: int, maps: int) -> Macro:
  """Return a macro that loads maps into their registers and initializes signals, from an address of shared memory on.

  a: the address of the first map.
  """
  if maps > len(MAPS):
    raise CompileError(f"a kernel with {maps} tensors whose boxes are copied; there is room for {len(MAPS)}")
  lines = []
  for k in range(maps):
    at = MAPS[k]
    lines += [f"IADD3 x, c, a.lo, {BYTES * k:#x}, RZ", "IADD3.X y, a.hi, RZ, RZ, c, !PT", f"R2UR UR{at}, x",
              f"R2UR UR{at + 1}, y"]
    lines.append(f"UTMACCTL.IV [UR{at}]")
  word, missing = PLACES[0] + 2, ARRIVALS - 1
  lines += [f"UMOV UR{PLACES[0]}, {address:#x}", f"UMOV UR{word}, {missing << 1:#x}",
            f"UMOV UR{word + 1}, {missing << 11 & 0xffffffff:#x}"]
  lines += [f"SYNCS.EXCH.64 URZ, [UR{PLACES[0]}+{SIGNAL_BYTES * k:#x}], UR{word}" for k in range(signals)]
  return Macro("signals", (("a", Access.READ, "v2"), ("x", Access.WRITE, "v1"), ("y", Access.WRITE, "v1"),
                           ("c", Access.WRITE, "p")), 1, tuple(lines))

@once
def asked(place: int, map_at: int, axes: int) -> Macro:
  """Return a macro of a bulk tensor copy: destination in shared memory (g), signal (s) and coordinates (x, y, z
  ...)."""
  names = ("g", "s", *"xyzvw"[:axes])
  lines = [f"R2UR UR{place + k}, {name}" for k, name in enumerate(names)]
  return Macro("box", tuple((name, Access.READ, "v1") for name in names), len(names),
               (*lines, f"UTMALDG.{axes}D [UR{place}], [UR{map_at}]"))
