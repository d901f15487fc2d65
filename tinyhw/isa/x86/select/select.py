"""Select x86-64 instructions over virtual registers for a Program: blocks, loops, addresses, memory.

Other files have the arithmetic (select/scalar.py and select/vector.py), conversions (select/cast.py), choices
(select/choice.py), multiply-adds (select/fused.py) and combined logic (select/logic.py). Methods that depend on the
feature level are in select/mask.py and select/evex.py.

Selection is one pass over the program, in order. A value that a user can include is not emitted by itself. An INDEX
becomes an address, and a constant an immediate or a memory operand. A load with one user becomes an operand of it, and
a broadcast of a load a broadcasting load. The location of a value depends on its type:

    bool, integers up to 64 bits, and codes    a general register; integers are extended to 32 or 64 bits,
    of float16, bfloat16 and fp8               with their sign if they have one
    float32, float64                           the low lane of a vector register
    vectors                                    the smallest of xmm, ymm, zmm that holds them, packed
    vectors of bool                            AVX2: lanes of all ones or zeros, with the size of the compared values
                                               AVX-512: a mask register, one bit a lane

Variables (ACC) become block parameters of the loops that assign them, so the result is in SSA form. The kernel's ABI is
in docs/design/devices.md.
"""
from __future__ import annotations
from typing import TYPE_CHECKING, Any

from tinyhw.dtype import DType, dtypes
from tinyhw.errors import CompileError
from tinyhw.isa.x86 import abi
from tinyhw.isa.x86.select.cast import Casts
from tinyhw.isa.x86.select.choice import Choices
from tinyhw.isa.x86.select.evex import EvexMasks
from tinyhw.isa.x86.select.fused import Fused
from tinyhw.isa.x86.select.logic import FUNCTIONS, Logic
from tinyhw.isa.x86.select.mask import LaneMasks
from tinyhw.isa.x86.select.part import Address, Position
from tinyhw.isa.x86.select.scalar import Scalars
from tinyhw.isa.x86.select.vector import Vectors, is_constant_vector, places_of
from tinyhw.isa.x86.table import regs
from tinyhw.machine.ir.inst import Block, Function, Reg
from tinyhw.uop.enums import NON_TEMPORAL, AxisType, GroupOp, Ops
from tinyhw.uop.ops import UOp
if TYPE_CHECKING:
  from tinyhw.machine.ir.target import Target
  from tinyhw.uop.program import Program

class OpenLoop:
  """An open loop: the start of its body, and the values of the variables that it carries."""
  __slots__ = ("range", "body", "counter", "carried", "after", "before")

  def __init__(self, range: UOp, body: Block, counter: Reg, carried: list[UOp]):
    self.range, self.body, self.counter, self.carried = range, body, counter, carried
    self.after: Block | None = None     # set if the loop may have no iteration
    self.before: tuple[Block, Position]  # place of the constants that it uses

class Selector(Scalars, Vectors, Casts, Choices, Fused, Logic):
  """The state of one selection, except for the methods that depend on the feature level.

  `select` at the end of this file uses it.
  """

  def __init__(self, program: Program, target: Target):
    self.program, self.target = program, target
    self.function = Function(program.name)
    self.block = self.function.new_block(name="entry")
    self.order = [self.block]                  # blocks in the order of the layout; they are created earlier
    self.values: dict[UOp, Reg] = {}
    self.mask_bytes: dict[UOp, int] = {}       # of a mask, at the AVX2 level: bytes of a lane
    self.loops: list[OpenLoop] = []
    self.conditions: list[Block] = []
    self.origin: UOp | None = None
    self.constants: dict[tuple[Any, ...], Reg] = {}
    self.entry = Position(0)
    self.starts: dict[tuple[Block, UOp], Reg] = {}
    self._analyse()

  def _analyse(self) -> None:
    """Find the users of each value, variables assigned in each loop, loads that their only user may include, and
    offsets of shared arrays."""
    self.users: dict[UOp, list[UOp]] = {}
    self.assigned: dict[UOp, list[UOp]] = {}
    self.local_offset: dict[UOp, int] = {}
    self.position: dict[UOp, int] = {}
    open_loops: list[UOp] = []
    local = 0
    barriers = [0]
    for n, u in enumerate(self.program.uops):
      self.position[u] = n
      for s in u.src: self.users.setdefault(s, []).append(u)
      if u.op is Ops.RANGE:
        open_loops.append(u)
        self.assigned[u] = []
      elif u.op is Ops.END: open_loops.pop()
      elif u.op is Ops.ASSIGN_ACC:
        for r in open_loops:
          if u.src[0] not in self.assigned[r] and self.position[u.src[0]] < self.position[r]:
            self.assigned[r].append(u.src[0])
      elif u.op is Ops.DEFINE_LOCAL:
        self.local_offset[u] = local
        local += (u.arg[1] * u.dtype.itemsize + 63) // 64 * 64
      if u.op in _FENCES: barriers.append(n)
    self.function.local_bytes = local
    self.has_inner_loops = len(self.assigned) > 1
    self.swallowed: set[UOp] = set()
    self.spread: set[UOp] = set()      # broadcasts of such loads whose only user can broadcast by itself
    self.extrema: dict[UOp, tuple[str, UOp, UOp]] = {}
    self.flags: set[UOp] = set()
    self.lone: set[UOp] = set()
    self.rotated: dict[UOp, tuple[UOp, int]] = {}
    self.inner: dict[UOp, UOp] = {}
    fence = 0
    for n, u in enumerate(self.program.uops):
      if u.op in _CHOOSERS: self.take_condition(u, fence)
      elif u.op in FUNCTIONS: self.take_logic(u, fence)
      if u.op in _FENCES: fence = n
      elif u.op in _SWALLOWERS:
        for s in u.src:
          load = s.src[0] if u.op is Ops.BROADCAST and s.op is Ops.BITCAST and len(self.users[s]) == 1 else s
          if load.op is Ops.LOAD and self.position[load] > fence and self._may_be_operand(load):
            self.swallowed |= {s, load}     # with a BITCAST between
          elif s.op is Ops.BROADCAST and self.position[s] > fence and self._may_be_spread(s, u): self.spread.add(s)
      elif u.op is Ops.VECTORIZE and self.is_shuffle(u):
        for s in u.src: self.users[s].remove(u)
    self.users = {u: users for u, users in self.users.items() if users}

  def _may_be_operand(self, load: UOp) -> bool:
    """Whether a load has one user, which can take it as a memory operand."""
    return len(load.src) == 1 and len(self.users[load]) == 1 and load.src[0].src[1].dtype.count == 1

  def _may_be_spread(self, u: UOp, user: UOp) -> bool:
    """Whether `user` is the only user of a broadcast of an element in memory, and can take it as an operand."""
    if not self.spreads or user.op not in _SPREADERS or self.users[u] != [user] or u.src[0] not in self.swallowed:
      return False
    return u.dtype.itemsize in (16, 32, 64) and u.dtype.scalar().itemsize >= 4

  # ***** values *****

  def value(self, u: UOp) -> Reg:
    """The register of u. A constant is made here, and so is a load that its user did not include."""
    found = self.values.get(u)
    if found is not None: return found
    if u.op is Ops.CONST: return self.constant(u.dtype, u.arg)
    if is_constant_vector(u): return self.lanes_constant(u)
    if u.op is Ops.LOAD: return self.load(u)
    if u in self.spread or u in self.swallowed:
      self.values[u] = value = self.compute(u)
      return value
    raise CompileError(f"{self.program.name}: no value for {u}; its definition does not come before its use")

  def constants_place(self) -> tuple[Block, Position]:
    """The place of a constant that is used here: before the outermost loop inside the grid's, so that it is not live
    through other loops.

    In the grid's own body a constant is made in place. If there are no inner loops, it is made at the start of the
    function, as long as half of the vector registers can hold the constants there.
    """
    if len(self.loops) > 1: return self.loops[1].before
    few = len(self.constants) < self.target.capabilities.vector_registers // 2
    if not self.loops or not self.has_inner_loops and few: return self.function.blocks[0], self.entry
    return self.block, Position(len(self.block.insts))

  def start_value(self, u: UOp) -> Reg:
    """The initial value of a variable.

    A constant is made here, once a block, so that none stays live through the loop that uses up all registers.
    """
    if u.op is not Ops.CONST: return self.value(u)
    key = (self.block, u)
    found = self.starts.get(key)
    if found is None: found = self.starts[key] = self._constant(u.dtype, u.arg)
    return found

  def address(self, index: UOp) -> Address:
    """An INDEX as base, index, scale and displacement."""
    return self.element(index.src[0], index.src[1], 0)

  def element(self, buffer: UOp, i: UOp, more: int) -> Address:
    """The address of an element of a buffer: number i + more."""
    size = buffer.dtype.itemsize
    displacement = more * size
    if buffer.op is Ops.DEFINE_LOCAL: displacement += self.local_offset[buffer]
    base = self.values[buffer]
    if i.op is Ops.ADD and i.src[1].op is Ops.CONST and i not in self.values:
      displacement += i.src[1].arg * size
      i = i.src[0]
    if i.op is Ops.CONST:
      return self.in_reach(base, None, 1, displacement + i.arg * size)
    if size in (1, 2, 4, 8): return self.in_reach(base, self.index64(i), size, displacement)
    raise CompileError(f"{self.program.name}: elements of {size} bytes cannot be addressed")

  def in_reach(self, base: Reg, index: Reg | None, scale: int, displacement: int) -> Address:
    if -(1 << 31) <= displacement < 1 << 31: return base, index, scale, displacement
    far = self.constant(dtypes.int64, displacement)
    return self.op(regs.R64, "lea_r64_m", base, far, 1, 0), index, scale, 0

  def index64(self, u: UOp) -> Reg:
    """An index in a 64-bit register.

    The hardware zero-extends 32-bit results, so only an index that may be negative needs an instruction.
    """
    value = self.value(u)
    if u.dtype.itemsize == 8 or u.vmin >= 0: return value
    return self.op(regs.R64, "movsxd_r64_r32", value)

  # ***** memory *****

  def memory(self, u: UOp) -> Address | None:
    """The address of a load that may be an operand of its user, else None."""
    return self.address(place_of(u)) if u in self.swallowed and u not in self.values else None

  def in_memory(self, u: UOp) -> bool:
    """Whether u is in memory and can be the last operand of an instruction."""
    if u in self.values: return False
    return u in self.spread or u in self.swallowed and (u.dtype.count == 1 or u.dtype.itemsize in (16, 32, 64))

  def last_operand(self, u: UOp) -> tuple[str, tuple[Any, ...]]:
    """u as the last operand: "m" and an address for memory, "b" and an address for one element of it, or "" and a
    register."""
    if not self.in_memory(u): return "", (self.value(u),)
    return ("b", self.address(place_of(u.src[0]))) if u in self.spread else ("m", self.address(place_of(u)))

  def load(self, u: UOp) -> Reg:
    index, dtype = u.src[0], u.dtype
    self.values[u] = value = self._load(u, index, dtype)
    return value

  def _load(self, u: UOp, index: UOp, dtype: DType) -> Reg:
    if index.src[1].dtype.count > 1: return self.gather(u)
    if len(u.src) == 1:
      if dtype.count == 1: return self.load_scalar(dtype, self.address(index))
      value = self.load_vector(dtype, self.address(index))
      return self.load_bools(u, value) if dtype.scalar() is dtypes.bool else value
    if dtype.count > 1: return self.load_masked(u)
    value = self.load_scalar(dtype, self.address_under(self.value(u.src[1]), index))
    return self.choose(dtype, u.src[1], value, self.value(u.src[2]))

  def address_under(self, flag: Reg, index: UOp) -> Address:
    """The address of up to 8 bytes to read if flag is 1. If flag is 0, the address of the first argument, which is
    always readable."""
    place = self.op(regs.R64, "lea_r64_m", *self.address(index))
    self.emit("test_r32_r32", flag, flag)
    return self.tied(regs.R64, "cmove_r64_r64", place, self.arguments), None, 1, 0

  def load_scalar(self, dtype: DType, address: Address) -> Reg:
    if dtype is dtypes.float32: return self.op(regs.XMM, "vmovss_x_m", *address)
    if dtype is dtypes.float64: return self.op(regs.XMM, "vmovsd_x_m", *address)
    if dtype.itemsize == 8: return self.op(regs.R64, "mov_r64_m64", *address)
    if dtype.itemsize == 4: return self.op(regs.R32, "mov_r32_m32", *address)
    signed = dtypes.is_int(dtype) and not dtypes.is_unsigned(dtype)
    return self.op(regs.R32, f"mov{'s' if signed else 'z'}x_r32_m{8 * dtype.itemsize}", *address)

  def store(self, u: UOp) -> None:
    index, value = u.src[0], u.src[1]
    if len(u.src) > 2 and value.dtype.count > 1 and u.src[2].dtype.count > 1: return self.store_masked(u)
    if len(u.src) > 2:
      after = self.function.new_block(self.block.depth, "after")
      self.branch_unless(u.src[2], after)
      self._store(index, value)
      self.jump_to(after)
    else: self._store(index, value, u.tag == NON_TEMPORAL)

  def _store(self, index: UOp, value: UOp, non_temporal: bool = False) -> None:
    dtype = value.dtype
    if index.src[1].dtype.count > 1: return self.scatter(index, value)
    if dtype.count > 1: return self.store_vector(dtype, self.address(index), self.value_bytes(value), non_temporal)
    if value.op is Ops.CONST and not dtypes.is_float(dtype) and -(1 << 31) <= value.arg < 1 << 31:
      bits = 8 * dtype.itemsize
      return self.emit(f"mov_m{bits}_i{min(bits, 32)}", *self.address(index), wrapped(int(value.arg), min(bits, 32)))
    register = self.value(value)
    if dtype is dtypes.float32: self.emit("vmovss_m_x", *self.address(index), register)
    elif dtype is dtypes.float64: self.emit("vmovsd_m_x", *self.address(index), register)
    else: self.emit(f"mov_m{8 * dtype.itemsize}_r{8 * dtype.itemsize}", *self.address(index), register)

  # ***** control *****

  def prologue(self) -> None:
    """Receive the arguments, then define the address of each buffer and the value of each variable."""
    names = abi.abi().arguments
    numbers = [regs.NAMES64.index(name) for name in names[:4]]
    parameters = [self.new(regs.R64) for _ in numbers]
    self.block.params = parameters
    self.function.fixed_params = dict(enumerate(numbers))
    self.arguments, self.first, self.last, self.scratch = parameters

  def define(self, u: UOp) -> None:
    """Select PARAM, DEFINE_VAR, DEFINE_LOCAL."""
    if u.op is Ops.PARAM:
      self.values[u] = self.op(regs.R64, "mov_r64_m64", self.arguments, None, 1, 8 * self.program.params.index(u))
    elif u.op is Ops.DEFINE_LOCAL: self.values[u] = self.scratch
    else:
      slot = len(self.program.params) + self.program.variables.index(u)
      bits = 64 if u.dtype.itemsize == 8 else 32
      self.values[u] = self.op(regs.R64 if bits == 64 else regs.R32, f"mov_r{bits}_m{bits}", self.arguments, None, 1,
                               8 * slot)

  def jump(self, block: Block, values: list[Reg] | None = None) -> None:
    self.emit("jmp_rel", block, arguments=(values or [],))

  def jump_to(self, block: Block) -> None:
    """End this block with a jump to `block`, and continue there."""
    self.jump(block)
    self.order.append(block)
    self.block = block

  def open_loop(self, u: UOp) -> None:
    is_grid = u.arg[1] is AxisType.GLOBAL
    bits = 64 if is_grid or u.dtype.itemsize == 8 else 32
    cls = regs.R64 if bits == 64 else regs.R32
    start = self.first if is_grid else self.op(cls, f"mov_r{bits}_i32", 0)
    body = self.function.new_block(self.block.depth + 1, "loop")
    loop = OpenLoop(u, body, self.new(cls), self.assigned[u])
    loop.before = self.block, Position(len(self.block.insts))
    before = [self.values[a] for a in loop.carried]
    if not is_grid and u.src[0].vmin < 1:
      loop.after = self.function.new_block(self.block.depth, "after")
      end = self.value(u.src[0])
      self.emit(f"test_r{bits}_r{bits}", end, end)
      self.emit("jle_rel", loop.after, arguments=(before,))
    self.jump(body, [start] + before)
    body.params = [loop.counter] + [self.new(b.cls) for b in before]
    self.order.append(body)
    self.block = body
    self.values[u] = loop.counter
    self.values.update(zip(loop.carried, body.params[1:]))
    self.loops.append(loop)

  def close_loop(self, u: UOp) -> None:
    loop = self.loops.pop()
    is_grid = loop.range.arg[1] is AxisType.GLOBAL
    bits = 64 if loop.counter.cls is regs.R64 else 32
    following = self.tied(loop.counter.cls, f"add_r{bits}_i32", loop.counter, 1)
    end = loop.range.src[0]
    if is_grid: self.emit("cmp_r64_r64", following, self.last)
    elif end.op is Ops.CONST and end.arg < 1 << 31: self.emit(f"cmp_r{bits}_i32", following, end.arg)
    else: self.emit(f"cmp_r{bits}_r{bits}", following, self.value(end))
    values = [self.values[a] for a in loop.carried]
    self.emit("jl_rel", loop.body, arguments=([following] + values,))
    after = loop.after or self.function.new_block(self.block.depth - 1, "after")
    self.jump(after, values if loop.after is not None else [])
    if loop.after is not None:
      after.params = [self.new(v.cls) for v in values]
      self.values.update(zip(loop.carried, after.params))
    self.order.append(after)
    self.block = after

  def branch_unless(self, condition: UOp, target: Block) -> None:
    """Continue in a new block if condition is true, else in target."""
    inside = self.function.new_block(self.block.depth, "then")
    self.emit(f"j{self.unless(condition)}_rel", target, arguments=([],))
    self.jump_to(inside)

  def control(self, u: UOp) -> None:
    if u.op is Ops.IF:
      after = self.function.new_block(self.block.depth, "after")
      self.conditions.append(after)
      self.branch_unless(u.src[0], after)
    elif u.op is Ops.ENDIF: self.jump_to(self.conditions.pop())
    elif u.op is Ops.RANGE: self.open_loop(u)
    elif u.op is Ops.END: self.close_loop(u)

  # ***** the pass *****

  def run(self) -> Function:
    self.prologue()
    for u in self.program.uops:
      self.origin = u
      op = u.op
      if op in _DEFINES: self.define(u)
      elif op in _CONTROL: self.control(u)
      elif op is Ops.STORE: self.store(u)
      elif op is Ops.ACC: self.values[u] = self.start_of_mask(u, u.src[0]) if is_mask(u) else self.start_value(u.src[0])
      elif op is Ops.ASSIGN_ACC:
        self.values[u.src[0]] = self.assigned_mask(*u.src) if is_mask(u.src[0]) else self.value(u.src[1])
      elif op is Ops.LOAD:
        if u not in self.swallowed and u in self.users: self.load(u)
      elif op in _LAZY or u not in self.users or u in self.spread or u in self.swallowed: continue
      elif is_constant_vector(u) or self._only_addresses(u): continue
      else: self.values[u] = self.compute(u)
    self.origin = None
    if any(u.tag == NON_TEMPORAL for u in self.program.uops): self.emit("sfence")    # before the kernel's end is seen
    self.emit("vzeroupper")
    self.emit("ret")
    self.function.blocks = self.order
    return self.function

  def _only_addresses(self, u: UOp) -> bool:
    """Whether u is a sum with constants that only addresses use.

    Then the constants become displacements of these addresses. For the indices of a scatter this is done for each lane.
    """
    if u.op is Ops.BROADCAST: return all(user.op is Ops.ADD and self._only_addresses(user) for user in self.users[u])
    if u.op is not Ops.ADD: return False
    if u.dtype.count > 1:
      return places_of(u) is not None and all(x.op is Ops.INDEX and all(s.op is Ops.STORE for s in self.users[x])
                                              for x in self.users[u])
    return u.src[1].op is Ops.CONST and all(
      user.op is Ops.INDEX and user.src[1] is u and user.src[0] is not u or user.op is Ops.BROADCAST
      and self._only_addresses(user)
      for user in self.users[u])

  def compute(self, u: UOp) -> Reg:
    if u.op in (Ops.CAST, Ops.BITCAST): return self.cast(u)
    if u.dtype.count > 1 or u.op is Ops.GEP: return self.vector(u)
    return self.scalar(u)

_CHOOSERS = frozenset({Ops.WHERE, Ops.IF, Ops.STORE})
_FENCES = frozenset({Ops.STORE, Ops.RANGE, Ops.END, Ops.IF, Ops.ENDIF, Ops.BARRIER})
_DEFINES = frozenset({Ops.PARAM, Ops.DEFINE_VAR, Ops.DEFINE_LOCAL})
_CONTROL = frozenset({Ops.IF, Ops.ENDIF, Ops.RANGE, Ops.END})
_LAZY = frozenset({Ops.CONST, Ops.INDEX, Ops.BARRIER, Ops.NOOP, Ops.SINK})
_SWALLOWERS = GroupOp.ALU | {Ops.BROADCAST, Ops.SHUFFLE}
_SPREADERS = frozenset({Ops.ADD, Ops.SUB, Ops.MUL, Ops.FDIV, Ops.MAX, Ops.MULACC, Ops.DOT2, Ops.AND, Ops.OR,
                         Ops.XOR})

class LaneSelector(LaneMasks, Selector):
  """Selection for AVX2."""

class EvexSelector(EvexMasks, Selector):
  """Selection for AVX-512."""

class VnniSelector(EvexSelector):
  """Selection for AVX-512 with products of bytes."""
  has_byte_products = True

# with AVX512-BF16, DOT2 is an operation like others: its rule is used where capabilities.py lists it
LEVELS: dict[str, type[Selector]] = {"x86_64:avx2": LaneSelector, "x86_64:avx512": EvexSelector,
                                     "x86_64:avx512vnni": VnniSelector, "x86_64:avx512bf16": VnniSelector,
                                     "x86_64:amx": VnniSelector}

def selector_of(arch: str, program: Program) -> type[Selector]:
  """The class that selects a program for a level."""
  if arch != "x86_64:amx" or all(u.op is not Ops.MMA for u in program.uops): return LEVELS[arch]
  from tinyhw.isa.x86.select.tile import TileSelector  # 0.3 ms to load, for products in tiles only
  return TileSelector

def place_of(u: UOp) -> UOp:
  """The INDEX of a load, or of a load whose bits are taken."""
  return u.src[0] if u.op is Ops.LOAD else u.src[0].src[0]

def is_mask(u: UOp) -> bool: return u.dtype.count > 1 and u.dtype.scalar() is dtypes.bool

def wrapped(value: int, bits: int) -> int:
  """value as a signed number of `bits` bits."""
  return ((value + (1 << (bits - 1))) & ((1 << bits) - 1)) - (1 << (bits - 1))

def select(program: Program, target: Target) -> Function:
  """Select instructions over virtual registers for a program. Raises CompileError if this target does not support
  it."""
  return selector_of(target.name, program)(program, target).run()
