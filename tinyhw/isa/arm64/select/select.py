"""Select AArch64 instructions over virtual registers for a Program: values, addresses, memory, control.

Rules in assembly have the arithmetic (rules.py, arithmetic.py); other files have conversions (cast.py), vectors of bool
(mask.py) and lanes (vector.py). The walk over the program is that of machine/select/cpu.py. The location of a value
depends on its type:

    bool, integers up to 64 bits, and codes    a general register; integers are extended to 32 or 64 bits,
    of float16, bfloat16 and fp8               with their sign if they have one; 32 bits have zeros above
    float32, float64                           the low lane of a vector register
    vectors up to 16 bytes                     a vector register, packed from lane 0
    vectors of bool                            lanes of all ones or zeros

The kernel's ABI is in docs/design/devices.md: x0 has the address of the arguments, x1 and x2 the first work item and
the end, x3 scratch memory.
"""
from __future__ import annotations
from typing import TYPE_CHECKING, Any

from tinyhw.dtype import DType, dtypes
from tinyhw.isa.arm64.select.arithmetic import Arithmetic
from tinyhw.isa.arm64.select.dot import orders
from tinyhw.isa.arm64.select.part import scalar
from tinyhw.isa.arm64.select.vector import Vectors
from tinyhw.machine.ir.inst import Block, Function, Reg
from tinyhw.machine.select.cpu import access_bytes, is_mask
from tinyhw.machine.select.rules import FLOATS
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp
if TYPE_CHECKING:
  from tinyhw.machine.ir.target import Target
  from tinyhw.uop.program import Program

# loads and stores by the size of a scalar: of signed integers, of others
LOADS = {1: ("ldrsb w", "ldrb w"), 2: ("ldrsh w", "ldrh w"), 4: ("ldr w", "ldr w"), 8: ("ldr x", "ldr x")}
STORES = {1: "strb w", 2: "strh w", 4: "str w", 8: "str x"}
VECTORS = {2: "h", 4: "s", 8: "d", 16: "q"}

class Selector(Arithmetic, Vectors):
  """The state of one selection; `select` at the end of this file uses it."""

  def include(self, u: UOp, users: list[UOp]) -> None:
    if u.op is Ops.LOAD and u.dtype is dtypes.float16 and len(u.src) == 1:
      if all(user.op is Ops.CAST and user.dtype is not u.dtype for user in users): self.in_vector.add(u)
    elif u.op is Ops.BROADCAST and all(self.takes_element(u, user) for user in users): self.spread_if_loaded(u)

  def takes_element(self, u: UOp, user: UOp) -> bool:
    """Whether a user multiplies by a broadcast as an element of a register."""
    if sum(s is u for s in user.src) != 1: return False
    return any(rule.condition == "b:element" and sources[1] is u
               for rule in self.rules.get((user.op, user.dtype.scalar()), ()) for sources in orders(user, rule))

  def spread_if_loaded(self, u: UOp) -> None:
    """Leave a broadcast to its users, if its scalar is in a vector register: a float, or a word loaded for it alone."""
    source = u.src[0]
    if source.dtype in FLOATS:
      if source.op not in (Ops.CONST, Ops.ACC): self.spread.add(u)
      return
    chain = (source, source.src[0]) if source.op is Ops.BITCAST else (source,)
    if chain[-1].op is not Ops.LOAD or len(chain[-1].src) > 1 or chain[-1].dtype not in dtypes.int32s: return
    if any(len(self.users[s]) > 1 for s in chain): return
    self.spread.add(u)
    self.in_vector.update(chain)

  # ***** the pass *****

  def define(self, u: UOp) -> Reg:
    """PARAM and DEFINE_VAR: a slot of 8 bytes of the arguments."""
    r = "x" if u.op is Ops.PARAM or u.dtype.itemsize == 8 else "w"
    return self.code(f"ldr {r}%d, [x%a, #{self.slots[u]}]", a=self.arguments)

  # ***** addresses *****

  def offset(self, base: Reg, number: int) -> Reg:
    """base + number."""
    if 0 <= number < 4096: return self.code(f"add x%d, x%a, #{number}", a=base)
    if -4096 < number < 0: return self.code(f"sub x%d, x%a, #{-number}", a=base)
    return self.code("add x%d, x%a, x%b", a=base, b=self.constant(dtypes.int64, number))

  def address(self, index: UOp, access: int) -> tuple[str, dict[str, Any]]:
    """The address of an INDEX in the text of an access of so many bytes, and its registers."""
    buffer, (more, rest) = index.src[0], self.split(index)
    size, base = buffer.dtype.itemsize, self.values[buffer]
    if rest is not None:
      text, register = self.scaled(rest, size)
      if not more and (size == access or size == 1) and text.startswith("x"): return f"[x%p, {text}]", {"p": base,
                                                                                                        "i": register}
      if not more and size == access: return f"[x%p, {text}]", {"p": base, "i": register}
      base = self.shared(("address", buffer, rest, register), lambda: self.code(f"add x%d, x%a, {text}", a=base,
                                                                                i=register))
    if not more: return "[x%p]", {"p": base}
    if 0 <= more < 4096 * access and more % access == 0 or -256 <= more < 256: return f"[x%p, #{more}]", {"p": base}
    return "[x%p]", {"p": self.offset(base, more)}

  def place(self, index: UOp) -> Reg:
    """The address of an INDEX in a register."""
    buffer, (more, rest) = index.src[0], self.split(index)
    base = self.values[buffer]
    if rest is not None:
      text, register = self.scaled(rest, buffer.dtype.itemsize)
      base = self.code(f"add x%d, x%a, {text}", a=base, i=register)
    return self.offset(base, more) if more else base

  def scaled(self, i: UOp, size: int) -> tuple[str, Reg]:
    """An index as the second operand of an address: its register, extended to 64 bits and shifted."""
    value, log = self.value(i), size.bit_length() - 1
    if i.dtype.itemsize == 8 or i.vmin >= 0 and log == 0: return f"x%i, lsl #{log}" if log else "x%i", value
    extend = "uxtw" if i.vmin >= 0 else "sxtw"
    return f"w%i, {extend} #{log}" if log else f"w%i, {extend}", value

  # ***** memory *****

  def load(self, u: UOp) -> Reg:
    index, dtype = u.src[0], u.dtype
    if len(u.src) == 1: return self.loaded(u, dtype, *self.address(index, access_bytes(dtype)))
    place = self.place(index)
    test = self.truth(u.src[1])
    # the address of the arguments is always readable
    place = self.code(f"csel x%d, x%a, x%b, {test}", a=place, b=self.arguments)
    value = self.loaded(u, dtype, "[x%p]", {"p": place})
    return self.chosen(u, value, self.value(u.src[2]), u.src[1])

  def loaded(self, u: UOp, dtype: DType, text: str, registers: dict[str, Any]) -> Reg:
    if dtype.count > 1:
      value = self.code(f"ldr {VECTORS[access_bytes(dtype)]}%d, {text}", **registers)
      return self.mask_of(u, dtypes.uint8.vec(dtype.count), value) if is_mask(u) else value
    if dtype in FLOATS or u in self.in_vector:
      return self.code(f"ldr {VECTORS[dtype.itemsize]}%d, {text}", **registers)
    return self.code(f"{LOADS[dtype.itemsize][dtype not in dtypes.sints]}%d, {text}", **registers)

  def stored(self, index: UOp, value: UOp) -> None:
    dtype = value.dtype
    text, registers = self.address(index, access_bytes(dtype))
    if is_mask(value): name, register = f"str {VECTORS[access_bytes(dtype)]}", self.stored_mask(value)
    elif dtype.count > 1: name, register = f"str {VECTORS[access_bytes(dtype)]}", self.value(value)
    elif dtype not in FLOATS and value.op is Ops.CONST and not value.arg:
      return self.emit(f"{STORES[dtype.itemsize]}zr, {text}", **registers)
    else: name, register = f"str {scalar(dtype)}" if dtype in FLOATS else STORES[dtype.itemsize], self.value(value)
    self.emit(f"{name}%s, {text}", s=register, **registers)

  # ***** control *****

  def branch(self, block: Block, values: list[Reg]) -> None: self.put("b .%t", {"t": block}, (values,))

  def branch_if(self, predicate: str, dtype: DType, a: Any, b: Any, block: Block, values: list[Reg]) -> None:
    r = "x" if dtype.itemsize == 8 or b is self.last else "w"
    if isinstance(b, int): self.emit(f"cmp {r}%a, #{b}", a=a)
    else: self.emit(f"cmp {r}%a, {r}%b", a=a, b=b)
    self.put(f"b.{predicate} .%t", {"t": block}, (values,))

  def branch_unless(self, condition: UOp, block: Block) -> None:
    test = self.truth(condition)
    self.put(f"b.{OPPOSITE[test]} .%t", {"t": block}, ([],))

  def counter(self, dtype: DType) -> Reg: return self.code("mov x%d, #0")
  def count(self, counter: Reg) -> Reg: return self.code("add x%d, x%a, #1", a=counter)

OPPOSITE = {"eq": "ne", "ne": "eq", "lt": "ge", "ge": "lt", "lo": "hs", "hs": "lo", "mi": "pl", "pl": "mi", "gt": "le",
            "le": "gt"}

def select(program: Program, target: Target) -> Function:
  """Select instructions over virtual registers for a program.

  Raises CompileError if this target does not support it.
  """
  return Selector(program, target).select(program)
