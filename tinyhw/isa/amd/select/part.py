"""Base of instruction selection: make instructions, and move operands into the form that an instruction takes."""
from __future__ import annotations
from typing import Any

from tinyhw.errors import CompileError
from tinyhw.isa.amd.asm.encode import compiled
from tinyhw.isa.amd.macros import macros
from tinyhw.isa.amd.macros.macros import MACROS, classes_of
from tinyhw.isa.amd.table import regs
from tinyhw.isa.amd.table.form import Form, Generation
from tinyhw.isa.amd.table.table import table
from tinyhw.machine.ir.inst import Function, Inst, MInst, Reg, RegClass, concrete
from tinyhw.machine.select.selection import Selection

class Part(Selection):
  """The instructions and operands of one selection."""

  def __init__(self, generation: Generation, function: Function):
    super().__init__(function)
    self.generation = generation
    self.table = table(generation.arch)
    self.mask_class = classes_of(generation)["m"]
    # (bits, registers) -> the register that the function's entry initializes
    self.constants: dict[tuple[int, int], Reg] = {}

  # ***** instructions *****

  def instruction(self, key: str, *operands: Any, arguments: tuple[list[Reg], ...] = (), **modifiers: Any) -> MInst:
    """Make an instruction or macro.

    Operands that a vector instruction cannot take are moved to vector registers before.
    """
    if key in MACROS: return macros.make(self.function, self.generation, key, *self.fit_macro(key, operands))
    row = self.table[key]
    form: Form = row.isa
    values = [*operands, *(modifiers.get(spec.name, spec.implied) for spec in form.specs[len(operands):])]
    if row.pipe in VECTOR_PIPES: self.fit(form, values)
    elif row.pipe == "salu": self.fit_scalar(form, values)
    classes = tuple(value.cls if isinstance(value, Reg) else None for value in values)
    return MInst(concrete(row, classes), values, self.origin, arguments)

  def put(self, row: Inst, operands: list[Any], ties: tuple[Reg, ...] = ()) -> None:
    self.block.insts.append(MInst(row, operands, self.origin, (), "", ties))

  def emit(self, key: str, *operands: Any, arguments: tuple[list[Reg], ...] = (), **modifiers: Any) -> None:
    inst = self.instruction(key, *operands, arguments=arguments, **modifiers)
    inst.origin = self.origin
    self.block.insts.append(inst)

  def op(self, cls: RegClass, key: str, *sources: Any, **modifiers: Any) -> Reg:
    """Emit an instruction whose first operand is a new result."""
    dst = self.new(cls)
    self.emit(key, dst, *sources, **modifiers)
    return dst

  def once(self, cls: RegClass, key: str, *sources: Any) -> Reg:
    """Emit an instruction once in a block. "mask_of" is a macro of this file: a flag as a mask."""
    name = (key, *sources)
    if name not in self.made:
      self.made[name] = self.mask_of(*sources) if key == "mask_of" else self.op(cls, key, *sources)
    return self.made[name]

  def result_class(self, key: str) -> RegClass:
    """The register class that an instruction or macro writes."""
    if key in MACROS: return classes_of(self.generation)[MACROS[key].operands[0][2]]
    spec = self.table[key].isa.specs[0]
    return self.mask_class if spec.type.name == "mask" else self.generation.vectors[spec.type.units]

  # ***** operands *****

  def fit(self, form: Form, values: list[Any]) -> None:
    """Change values so that an encoding takes them. The encoder decides this for stand-ins of the registers."""
    if encodable(form, values): return
    sources = [i for i, spec in enumerate(form.specs) if spec.show and spec.access == 1 and "v" in spec.kinds
               and values[i] is not None]
    if self.fit_constants(form, values, sources): return
    def scalar(i: int) -> bool: return not isinstance(values[i], Reg) or values[i].cls.bank is regs.SGPR
    # constants first, and from the last one: src0 takes most kinds of operands
    for i in sorted(sources, key=lambda i: (isinstance(values[i], Reg), -i)):
      if not scalar(i): continue
      spec = form.specs[i]
      values[i] = self.in_vector(values[i], 4 * (spec.type.units if spec.type is not None else 1))
      if encodable(form, values): return
    raise CompileError(f"{self.function.name}: {form.mnemonic} does not take {values}")

  def fit_constants(self, form: Form, values: list[Any], sources: list[int]) -> bool:
    """Move constants only, to scalar registers, if the instruction may read these. This costs the vector unit
    nothing."""
    for i in reversed(sources):
      if isinstance(values[i], Reg): continue
      kind = form.specs[i].type
      units = 1 if kind is None else kind.units
      stand_in = regs.reg(regs.S[units], 0)
      trial = [stand_in if k in sources and value == values[i] else value for k, value in enumerate(values)]
      if not encodable(form, trial): continue
      values[:] = [self.constant(values[i], units) if value is stand_in else value for value in trial]
      return True
    return False

  def constant(self, value: int, units: int) -> Reg:
    """A constant in scalar registers, initialized in the function's entry while registers are plentiful."""
    if (value, units) in self.constants: return self.constants[value, units]
    if len(self.constants) >= MOST_CONSTANTS: return self.in_scalar(value, regs.S[units])
    dst = self.new(regs.S[units])
    halves = (value,) if units == 1 else (value & 0xffffffff, value >> 32 & 0xffffffff)
    made = self.instruction("s_mov_b32" if units == 1 else "s_pack64", dst, *halves)
    self.order[0].insts.insert(len(self.constants), made)
    self.constants[value, units] = dst
    return dst

  def fit_scalar(self, form: Form, values: list[Any]) -> None:
    """Change values for the scalar unit: constants that no encoding takes are moved to registers."""
    for i, spec in enumerate(form.specs):
      if spec.type is None or spec.access != 1 or isinstance(values[i], Reg) or values[i] is None: continue
      if encodable(form, values): return
      values[i] = self.in_scalar(values[i], regs.S[spec.type.units])

  def fit_macro(self, name: str, operands: tuple[Any, ...]) -> list[Any]:
    """Move operands to the banks that a macro requires."""
    found = []
    # a mask is a scalar value, too
    full = self.generation.scalar_limit == 1 and any(letters == "m" for _, _, letters in MACROS[name].operands)
    for value, (_, access, letters) in zip(operands, MACROS[name].operands):
      if (letters[0] == "v" or letters[0] == "x" and full) and access == 1:
        value = self.in_vector(value, 4 * int(letters[1]))
      elif letters in ("s1", "s2") and access == 1: value = self.in_scalar(value, regs.S[int(letters[1])])
      elif letters == "m" and access == 1: value = self.in_scalar(value, self.mask_class)
      found.append(value)
    return found

  def in_vector(self, value: Any, size: int) -> Reg:
    """A value of a size in bytes in vector registers; a scalar or constant is copied to all lanes."""
    if isinstance(value, Reg) and value.cls.bank is regs.VGPR: return value
    if size == 8: return self.once(self.generation.vectors[2], "move64", value)
    return self.once(regs.V[1], "v_mov_b32", value)

  def in_scalar(self, value: Any, cls: RegClass) -> Reg:
    """A constant in scalar registers; a scalar is returned unchanged."""
    if isinstance(value, Reg):
      if value.cls.bank is regs.SGPR: return value
      raise CompileError(f"{self.function.name}: {value!r} differs between lanes and is wanted in a scalar register")
    if cls.units == 2 and not -16 <= value <= 64:
      return self.once(cls, "s_pack64", value & 0xffffffff, value >> 32 & 0xffffffff)
    return self.once(cls, f"s_mov_b{32 * cls.units}", value)

  def half(self, value: Any, which: str) -> Any:
    """The low or high 32 bits of a 64-bit value."""
    if not isinstance(value, Reg): return value >> (32 if which == "high" else 0) & 0xffffffff
    return self.once(regs.V[1], which, value) if value.cls.bank is regs.VGPR else self.once(regs.S[1], f"s_{which}",
                                                                                            value)

  def mask_of(self, flag: Any) -> Reg:
    """Convert a flag, 0 or 1, to a mask."""
    self.emit("s_cmp_lg_u32", flag, 0)
    return self.op(self.mask_class, f"s_cselect_b{self.generation.wave}", -1, 0)

MOST_CONSTANTS = 32  # scalar registers (or pairs) that hold constants throughout a kernel
VECTOR_PIPES = frozenset({"valu", "trans", "f64", "dot", "wmma", "mfma"})

def encodable(form: Form, values: list[Any]) -> bool:
  """Whether an encoding takes operands of these classes and these constants."""
  found: dict[int, Reg] = {}
  stand_ins: list[Any] = []
  free = 0  # the first register without a stand-in, in any bank: they do not overlap
  for value in values:
    if isinstance(value, Reg) and value.index is None:
      if id(value) not in found:
        found[id(value)] = regs.reg(value.cls, free)
        free += -(-value.cls.units // 4) * 4
      value = found[id(value)]
    stand_ins.append(value)
  return any((encoding.encode or compiled(form, encoding))(stand_ins) is not None for encoding in form.encodings)
