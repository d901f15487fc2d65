"""Selection for CPUs whose rules are rows of assembly (rules.py): values, constants, rules, memory, control.

An ISA's selector derives from `CpuSelection`, and defines its registers, its constants, addresses, accesses, branches,
conversions and comparisons. Blocks, loops and variables are those of machine/ir/structure.py and selection.py. The
kernel's ABI is in docs/design/devices.md: the first four arguments are the address of the arguments, the first work
item and the end, and scratch memory.
"""
from __future__ import annotations
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar

from tinyhw.arithmetic import to_bytes
from tinyhw.data_class import replace
from tinyhw.dtype import DType, dtypes
from tinyhw.errors import CompileError
from tinyhw.machine.ir.inst import Effect, Function, Inst, Reg, RegClass
from tinyhw.machine.ir.structure import assigned_variables
from tinyhw.machine.select.lines import CodeLine
from tinyhw.machine.select.rules import FLOATS, Rules, SelectionRule
from tinyhw.machine.select.selection import Selection, constant_part, gate_of
from tinyhw.threads import once
from tinyhw.uop.enums import AxisType, GroupOp, Ops
from tinyhw.uop.ops import UOp
if TYPE_CHECKING:
  from tinyhw.machine.ir.target import Target
  from tinyhw.uop.program import Program

FEW = 16  # constants that stay in registers through the grid's loop

@once
def repeated_row(row: Inst) -> Inst:
  """The row as one that is cheaper to repeat than to spill."""
  return replace(row, effects=Effect.NONE, rematerialize=True)

class CpuSelection(Selection):
  """The state of one selection.

  Of the ISA:

  - isa: its name in errors.
  - general: the class of registers of integers and addresses; parameters: the numbers of the first four arguments.
  - most_end: the end of a loop below which branch_if takes it as a number.

  Of the program:

  - users: of each node; flags: comparisons that their users compute; spread: broadcasts that their users make or read
    as an element; slots: offsets of the arguments; local_offset: of arrays in the scratch memory.
  - nested: there are loops inside of the grid's.
  """
  isa: ClassVar[str]
  general: ClassVar[RegClass]
  parameters: ClassVar[tuple[int, ...]]
  most_end: ClassVar[int] = 0

  def __init__(self, program: Program, target: Target):
    super().__init__(Function(program.name))
    self.program, self.target = program, target
    self.users: dict[UOp, list[UOp]] = {}
    self.spread: set[UOp] = set()
    self.flags: set[UOp] = set()
    self.nested = sum(u.op is Ops.RANGE for u in program.uops) > 1
    self.slots = {u: 8 * k for k, u in enumerate([*program.params, *program.variables])}
    self.local_offset: dict[UOp, int] = {}
    self.enter(self.function.new_block(name="entry"))
    self.block.params = [self.new(self.general) for _ in range(4)]
    self.function.fixed_params = dict(enumerate(self.parameters))
    self.arguments, self.first, self.last, self.scratch = self.block.params
    self.analyse()

  def analyse(self) -> None:
    """Find the users of each value, what they include, and the places of arrays."""
    local = 0
    for u in self.program.uops:
      for s in u.src: self.users.setdefault(s, []).append(u)
      if u.op is Ops.DEFINE_LOCAL:
        self.local_offset[u] = local
        local += (u.arg[1] * u.dtype.itemsize + 63) // 64 * 64
    self.function.local_bytes = local
    for u, users in self.users.items():
      if u.op in GroupOp.Comparison and u.dtype.count == 1 and all(s.op is not Ops.ACC for s in u.src):
        if all(self.takes_comparison(u, user) for user in users): self.flags.add(u)
      else: self.include(u, users)

  def select(self, program: Program) -> Function:
    self.assigned = assigned_variables(program.uops)
    for u in program.uops:
      self.origin = u
      if u.op in _STATEMENTS: _STATEMENTS[u.op](self, u)
      elif u.op in _LAZY or u not in self.users or u in self.spread or u in self.flags: continue
      elif is_constant_vector(u) or u.op is Ops.ADD and self.only_addresses(u): continue
      else: self.values[u] = _VALUES[u.op](self, u) if u.op in _VALUES else self.compute(u)
    self.origin = None
    self.emit("ret")
    self.function.blocks = self.order
    return self.function

  # ***** emitting *****

  def put(self, text: str, values: dict[str, Any], arguments: tuple[list[Reg], ...] = ()) -> None:
    """Emit a line. Registers that it only writes, and that have no value yet, are new."""
    parsed = self.line(text)
    for name, cls in parsed.classes.items():
      if name not in values: values[name] = self.new(cls)
    self.block.insts.append(parsed.made(values, self.origin, arguments))

  def code(self, text: str, **values: Any) -> Reg:
    """Emit lines separated by ";", and return their %d."""
    for one in text.split("; "): self.put(one, values)
    result: Reg = values["d"]
    return result

  def emit(self, text: str, **values: Any) -> None:
    for one in text.split("; "): self.put(one, values)

  # ***** constants *****

  def once(self, key: tuple[Any, ...], make: Callable[[], Reg]) -> Reg:
    """The register that `make` emits before the outermost loop inside of the grid's. If the grid's loop has none
    inside, before that, as long as constants leave half of the registers free. Else here, once in a block."""
    few = bool(self.loops) and not self.nested and len(self.loops[0].made) < FEW
    if len(self.loops) > 1 or few:
      loop = self.loops[0 if few else 1]
      found = loop.made.get(key)
      if found is None: found = loop.made[key] = self.before(loop, make)
      return found
    found = self.made.get(key)
    if found is None: found = self.made[key] = make()
    return found

  def constant(self, dtype: DType, value: Any) -> Reg:
    """A constant in a register; the same value in all lanes of a vector."""
    return self.once((dtype, value, str(value)), lambda: self.fresh_constant(dtype, value))

  def fresh_constant(self, dtype: DType, value: Any) -> Reg:
    """Emit a constant. Of an ISA."""
    raise NotImplementedError

  def repeatable(self, text: str) -> Reg:
    """Emit a line without sources, which may be repeated instead of spilled."""
    parsed = self.line(text)
    made = self.new(parsed.classes["d"])
    inst = parsed.made({"d": made}, self.origin)
    inst.row = repeated_row(inst.row)
    self.block.insts.append(inst)
    return made

  def shared(self, key: tuple[Any, ...], make: Callable[[], Reg]) -> Reg:
    """The register that `make` emits, once in a block."""
    found = self.made.get(key)
    if found is None: found = self.made[key] = make()
    return found

  # ***** rules *****

  def by_rule(self, u: UOp, rules: Rules, dtype: DType | None = None) -> Reg:
    """Emit the lines of the first rule that applies. dtype: of the rule, if it is not that of the result."""
    dtype = dtype or u.dtype
    for rule in rules.get((u.op, dtype.scalar()), ()):
      for sources in self.orders(u, rule):
        values, numbers = self.operands(u, rule.condition, sources)
        if values is None: continue
        result: dict[str, Any] = values
        for text in rule.lines: self.put(self.spelled(text, dtype, numbers), result)
        made: Reg = result["d"]
        return made
    return self.without_rule(u)

  def without_rule(self, u: UOp) -> Reg:
    """An operation to which no rule applies."""
    raise self.missing(u, u.dtype)

  def orders(self, u: UOp, rule: SelectionRule) -> Iterator[list[UOp]]:
    """The sources in the orders in which a rule may take them."""
    yield list(u.src)

  def operands(self, u: UOp, condition: str, sources: list[UOp]) -> tuple[dict[str, Any] | None, dict[str, int]]:
    """The registers of a rule's sources and the numbers in its lines. None if the condition does not hold."""
    numbers = numbers_of(u.dtype)
    if not condition: return {name: self.value(s) for name, s in zip("abc", sources)}, numbers
    if sources[1].op is not Ops.CONST or sources[1].dtype.scalar() in FLOATS: return None, numbers
    size = 8 * u.dtype.scalar().itemsize
    found = self.immediate(condition, int(sources[1].arg), size if u.dtype.count > 1 else numbers["bits"])
    if found is None: return None, numbers
    return {"a": self.value(sources[0])}, {**numbers, "b": found}

  def immediate(self, condition: str, value: int, bits: int) -> int | None:
    """The number in the lines of a rule, if a constant fulfils its condition. Of an ISA."""
    raise NotImplementedError

  def spelled(self, text: str, dtype: DType, numbers: dict[str, int]) -> str:
    """A line for a type. Of an ISA."""
    raise NotImplementedError

  def missing(self, u: UOp, dtype: DType) -> CompileError:
    return CompileError(f"{self.program.name}: {self.isa} has no {u.op.name} of {dtype}; decompose it before selection")

  def refuse(self, source: DType, target: DType) -> CompileError:
    return CompileError(f"{self.program.name}: {self.isa} does not convert {source} to {target}; decompose it before "
                        f"selection")

  # ***** values *****

  def value(self, u: UOp) -> Reg:
    if u.op is Ops.CONST: return self.constant(u.dtype, u.arg)
    if is_constant_vector(u): return self.constant_lanes(u)
    if u in self.spread: return self.shared(("broadcast", u), lambda: self.broadcast(u))
    found = self.values.get(u)
    if found is None:
      raise CompileError(f"{self.function.name}: no value for {u}; its definition does not come before its use")
    return found

  def only_addresses(self, u: UOp) -> bool:
    """Whether a sum with a constant is only an index: the constant becomes an offset."""
    return u.dtype.count == 1 and u.src[1].op is Ops.CONST and all(
      user.op is Ops.INDEX and user.src[1] is u and user.src[0] is not u for user in self.users[u])

  def local(self, u: UOp) -> Reg:
    """DEFINE_LOCAL: an array in the scratch memory."""
    offset = self.local_offset[u]
    return self.offset(self.scratch, offset) if offset else self.scratch

  def variable(self, u: UOp) -> Reg:
    """ACC.

    A constant is made here, so that it is not live through the loop, and never in a register of the hardware.
    """
    start = u.src[0]
    if is_mask(u) or start.op is not Ops.CONST: return self.variable_value(u, start)
    return self.fresh_constant(start.dtype, start.arg)

  def gep(self, u: UOp) -> Reg: return self.pick(u) if u.dtype.count == 1 else self.part_of(u)

  # ***** memory *****

  def split(self, index: UOp) -> tuple[int, UOp | None]:
    """An INDEX as bytes that are constant, and the rest in elements."""
    i, size = index.src[1], index.src[0].dtype.itemsize
    more, rest = constant_part(i) if i not in self.values or i.op is Ops.CONST else (0, i)
    return more * size, rest

  def store(self, u: UOp) -> None:
    gate = gate_of(u)
    if gate is None: return self.stored(u.src[0], u.src[1])
    after = self.function.new_block(self.block.depth, "after")
    self.branch_unless(gate, after)
    inside = self.function.new_block(self.block.depth, "then")
    self.branch(inside, [])
    self.enter(inside)
    self.stored(u.src[0], u.src[1])
    self.branch(after, [])
    self.enter(after)

  # ***** control *****

  def open(self, u: UOp) -> None:
    """A RANGE. The grid's goes from the first work item to the end."""
    self.open_loop(u, self.first if u.arg[1] is AxisType.GLOBAL else None)

  def close(self, u: UOp) -> None:
    opened = u.src[0]
    end = opened.src[0]
    if opened.arg[1] is AxisType.GLOBAL: self.close_loop(opened, self.last)
    else: self.close_loop(opened, end.arg if end.op is Ops.CONST and end.arg < self.most_end else None)

  def assign(self, u: UOp) -> None:
    value = self.variable_value(u.src[0], u.src[1])
    self.values[u.src[0]] = value

  # ***** provided by an ISA *****
  def line(self, text: str) -> CodeLine: raise NotImplementedError
  def stored(self, index: UOp, value: UOp) -> None: raise NotImplementedError
  def offset(self, base: Reg, number: int) -> Reg: raise NotImplementedError
  def broadcast(self, u: UOp) -> Reg: raise NotImplementedError
  def vectorize(self, u: UOp) -> Reg: raise NotImplementedError
  def constant_lanes(self, u: UOp) -> Reg: raise NotImplementedError

  def takes_comparison(self, u: UOp, user: UOp) -> bool:
    """Whether a user computes a scalar comparison by itself."""
    return is_condition(u, user)

  def include(self, u: UOp, users: list[UOp]) -> None:
    """Note that the users of a value include it, or where it is."""

def numbers_of(dtype: DType) -> dict[str, int]:
  """The numbers in lines for a type: bits of a register that holds it, and the number of the last one."""
  bits = max(8 * dtype.scalar().itemsize, 32)
  return {"bits": bits, "last": bits - 1}

def is_mask(u: UOp) -> bool: return u.dtype.count > 1 and u.dtype.scalar() is dtypes.bool

def is_constant_vector(u: UOp) -> bool:
  return u.op is Ops.VECTORIZE and not is_mask(u) and all(s.op is Ops.CONST for s in u.src)

def is_condition(u: UOp, user: UOp) -> bool:
  """Whether a user reads a scalar bool only as a condition."""
  if user.op is Ops.WHERE: return user.src[0] is u and u not in user.src[1:] and user.dtype is not dtypes.bool
  if user.op is Ops.IF: return True
  return user.op is Ops.STORE and len(user.src) > 2 and user.src[2] is u and user.src[1] is not u

def access_bytes(dtype: DType) -> int:
  """Bytes in memory. A bool is a byte."""
  return dtype.count if dtype.scalar() is dtypes.bool else dtype.itemsize

def integer_bits(dtype: DType, value: Any) -> int:
  """The bits of a constant of at most 64 bits, extended with its sign if the type has one."""
  return int.from_bytes(to_bytes(value, dtype), "little", signed=dtype in dtypes.sints)

_LAZY = frozenset({Ops.CONST, Ops.INDEX, Ops.BARRIER, Ops.NOOP, Ops.SINK})
_VALUES: dict[Ops, Callable[[CpuSelection, UOp], Reg]] = {
  Ops.PARAM: lambda s, u: s.define(u), Ops.DEFINE_VAR: lambda s, u: s.define(u), Ops.DEFINE_LOCAL: CpuSelection.local,
  Ops.LOAD: lambda s, u: s.load(u), Ops.ACC: CpuSelection.variable, Ops.BROADCAST: lambda s, u: s.broadcast(u),
  Ops.VECTORIZE: lambda s, u: s.vectorize(u), Ops.GEP: CpuSelection.gep}
_STATEMENTS: dict[Ops, Callable[[CpuSelection, UOp], None]] = {
  Ops.RANGE: CpuSelection.open, Ops.END: CpuSelection.close, Ops.IF: CpuSelection.condition,
  Ops.ENDIF: CpuSelection.end_condition, Ops.ASSIGN_ACC: CpuSelection.assign, Ops.STORE: lambda s, u: s.store(u)}
