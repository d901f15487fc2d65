"""Select RISC-V instructions over virtual registers for a Program: operations, addresses, memory, control.

Rules in assembly have the arithmetic and comparisons (rules.py); cast.py has conversions, vector.py vectors. The walk
over the program is that of machine/select/cpu.py. The location of a value depends on its type:

    bool, integers, and codes of float16,      an integer register, extended to 64 bits: codes and types without a sign
    bfloat16 and fp8                           with zeros, others with their sign, uint32 with its bit 31
    float32, float64                           a float register
    vectors                                    a vector register; those of bool a bit for each element

The kernel's ABI is in docs/design/devices.md: a0 has the address of the arguments, a1 and a2 the first work item and
the end, a3 scratch memory.
"""
from __future__ import annotations
from typing import TYPE_CHECKING, Any

from tinyhw.dtype import DType, dtypes
from tinyhw.isa.riscv64.select.vector import Vectors, state_of
from tinyhw.machine.ir.inst import Block, Function, Reg
from tinyhw.machine.select.rules import FLOATS, family
from tinyhw.machine.select.selection import gate_of
from tinyhw.uop.enums import GroupOp, Ops
from tinyhw.uop.ops import UOp
if TYPE_CHECKING:
  from tinyhw.machine.ir.target import Target
  from tinyhw.uop.program import Program

# loads by the size of a scalar: of signed integers and all of 32 bits, of others; stores
LOADS = {1: ("lb x", "lbu x"), 2: ("lh x", "lhu x"), 4: ("lw x", "lw x"), 8: ("ld x", "ld x")}
STORES = {1: "sb", 2: "sh", 4: "sw", 8: "sd"}
FLOAT_LOADS, FLOAT_STORES = {4: "flw f", 8: "fld f"}, {4: "fsw f", 8: "fsd f"}
# operations whose result may have bits above those of a narrow type
GROWING = frozenset({Ops.ADD, Ops.SUB, Ops.MUL, Ops.NEG, Ops.SHL})
# the branches that are taken if a comparison is false, by operation and family
BRANCHES = {Ops.CMPLT: {"sint": "bge", "uint": "bgeu"}, Ops.CMPEQ: dict.fromkeys(("sint", "uint"), "bne"),
            Ops.CMPNE: dict.fromkeys(("sint", "uint"), "beq")}
MOST_OFFSETS = 1 << 32   # bytes of a buffer that offsets of 32 bits reach

class Selector(Vectors):
  """The state of one selection; `select` at the end of this file uses it."""

  def compute(self, u: UOp) -> Reg:
    if u.dtype.count > 1: return self.compute_lanes(u)
    if u.op in (Ops.CAST, Ops.BITCAST): return self.cast(u)
    if u.op is Ops.WHERE: return self.chosen(u.dtype, *(self.value(s) for s in u.src))
    if u.op in GroupOp.Comparison: return self.by_rule(u, self.rules, u.src[0].dtype)
    made = self.by_rule(u, self.rules)
    return self.normal(u.dtype, made) if u.op in GROWING else made

  def takes_comparison(self, u: UOp, user: UOp) -> bool:
    """A branch compares integers by itself."""
    if u.src[0].dtype in FLOATS: return False
    if user.op is Ops.IF: return True
    return user.op is Ops.STORE and len(user.src) > 2 and user.src[2] is u and user.src[1] is not u

  def define(self, u: UOp) -> Reg:
    """PARAM and DEFINE_VAR: a slot of 8 bytes of the arguments."""
    name = "ld" if u.op is Ops.PARAM or u.dtype.itemsize == 8 else "lw"
    return self.code(f"{name} x%d, {self.slots[u]}(x%a)", a=self.arguments)

  # ***** addresses *****

  def offset(self, base: Reg, number: int) -> Reg:
    """base + number."""
    if -2048 <= number < 2048: return self.code(f"addi x%d, x%a, {number}", a=base)
    return self.code("add x%d, x%a, x%b", a=base, b=self.constant(dtypes.int64, number))

  def address(self, index: UOp) -> tuple[str, dict[str, Any]]:
    """The address of an INDEX in the text of an access, and its register."""
    buffer, (more, rest) = index.src[0], self.split(index)
    base = self.values[buffer]
    if rest is not None:
      i = self.value(rest)
      def make() -> Reg: return self.element_address(self.values[buffer], rest, i, buffer.dtype.itemsize)
      base = self.shared(("address", buffer, rest, i), make)
    if -2048 <= more < 2048: return f"{more}(x%p)", {"p": base}
    return "0(x%p)", {"p": self.offset(base, more)}

  def element_address(self, base: Reg, index: UOp, i: Reg, size: int) -> Reg:
    """base + index * size."""
    log = size.bit_length() - 1
    if index.dtype is dtypes.uint32 and index.vmax >= 1 << 31: i = self.extended(index.dtype, i)
    if not log: return self.code("add x%d, x%a, x%i", a=base, i=i)
    if self.short: return self.code(f"sh{log}add x%d, x%i, x%a", a=base, i=i)
    return self.code(f"slli x%t, x%i, {log}; add x%d, x%a, x%t", a=base, i=i)

  # ***** memory *****

  def load(self, u: UOp) -> Reg:
    if u.src[0].src[1].dtype.count > 1: return self.gather(u)
    if len(u.src) > 1 and u.src[1].dtype.count > 1: return self.masked_load(u, self.place(u.src[0]))
    if len(u.src) == 1:
      if u.dtype.count > 1: return self.load_lanes(u.dtype, self.place(u.src[0]))
      return self.loaded(u.dtype, *self.address(u.src[0]))
    # the address of the arguments is always readable
    gate = self.value(u.src[1])
    place = self.either(gate, self.place(u.src[0]), self.arguments)
    if u.dtype.count > 1:
      return self.blended(u.dtype, gate, self.load_lanes(u.dtype, place), self.value(u.src[2]), True)
    return self.chosen(u.dtype, gate, self.loaded(u.dtype, "0(x%p)", {"p": place}), self.value(u.src[2]))

  def gather(self, u: UOp) -> Reg:
    """A load of an element for each index. Offsets are as wide as elements, so that all vectors are one register. Those
    of 32 bits do not reach all of a larger buffer, which is read element by element."""
    (buffer, lanes), dtype, size = u.src[0].src, u.dtype, u.dtype.scalar().itemsize
    if size == 4 and buffer.arg[1] * size > MOST_OFFSETS: return self.gather_each(u)
    words, state = dtypes.int32 if size == 4 else dtypes.int64, state_of(dtype)
    i = self.resized_lanes(lanes.dtype.scalar(), words, dtype.count, self.value(lanes))
    at = self.vector(state, f"vsll.vi v%d, v%a, {size.bit_length() - 1}", a=i)
    text, base = f"vluxei{8 * size}.v v%d{{}}, (x%p), v%i", self.values[buffer]
    if len(u.src) == 1: return self.vector(state, text.format(""), p=base, i=at)
    return self.vector(state, text.format(":b") + ", v0.t", p=base, i=at, m=self.value(u.src[1]),
                       b=self.value(u.src[2]))

  def gather_each(self, u: UOp) -> Reg:
    """A gather as scalar loads. The arguments are read where the gate is false."""
    (buffer, lanes), dtype, scalar = u.src[0].src, u.dtype, u.dtype.scalar()
    made: Reg | None = None
    for k in range(dtype.count):
      i = self.element(lanes.dtype.scalar(), lanes, k)
      place = self.element_address(self.values[buffer], lanes, i, scalar.itemsize)
      if len(u.src) > 1: place = self.either(self.element(dtypes.bool, u.src[1], k), place, self.arguments)
      found, letter = self.loaded(scalar, "0(x%p)", {"p": place}), "f" if scalar in FLOATS else "x"
      if made is None: text = "vfmv.v.f v%d, f%b" if letter == "f" else "vmv.v.x v%d, x%b"
      else: text = "vfslide1down.vf v%d, v%a, f%b" if letter == "f" else "vslide1down.vx v%d, v%a, x%b"
      made = self.vector(state_of(dtype), text, b=found, **({} if made is None else {"a": made}))
    assert made is not None, "a vector has elements"
    return made if len(u.src) == 1 else self.blended(dtype, self.value(u.src[1]), made, self.value(u.src[2]))

  def place(self, index: UOp) -> Reg:
    """The address of an INDEX in a register."""
    text, registers = self.address(index)
    number = int(text.partition("(")[0])
    return self.offset(registers["p"], number) if number else registers["p"]

  def loaded(self, dtype: DType, text: str, registers: dict[str, Any]) -> Reg:
    name = FLOAT_LOADS[dtype.itemsize] if dtype in FLOATS else LOADS[dtype.itemsize][dtype not in dtypes.sints]
    return self.code(f"{name}%d, {text}", **registers)

  def store(self, u: UOp) -> None:
    gate = gate_of(u)
    if gate is None or gate.dtype.count == 1: return super().store(u)
    self.store_lanes(u.src[1], self.place(u.src[0]), gate)

  def stored(self, index: UOp, value: UOp) -> None:
    dtype = value.dtype
    if dtype.count > 1: return self.store_lanes(value, self.place(index))
    text, registers = self.address(index)
    if dtype in FLOATS: return self.emit(f"{FLOAT_STORES[dtype.itemsize]}%s, {text}", s=self.value(value), **registers)
    name = STORES[dtype.itemsize]
    if value.op is Ops.CONST and not value.arg: return self.emit(f"{name} zero, {text}", **registers)
    self.emit(f"{name} x%s, {text}", s=self.value(value), **registers)

  # ***** control *****

  def branch(self, block: Block, values: list[Reg]) -> None: self.put("j .%t", {"t": block}, (values,))

  def branch_if(self, predicate: str, dtype: DType, a: Any, b: Any, block: Block, values: list[Reg]) -> None:
    if b == 0 and isinstance(b, int): return self.put("blez x%a, .%t", {"a": a, "t": block}, (values,))
    text = "blt x%a, x%b, .%t" if predicate == "lt" else "bge x%b, x%a, .%t"
    self.put(text, {"a": a, "b": b, "t": block}, (values,))

  def branch_unless(self, condition: UOp, block: Block) -> None:
    if condition not in self.flags: return self.put("beqz x%a, .%t", {"a": self.value(condition), "t": block}, ([],))
    a, b = condition.src
    name = BRANCHES[condition.op][family(a.dtype)]
    self.put(f"{name} x%a, x%b, .%t", {"a": self.value(a), "b": self.value(b), "t": block}, ([],))

  def counter(self, dtype: DType) -> Reg: return self.code("li x%d, 0")
  def count(self, counter: Reg) -> Reg: return self.code("addi x%d, x%a, 1", a=counter)
  def variable_value(self, variable: UOp, u: UOp) -> Reg: return self.value(u)

def select(program: Program, target: Target) -> Function:
  """Select instructions over virtual registers for a program.

  Raises CompileError if this target does not support it.
  """
  return Selector(program, target).select(program)
