"""Instruction selection: from a Program to the toy's instructions over virtual registers. The table RULES has one
function for each operation.

A value that is the same in all lanes of a workgroup is in scalar registers, any other in vector registers. Bools are in
predicates. Variables become block parameters of the loops that assign them, so the result is in SSA form. Floats
narrower than 32 bits are held as their codes.
"""
from __future__ import annotations
import itertools
from collections.abc import Callable
from typing import Any

from tinyhw.arithmetic import to_bytes
from tinyhw.dtype import DType, dtypes
from tinyhw.errors import CompileError
from tinyhw.machine.ir.inst import Block, Function, MInst, Reg, RegClass
from tinyhw.uop.enums import AxisType, GroupOp, Ops
from tinyhw.uop.ops import UOp
from tinyhw.uop.program import Program
from examples.toy_accelerator.table import ALWAYS, P1, S1, S2, SUFFIX, TABLE, V1, V2, V4

def suffix(dtype: DType) -> str:
  """Return the table's name of the number type that a value of this type has in registers and memory."""
  return "." + SUFFIX.get(dtype, "u16" if dtype.itemsize == 2 else "u8")

CONSTANTS = {S1: "s_const.u32", S2: "s_const.i64", V1: "v_const.u32", V2: "v_const.i64", P1: "s_const.b"}

class Selector:
  """One selection. varying: values that differ between lanes. made: values of this block that are shared: constants,
  vectors of scalars."""
  def __init__(self, program: Program):
    self.program, self.function = program, Function(program.name)
    self.origin: UOp | None = None
    self.order: list[Block] = []
    self.values: dict[UOp, Reg] = {}
    self.loops: dict[UOp, tuple[Block, Block, list[UOp]]] = {}
    self.enter(self.function.new_block(name="entry"))
    self.arguments, self.group, self.lane = self.block.params = [self.function.new_reg(c) for c in (S2, S1, V1)]
    self.function.fixed_params = {0: 0, 1: 2, 2: 0}  # where the hardware puts them
    self.varying: set[UOp] = set()
    for u in program.uops:
      lanes = u.op is Ops.RANGE and u.arg[1] is AxisType.LOCAL or u.op is Ops.ACC and program.lanes > 1
      if lanes or not self.varying.isdisjoint(u.src): self.varying.add(u)

  def enter(self, block: Block) -> None:
    """Continue in another block."""
    self.block, self.made = block, {}  # type: Block, dict[Any, Reg]
    self.order.append(block)

  def emit(self, key: str, *operands: Any, ties: tuple[Reg, ...] = (), arguments: tuple[list[Reg], ...] = ()) -> None:
    self.block.insts.append(MInst(TABLE[key], list(operands), self.origin, arguments, "", ties))
  def op(self, cls: RegClass, key: str, *sources: Any, old: Reg | None = None) -> Reg:
    """Add an instruction that writes its first operand. `old`: the value that it reads there too."""
    dst = self.function.new_reg(cls)
    self.emit(key, dst, *sources, ties=() if old is None else (old,))
    return dst
  def once(self, cls: RegClass, key: str, *sources: Any) -> Reg:
    """Add an instruction as `op` does, once in a block."""
    name = (key, *sources)
    if name not in self.made: self.made[name] = self.op(cls, key, *sources)
    return self.made[name]
  def cls(self, u: UOp, vector: bool = False) -> RegClass:
    """Return the register class of u. With `vector`, return that of a copy of u for each lane."""
    if u.dtype.count > 1 or u.dtype is dtypes.bool: return P1 if u.dtype.count == 1 else V4
    if vector or u in self.varying: return V2 if u.dtype.itemsize == 8 else V1
    return S2 if u.dtype.itemsize == 8 else S1

  def number(self, value: int, cls: RegClass = S1) -> Reg: return self.once(cls, CONSTANTS[cls], value)
  def value(self, u: UOp, vector: bool = False) -> Reg:
    """Return the register of u. With `vector`, it is a vector register even if u is the same in all lanes."""
    cls = self.cls(u, vector)
    if u.op is Ops.CONST:
      scalar = u.dtype.scalar()  # 8 and 16 bits are sign-extended
      bits = int.from_bytes(to_bytes(u.arg, scalar), "little", signed=scalar.itemsize > 2 or scalar in dtypes.sints)
      return self.number(bits, cls) if cls is not V4 else self.op(V4, "quad", *[self.number(bits, V1)] * 4)
    found = self.values[u]
    return found if found.cls is cls else self.once(cls, "spread" if cls is V1 else "spread_pair", found)

  def compute(self, u: UOp) -> Reg:
    """Select an elementwise operation: the table's row of that name. The bank is VECTOR if an operand varies."""
    vector, kind = u in self.varying, suffix(u.src[0].dtype if u.op in GroupOp.Comparison else u.dtype)
    sources = [self.value(s, vector) for s in u.src]
    if u.op is Ops.BITCAST and u.dtype.itemsize > 2: return sources[0]
    if u.op is Ops.CAST or u.op is Ops.BITCAST:
      return self.op(self.cls(u), f"{'sv'[vector]}_cast{kind}{suffix(u.src[0].dtype)}", *sources)
    old = sources.pop() if u.op is Ops.WHERE else None
    return self.op(self.cls(u), f"{'sv'[vector]}_{u.op.name.lower()}{kind}", *sources, old=old)

  def place(self, index: UOp, vector: bool) -> tuple[str, list[Any]]:
    """Return, for an INDEX, the beginning of the row's name, and the operands of the address."""
    (buffer, i), bank = index.src, "sv"[vector] + "_"
    number = self.value(i, vector)
    if i.dtype.itemsize == 8: number = self.op(V1 if vector else S1, f"{bank}cast.i32.i64", number)
    if buffer.op is Ops.DEFINE_LOCAL: return bank + "local_", [number, self.program.local_offsets[buffer]]
    return bank, [self.values[buffer], number, 0]

  def load(self, u: UOp) -> Reg:
    start, address = self.place(u.src[0], u in self.varying)
    if len(u.src) == 1: return self.op(self.cls(u), f"{start}load{suffix(u.dtype)}", *address)
    return self.op(self.cls(u), f"{start}load_if{suffix(u.dtype)}", self.value(u.src[1]), *address,
                   old=self.value(u.src[2], u in self.varying))

  def store(self, u: UOp) -> None:
    start, address = self.place(u.src[0], True)
    gate = self.value(u.src[2]) if len(u.src) > 2 else ALWAYS
    self.emit(start + "store" + suffix(u.src[1].dtype), gate, *address, self.value(u.src[1], True))

  def argument(self, u: UOp) -> Reg:
    """Select PARAM or DEFINE_VAR: a slot of 8 bytes."""
    slot = [*self.program.params, *self.program.variables].index(u)
    cls, kind = (S2, "i64") if u.op is Ops.PARAM or u.dtype.itemsize == 8 else (S1, "i32")
    return self.op(cls, f"s_load.{kind}", self.arguments, self.number(0), 8 * slot)

  def open(self, u: UOp) -> Reg:
    """Open a loop, which is tested at its head. The hardware runs the grid and the lanes."""
    if u.arg[1] in (AxisType.GLOBAL, AxisType.LOCAL): return self.group if u.arg[1] is AxisType.GLOBAL else self.lane
    rest = self.program.uops[self.program.uops.index(u):]
    inside = itertools.takewhile(lambda x: x.op is not Ops.END or x.src[0] is not u, rest)
    variables = list(dict.fromkeys(x.src[0] for x in inside if x.op is Ops.ASSIGN_ACC and x.src[0] in self.values))
    start = [self.number(0, self.cls(u)), *[self.values[a] for a in variables]]
    head, body, after = (self.function.new_block(self.block.depth + more, name)
                         for more, name in ((1, "loop"), (1, "body"), (0, "after")))
    self.emit("jump", head, arguments=(start,))
    self.enter(head)
    head.params = [self.function.new_reg(r.cls) for r in start]
    self.values.update(zip(variables, head.params[1:]))
    self.emit("jump_if", self.op(P1, f"s_cmplt{suffix(u.dtype)}", head.params[0], self.value(u.src[0])), body,
              arguments=([],))
    self.emit("jump", after, arguments=([],))
    self.enter(body)
    self.loops[u] = head, after, variables
    return head.params[0]

  def close(self, u: UOp) -> None:
    if u.src[0] not in self.loops: return
    head, after, variables = self.loops[u.src[0]]
    cls = head.params[0].cls
    following = self.op(cls, f"s_add{suffix(u.src[0].dtype)}", head.params[0], self.number(1, cls))
    self.emit("jump", head, arguments=([following, *[self.values[a] for a in variables]],))
    self.values.update(zip(variables, head.params[1:]))
    self.enter(after)

  def run(self) -> Function:
    """Return the program as instructions over virtual registers. Raises CompileError for operations that the toy does
    not support."""
    for u in self.program.uops:
      self.origin = u
      rule = Selector.compute if u.op in GroupOp.Elementwise else RULES.get(u.op)
      if rule is None: raise CompileError(f"{self.program.name}: the toy accelerator has no {u.op.name}")
      result = rule(self, u)
      if result is not None: self.values[u] = result
    self.emit("end")
    self.function.blocks = self.order
    return self.function

RULES: dict[Ops, Callable[[Selector, UOp], Reg | None]] = {
  **dict.fromkeys((Ops.CONST, Ops.INDEX, Ops.DEFINE_LOCAL), lambda s, u: None),
  **dict.fromkeys((Ops.PARAM, Ops.DEFINE_VAR), Selector.argument),
  Ops.LOAD: Selector.load, Ops.STORE: Selector.store, Ops.RANGE: Selector.open, Ops.END: Selector.close,
  Ops.ACC: lambda s, u: s.value(u.src[0], u in s.varying), Ops.BARRIER: lambda s, u: s.emit("barrier"),
  Ops.ASSIGN_ACC: lambda s, u: s.values.update({u.src[0]: s.value(u.src[1], u.src[0] in s.varying)}),
  Ops.MMA: lambda s, u: s.op(V4, "mma", s.value(u.src[0]), s.value(u.src[1]), old=s.value(u.src[2])),
  Ops.VECTORIZE: lambda s, u: s.op(V4, "quad", *[s.value(x, True) for x in u.src]),
  Ops.GEP: lambda s, u: s.op(V1, "part", s.value(u.src[0]), u.arg),
}
