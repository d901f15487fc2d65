"""Instructions that compute, from their semantics: the register, constant or part of a register of each operand, and
the modifiers.

`bind` returns the function for an instruction whose semantics are in the notation. Modifiers are those of isa/amd: neg,
abs, op_sel ... as bits for each source, clamp, omod, SDWA selects, DPP controls.
"""
from __future__ import annotations
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tinyhw.emulator.amd.execute.lanes import dpp_moves
from tinyhw.emulator.amd.semantics.packed import DOT, HALF, PACKED
from tinyhw.emulator.amd.semantics.scalar import SCALAR
from tinyhw.emulator.amd.semantics.vector import VECTOR
from tinyhw.emulator.amd.python.lanes import compiled
from tinyhw.emulator.amd.python.operands import constant_argument
from tinyhw.emulator.amd.python.shapes import OperandForm, Evaluation, InstructionShape, ResultForm
from tinyhw.emulator.errors import UnknownInstruction
from tinyhw.emulator.notation import ExpressionNode, parse
from tinyhw.isa.amd.table import regs
from tinyhw.machine.ir.inst import MInst, Reg
from tinyhw.named_tuple import NamedTuple

if TYPE_CHECKING:
  from tinyhw.emulator.amd.execute.state import Wave

Run = Callable[["Wave"], None]
SEMANTICS = {**SCALAR, **VECTOR, **HALF, **PACKED, **DOT}

class Mode(NamedTuple):
  """The part of a wave's state that changes the semantics of instructions. denormals: MODE[7:4]; rounding: MODE[3:0].
  """
  arch: str
  lanes: int
  denormals: int = 15
  rounding: int = 0

  @property
  def cdna(self) -> bool: return self.arch.startswith("gfx9")

class NamedOperands:
  """An instruction's operands and modifiers by name."""
  def __init__(self, inst: MInst):
    self.inst, self.row, self.form = inst, inst.row, inst.row.isa
    self.name: str = inst.row.name
    self.index: dict[str, int] = self.form.index

  def __contains__(self, name: str) -> bool:
    return name in self.index and self.inst.operands[self.index[name]] is not None
  def __getitem__(self, name: str) -> Any: return self.inst.operands[self.index[name]]
  def get(self, name: str, default: int | None = 0) -> Any:
    """Return the operand, or `default` if the instruction has none of this name."""
    return self.inst.operands[self.index[name]] if name in self.index else default
  def type_bits(self, name: str) -> int:
    """Return the width of an element of an operand."""
    kind = self.form.specs[self.index[name]].type
    return 32 if kind is None else int(kind.bits)
  def count(self, name: str) -> int:
    """Return the number of registers of an operand."""
    value = self[name]
    return value.cls.units if isinstance(value, Reg) else 1

def row_of(register: Reg) -> int:
  """Return the row of a vector register in a wave. Accumulation registers come after the others."""
  assert register.index is not None, "a physical register is expected"
  return register.index + 256 if register.cls.bank is regs.AGPR else register.index

# operands of the notation, by the instruction's names for them
NAMES = {"S0": ("src0", "ssrc0", "simm16"), "S1": ("src1", "ssrc1"), "S2": ("src2",), "D": ("vdst", "sdst"),
         "K": ("literal",)}
_BITS = {"src_scc": "scc", "src_vccz": "vccz", "src_execz": "execz"}
_SPECIAL: dict[int | None, str] = {regs.READ_ONLY[name]: kind for name, kind in _BITS.items()}
SELECTS = {0: (0, 8), 1: (8, 8), 2: (16, 8), 3: (24, 8), 4: (0, 16), 5: (16, 16), 6: (0, 0)}  # SDWA: (shift, width)

def semantics_of(name: str) -> str | None:
  """Return the semantics of an instruction in the notation, or None."""
  return SEMANTICS.get(name)

class Computation(NamedTuple):
  """Computation of an instruction: its shape, the arguments for the maker of python/lanes.py, and the mask that EXEC
  becomes, if any."""
  shape: InstructionShape
  arguments: dict[str, Any]
  active: int | None = None

def bind(uses: NamedOperands, mode: Mode) -> Run:
  """Return the function of an instruction with semantics in the notation."""
  runs = [_made(computation) for computation in computations(uses, mode)]
  if len(runs) == 1: return runs[0]
  one, two = runs
  def both(wave: Wave) -> None:
    one(wave)
    two(wave)
  return both

def computations(uses: NamedOperands, mode: Mode) -> list[Computation]:
  """Return the computations of an instruction with semantics in the notation, in their order."""
  if "::" in uses.name: return _dual(uses, mode)
  semantics = SEMANTICS[uses.name]
  places = {name: next((n for n in names if n in uses), "") for name, names in NAMES.items()}
  places = {name: place for name, place in places.items() if place and not _is_mask(uses, place)}
  if "vdst" in uses: places["D"] = "vdst"
  shape, arguments = _shape(uses, mode, semantics, places)
  active = None
  if uses.name.startswith("v_cmpx") and "sdst" in uses: active = uses["sdst"].index
  elif not shape.lanes and "sdst" in uses and uses["sdst"].index in (regs.EXEC, regs.EXEC + 1): active = regs.EXEC
  return [Computation(shape, arguments, active)]

def _is_mask(uses: NamedOperands, place: str) -> bool:
  kind = uses.form.specs[uses.index[place]].type
  return kind is not None and kind.name == "mask"

def _made(computation: Computation) -> Run:
  function = compiled(computation.shape)
  run = function.make(*(_argument(p, computation.arguments) for p in function.parameters))
  register = computation.active
  if register is None: return run
  def and_exec(wave: Wave) -> None:
    run(wave)
    wave.set_exec(wave.mask(register))
  return and_exec

def _argument(parameter: str, arguments: dict[str, Any]) -> Any:
  if parameter in arguments: return arguments[parameter]
  return constant_argument(parameter, arguments[parameter.split("_")[0]])

def _shape(uses: NamedOperands, mode: Mode, semantics: str, places: dict[str, str]) -> tuple[InstructionShape,
                                                                                             dict[str, Any]]:
  arguments: dict[str, Any] = {"VCC": regs.VCC, "CARRY": regs.VCC}
  for name, place in places.items():
    arguments[name] = _number(uses[place])
  if "D" in arguments: arguments["D1"] = arguments["D"]
  for place, name in (("src2", "VCC"), ("sdst", "CARRY")):
    if place in uses and _is_mask(uses, place): arguments[name] = uses[place].index
  if uses.name.startswith("v_cmpx") and "sdst" not in uses: arguments["CARRY"] = regs.EXEC
  permuted = "dpp_ctrl" in uses.index or "dpp8" in uses.index
  if permuted: arguments["MOVES"] = dpp_moves(uses, mode.lanes)
  sources = {name: place for name, place in places.items() if name != "D" or reads_result(semantics)}
  packed = uses.name in PACKED
  passes = tuple(Evaluation(tuple((name, _source(uses, name, place, half, packed)) for name, place in sources.items()),
                            _targets(uses, mode, semantics, places, half, packed)) for half in range(1 + packed))
  lanes = mode.lanes if uses.name.startswith("v_") and not uses.name.startswith("v_s_") else 0
  shape = InstructionShape(semantics, passes, lanes, bool(uses.get("clamp")), (0, 1, 2, -1)[uses.get("omod")],
                           mode.denormals & 3 == 0, mode.denormals >> 2 == 0,
                           mode.arch == "gfx942", permuted)
  return shape, arguments

def reads_result(semantics: str) -> bool:
  """Return whether the semantics use the old value of the destination."""
  return re.search(r"\bD\.\w+", re.sub(r"(^|; )D\.\w+ = ", r"\1", semantics)) is not None

def _number(value: Any) -> Any:
  """Return the argument of an operand for a generated function: a row, a scalar register, or a constant's bits."""
  if not isinstance(value, Reg): return value
  return value.index if value.cls.bank is regs.SGPR else row_of(value)

def _source(uses: NamedOperands, name: str, place: str, half: int, packed: bool) -> OperandForm:
  """Return the form of a source. half: of the pass."""
  value, i = uses[place], int(name[1]) if name[0] == "S" else 0
  kind = "k" if not isinstance(value, Reg) else _SPECIAL.get(value.index, "s") if value.cls.bank is regs.SGPR else "v"
  def bit(modifier: str) -> bool: return bool(uses.get(modifier) >> i & 1)
  if name in ("D", "K"):
    return (OperandForm(kind, shift=16 * half, width=16) if packed and uses.type_bits(place) == 16
            else OperandForm(kind, dword=half))
  if packed: return _packed_source(uses, place, kind, half, bit)
  form = OperandForm(kind, negate=bit("neg"), magnitude=bit("abs"))
  if "op_sel_hi" in uses.index or "neg_lo" in uses.index:
    if uses.name.startswith("v_fma_mix"):   # the signs of v_fma_mix are called neg and abs
      return form._replace(mix=int(bit("op_sel")) if bit("op_sel_hi") else None)
    if uses.name == "v_pk_mov_b32": return OperandForm(kind, dword=int(bit("op_sel")) if kind != "k" else 0)
    halves = int(bit("op_sel")), int(uses.get("op_sel_hi", 7) >> i & 1)
    return OperandForm(kind, halves=halves, negates=(bit("neg_lo"), bit("neg_hi")), negate=bit("neg_lo"))
  if f"{place}_sel" in uses.index:
    shift, width = SELECTS[uses[f"{place}_sel"]]
    return form._replace(shift=shift, width=width, signed=bit("sext"))
  if "op_sel" in uses.index and _read_bits(uses.name, name) == 8:
    chosen = uses["op_sel"]
    return form._replace(shift=8 * ((chosen & 1) << 1 | chosen >> 1 & 1), width=8)
  if "op_sel" in uses.index and bit("op_sel") and _read_bits(uses.name, name) == 16:
    return form._replace(shift=16, width=16)
  return form

def _packed_source(uses: NamedOperands, place: str, kind: str, half: int, bit: Callable[[str], bool]) -> OperandForm:
  negate = bit("neg_hi" if half else "neg_lo")
  chosen = int(bit("op_sel_hi" if half else "op_sel"))
  if uses.type_bits(place) == 16: return OperandForm(kind, shift=16 * chosen, width=16, negate=negate)
  return OperandForm(kind, dword=chosen if kind != "k" else 0, negate=negate)

def _read_bits(instruction: str, name: str) -> int:
  """Return the width of the type that the semantics read an operand as."""
  return next((n.type.bits for a in parse(SEMANTICS[instruction]) for n in _nodes(a.value) if n.op == "read"
               and n.value == name), 32)

def _nodes(node: ExpressionNode) -> list[ExpressionNode]:
  return [node, *(n for child in node.args for n in _nodes(child))]

def _targets(uses: NamedOperands, mode: Mode, semantics: str, places: dict[str, str], half: int,
             packed: bool) -> tuple[tuple[str, ResultForm], ...]:
  if "D" not in places: return ()
  value = uses[places["D"]]
  if value.cls.bank is regs.SGPR: return (("D", ResultForm("none" if value.index == regs.NULL else "s")),)
  if packed:
    return (("D", ResultForm("v", shift=16 * half, width=16) if uses.type_bits(places["D"]) == 16
             else ResultForm("v", dword=half)),)
  written = next(a.type for a in parse(semantics) if a.target == "D")
  if "dst_sel" in uses.index and SELECTS[uses["dst_sel"]][1]:
    shift, width = SELECTS[uses["dst_sel"]]
    unused = uses["dst_unused"]
    return (("D", ResultForm("v", shift=shift, width=width, keep=unused == 2, extend=unused == 1)),)
  target, op_sel = ResultForm("v"), uses.get("op_sel")
  if written.bits == 16:
    short = any(encoding.name == "_e32" for encoding in uses.form.encodings)
    target = ResultForm("v", shift=16 if op_sel & 8 or uses.name == "v_fma_mixhi_f16" else 0, width=16,
                        keep=not (mode.cdna and short))
  elif written.bits == 8: target = ResultForm("v", shift=8 * (op_sel >> 2 & 3), width=8)
  return ("D", target), ("D1", target._replace(dword=1))

HALVES_OF_DUAL = ({"S0": "srcx0", "S1": "vsrcx1", "D": "vdstx", "K": "literalx"},
                  {"S0": "srcy0", "S1": "vsrcy1", "D": "vdsty", "K": "literaly"})

def _dual(uses: NamedOperands, mode: Mode) -> list[Computation]:
  """Return the computations of a dual instruction. Both operations read before either writes.

  They run one after the other if one does not read the result of the other. Else they become one computation.
  """
  both_semantics = [SEMANTICS[name] for name in uses.name.split("::")]
  reads = [_rows_read(uses, semantics, places) for semantics, places in zip(both_semantics, HALVES_OF_DUAL)]
  for first, second in ((0, 1), (1, 0)):
    if uses[HALVES_OF_DUAL[first]["D"]].index in reads[second]: continue
    return [_half(uses, mode, both_semantics[i], HALVES_OF_DUAL[i]) for i in (first, second)]
  renamed = re.sub(r"\b(S0|S1|D|K)\b", lambda m: {"S0": "S3", "S1": "S4", "D": "D2", "K": "K2"}[m[1]],
                   both_semantics[1])
  second_places = {"S3": "srcy0", "S4": "vsrcy1", "D2": "vdsty", "K2": "literaly"}
  return [_half(uses, mode, f"{both_semantics[0]}; {renamed}", {**HALVES_OF_DUAL[0], **second_places})]

def _rows_read(uses: NamedOperands, semantics: str, places: dict[str, str]) -> set[int]:
  """Return the vector registers that one operation reads."""
  names = [place for name, place in places.items() if place in uses and (name != "D" or reads_result(semantics))]
  return {row_of(uses[place]) for place in names if isinstance(uses[place], Reg)
          and uses[place].cls.bank is not regs.SGPR}

def _half(uses: NamedOperands, mode: Mode, semantics: str, places: dict[str, str]) -> Computation:
  """Return one operation of a dual instruction, or both in one computation."""
  arguments: dict[str, Any] = {"VCC": regs.VCC, "CARRY": regs.VCC}
  sources, targets = [], []
  for name, place in places.items():
    if place not in uses: continue
    value = uses[place]
    arguments[name] = _number(value)
    if name[0] == "D": targets.append((name, ResultForm("v")))
    sources.append((name, OperandForm("k" if not isinstance(value, Reg) else _SPECIAL.get(value.index, "s")
                                      if value.cls.bank is regs.SGPR else "v")))
  shape = InstructionShape(semantics, (Evaluation(tuple(sources), tuple(targets)),), mode.lanes,
                           flush32=mode.denormals & 3 == 0,
                           flush64=mode.denormals >> 2 == 0)
  return Computation(shape, arguments)

def check_mode(mode: Mode) -> None:
  """Raise UnknownInstruction for modes that the emulator does not model."""
  if mode.rounding:
    raise UnknownInstruction(f"the rounding mode {mode.rounding:#x} is not emulated, only to nearest even; set "
                             f"MODE[3:0] to 0")
  if mode.denormals & 3 not in (0, 3) or mode.denormals >> 2 not in (0, 3):
    raise UnknownInstruction(f"the denormal mode {mode.denormals:#x} is not emulated; flush denormals in and out, or "
                             f"keep them")
