"""Shape of an instruction: everything that its function depends on. This is how operands are read and results are
written, and the modes that count.

Register numbers and constants are no part of a `InstructionShape`. So instructions that differ only in these share one
function: in Python (python/lanes.py), and as machine code of the host (native.py). arithmetic.py makes shapes of
instructions.
"""
from __future__ import annotations

from tinyhw.emulator.notation import TYPES, ValueType
from tinyhw.named_tuple import NamedTuple

class OperandForm(NamedTuple):
  """How an operand is read, except for its register number or value.

  - kind: "v" a vector register, "s" a scalar one, "k" a constant, "scc"/"vccz"/"execz" a bit as a number.
  - dword: counted from the operand's first register.
  - shift, width: the bits of that dword that are used. Width 0: as many as the type has. signed: they are
    sign-extended.
  - halves, negates: for a pair of 16-bit values, the half of elements 0 and 1, and whether each is negated.
  - mix: for an operand that is float16 or float32, the half with the float16, or None for a float32.
  """
  kind: str
  dword: int = 0
  shift: int = 0
  width: int = 0
  signed: bool = False
  negate: bool = False
  magnitude: bool = False
  halves: tuple[int, int] = (0, 1)
  negates: tuple[bool, bool] = (False, False)
  mix: int | None = None

  def element(self, kind: ValueType, index: int) -> OperandForm:
    """Return the form of element `index` of an operand that is an array of narrow values (S0.i8(2) in the notation)."""
    if kind.bits == 16 and index < 2:
      return self._replace(shift=16 * self.halves[index], width=16, negate=self.negates[index], magnitude=False)
    return self._replace(dword=self.dword + index * kind.bits // 32, shift=index * kind.bits % 32, width=kind.bits,
                         negate=False, magnitude=False)

  def mixed(self) -> tuple[OperandForm, ValueType]:
    """Return the form and the type of an operand of a mixed-precision instruction (M0.f32 in the notation)."""
    if self.mix is None: return self, TYPES["f32"]
    return self._replace(shift=16 * self.mix, width=16), TYPES["f16"]

class ResultForm(NamedTuple):
  """How a result is written.

  - kind: "v" a vector register, "s" a scalar one, "none" nothing. dword, shift, width: as in a OperandForm.
  - keep: the other bits of the register keep their values. Else they become 0, or with extend the sign of the part.
  """
  kind: str
  dword: int = 0
  shift: int = 0
  width: int = 0
  keep: bool = True
  extend: bool = False

class Evaluation(NamedTuple):
  """One evaluation of the semantics. Packed instructions have two, for the halves of their operands.

  Operands have the notation's names.
  """
  sources: tuple[tuple[str, OperandForm], ...]
  targets: tuple[tuple[str, ResultForm], ...]

class InstructionShape(NamedTuple):
  """Everything that a function depends on.

  - lanes: 0 for a scalar instruction. omod: exponent of the factor 2, 4, 1/2 (1, 2, -1).
  - flush32, flush64: denormals of float32, and of float16 and float64, become 0.
  - fnuz: 8-bit floats are those of gfx942. permuted: S0 comes from other lanes (DPP).
  """
  semantics: str
  passes: tuple[Evaluation, ...]
  lanes: int
  clamp: bool = False
  omod: int = 0
  flush32: bool = False
  flush64: bool = False
  fnuz: bool = False
  permuted: bool = False

  def flushes(self, kind: ValueType) -> bool:
    """Return whether denormals of a float type become 0."""
    return self.flush32 if kind.name == "f32" else self.flush64 and kind.name in ("f16", "f64")
