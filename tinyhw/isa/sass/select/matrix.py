"""Select products on the matrix unit, of groups of registers (select/vector.py)."""
from __future__ import annotations


from tinyhw.errors import CompileError
from tinyhw.isa.sass.select.address import DESCRIPTORS, Addresses
from tinyhw.isa.sass.table import regs
from tinyhw.isa.sass.table.matrix import TF32, VECTOR, Unit, every_unit
from tinyhw.machine.ir.inst import Access, Reg
from tinyhw.machine.ir.structure import element_of
from tinyhw.machine.select.macros import Macro
from tinyhw.threads import once
from tinyhw.uop.enums import Ops
from tinyhw.uop.matrix import LINE_BYTES, LINES
from tinyhw.uop.ops import UOp

UNIT_BYTES = 32                # bytes of the steps that an instruction sums
UNIT_LINES = 16                # steps of an instruction in a transposed swizzle atom of two-byte elements
DESCRIBED_BYTES = 16           # the unit of addresses and offsets in a descriptor
SWIZZLE_128 = 1 << 30          # in the upper half of a descriptor
# the upper half: the distance from eight lines to the next eight
DESCRIPTOR_WORD = SWIZZLE_128 | LINES * LINE_BYTES // DESCRIBED_BYTES

class Matrices(Addresses):
  """The layer of Selector for the matrix unit."""

  def multiply(self, u: UOp) -> Reg:
    """Select MMA. A sum that begins at zero adds to RZ."""
    unit = next((x for x in every_unit(self.generation.name) if x.matrix == u.arg), None)
    if unit is None: raise CompileError(f"{self.function.name}: {self.generation.arch} has no matrix unit for {u.arg}")
    if unit.matrix.shared_operands: return self.multiply_warpgroup(u, unit)
    a, cls = self.group(u.src[0]), self.group_class(u.dtype)
    if unit is VECTOR: return self.multiply_lanes(u, a)
    half = half_of(u.src[1])
    b = self.group(u.src[1] if half is None else half[0])
    if unit is TF32: a, b = self.rounded_to_tf32(a), self.rounded_to_tf32(b)
    if half is not None:
      c, result = self.group(u.src[2]), self.new(cls)
      self.emit(f"{unit.key}_{half[1]}", result, a, b, ties=(c,))
      return result
    start = regs.RZ if u.src[2].op is Ops.CONST and u.src[2].arg == 0 else self.group(u.src[2])
    return self.op(cls, unit.key, a, b, start)

  def rounded_to_tf32(self, factor: Reg) -> Reg:
    """Round a factor to 10 bits of mantissa, once in a block. The unit truncates without rounding."""
    key = "tf32", factor
    if key not in self.made:
      self.made[key] = self.new(factor.cls)
      self.emit(f"round_tf32_{factor.cls.units}", self.made[key], ties=(factor,))
    return self.made[key]

  def multiply_lanes(self, u: UOp, a: Reg) -> Reg:
    """Select products on the FMA pipe, each lane for itself. The second factor is 16 elements, column by column."""
    elements = [element_of(u.src[1], k) if u.src[1].op is Ops.VECTORIZE else UOp(Ops.GEP, u.dtype.scalar(), (u.src[1],),
                                                                                 k) for k in range(16)]
    groups = {"columns": [elements[4 * k:4 * k + 4] for k in range(4)], "steps": [elements[k::4] for k in range(4)]}
    order = "steps" if all(whole_of(group).op is not Ops.VECTORIZE for group in groups["steps"]) else "columns"
    factors = [self.group(whole_of(group)) for group in groups[order]]
    c, result = self.group(u.src[2]), self.new(self.group_class(u.dtype))
    self.emit(f"product_f32_{order}", result, a, *factors, ties=(c,))
    return result

  def multiply_warpgroup(self, u: UOp, unit: Unit) -> Reg:
    """Select a product of four warps: instructions whose factors are descriptors.

    async_products.py inserts the waits.
    """
    c, result = self.group(u.src[2]), self.new(self.group_class(u.dtype))
    places, factors = [], []
    for factor in u.src[:2]:
      address, offset = self.shared_place(factor.src[0])
      places.append(address if address is regs.RZ else self.once(regs.R[1], "shr_u32", address,
                                                                 DESCRIBED_BYTES.bit_length() - 1))
      factors.append((offset // DESCRIBED_BYTES | leading(factor) << 16, advance(factor), factor.arg.transposed))
    self.emit(warpgroup_product(unit.key.format(unit.matrix.n), u.dtype.count, LINE_BYTES // UNIT_BYTES, *factors),
              result, *places, ties=(c,))
    return result

  def fragment(self, u: UOp) -> Reg:
    """Select FRAGMENT: LDSM, whose addresses are those of rows."""
    address, offset = self.shared_place(u.src[0])
    return self.op(self.group_class(u.dtype), f"{'columns' if u.arg else 'rows'}_b{8 * u.dtype.itemsize}", address,
                   offset)

def whole_of(elements: list[UOp]) -> UOp:
  """Return the vector whose elements these are, in order, or a new vector of them."""
  source = elements[0].src[0] if elements[0].op is Ops.GEP else elements[0]
  fine = source.dtype.count == len(elements) and all(e.op is Ops.GEP and e.src[0] is source and e.arg == k
                                                     for k, e in enumerate(elements))
  return source if fine else UOp(Ops.VECTORIZE, elements[0].dtype.vec(len(elements)), tuple(elements))

def half_of(u: UOp) -> tuple[UOp, int] | None:
  """Return the FRAGMENT of which a factor is the first (0) or second (1) half. The instruction takes half of its
  registers."""
  if u.op is not Ops.GEP or u.src[0].op is not Ops.FRAGMENT or u.src[0].dtype.count != 2 * u.dtype.count: return None
  return u.src[0], u.arg // u.dtype.count

# ***** descriptors: the lower half is an address and, from bit 16 on, the distance of swizzle atoms *****

def leading(factor: UOp) -> int:
  """Return the field of a descriptor with the distance between swizzle atoms.

  It matters only if the rows (or columns) of a factor span several atoms.
  """
  return factor.arg.lines * LINE_BYTES // DESCRIBED_BYTES if factor.arg.transposed else 1

def advance(factor: UOp) -> int:
  """Return the step of a descriptor from an instruction to the next. In a transposed atom the lines are steps, else
  their bytes are."""
  return (UNIT_LINES * LINE_BYTES if factor.arg.transposed else UNIT_BYTES) // DESCRIBED_BYTES

@once
def warpgroup_product(instruction: str, sums: int, times: int, a: tuple[int, int, bool],
                      b: tuple[int, int, bool]) -> Macro:
  """Return a macro of `times` instructions, each with descriptors of its own, made before the first instruction.

  a, b: the sum for the lower half of the first descriptor, its step, and whether the factor is transposed.
  """
  made, products = [], []
  transposed = ".tnspA" * a[2] + ".tnspB" * b[2]
  for k in range(times):
    first = DESCRIPTORS[4 * k]
    made += [f"IADD3 x, a, {a[0] + k * a[1]:#x}, RZ", f"IADD3 y, b, {b[0] + k * b[1]:#x}, RZ",
             f"UMOV UR{first + 1}, {DESCRIPTOR_WORD:#x}",
             f"UMOV UR{first + 3}, {DESCRIPTOR_WORD:#x}", f"R2UR UR{first}, x", f"R2UR UR{first + 2}, y"]
    products.append(f"{instruction} d, gdesc[UR{first}]{transposed}, d")
  operands = [("d", Access.BOTH, f"v{sums}"), *((name, Access.READ, "v1") for name in "ab"),
              *((name, Access.WRITE, "v1") for name in "xy")]
  return Macro("warpgroup product", tuple(operands), 3, (*made, *products))
