"""Integers of AMD instructions that the text spells in words: wait counts, delays, hardware registers, messages, lane
permutations.

Each kind has `show(value, generation)` and `parse(text, generation)`. A number is always accepted instead of the words,
and shown if there are none. Sources: RDNA3, RDNA4 and MI300 ISA guides; the spelling is LLVM's.
"""
from __future__ import annotations
import re
from collections.abc import Mapping
from typing import Protocol

from tinyhw.errors import EncodeError, ParseError
from tinyhw.isa.amd.table.form import Generation
from tinyhw.machine.notation.bits import Format, fmt
from tinyhw.machine.notation.text import one_of, parse_integer

class ImmediateSyntax(Protocol):
  """Spelling of an integer operand in assembly text."""
  def show(self, value: int, generation: Generation) -> str: ...
  def parse(self, text: str, generation: Generation) -> int: ...

def integer(text: str, what: str) -> int:
  """Parse a number; raise ParseError for anything else."""
  value = parse_integer(text)
  if value is None: raise ParseError(f"{what} must be an integer, got {text or 'nothing'}")
  return value

CALL = re.compile(r"(\w+)\(([^()]*)\)")

class Fields:
  """Named parts of an immediate: vmcnt(0) lgkmcnt(0). Parts at their greatest value are omitted."""

  def __init__(self, formats: Mapping[str, str], prefix: str = ""):
    self.formats: dict[str, Format] = {family: fmt(text) for family, text in formats.items()}
    self.prefix = prefix

  def greatest(self, generation: Generation) -> dict[str, int]:
    return {name: field.range[1] for name, field in self.formats[generation.family].fields.items()}

  def make(self, generation: Generation, **values: int) -> int:
    """The immediate that waits for these counts only.

    Raises EncodeError for a count that the generation does not have, or for a value that it cannot count.
    """
    parts = self.greatest(generation)
    for name, value in values.items():
      if name not in parts:
        raise EncodeError(f"{generation.arch} has no {self.prefix}{name}; it has "
                          f"{one_of([self.prefix + n for n in parts])}")
      if not 0 <= value <= parts[name]:
        raise EncodeError(f"{self.prefix}{name} must be in 0..{parts[name]}, got {value}")
    return self.formats[generation.family].pack(**{**parts, **values})

  def show(self, value: int, generation: Generation) -> str:
    parts = self.formats[generation.family].unpack(value) or {}
    if self.formats[generation.family].pack(**parts) != value: return hex(value)
    greatest = self.greatest(generation)
    return " ".join(f"{self.prefix}{name}({n})" for name, n in parts.items() if n != greatest[name]) or hex(value)

  def parse(self, text: str, generation: Generation) -> int:
    number = parse_integer(text)
    if number is not None: return number
    calls = CALL.findall(text)
    if not calls or CALL.sub("", text).strip(" &,"):
      raise ParseError(f"{text or 'nothing'} is neither a number nor parts like "
                       f"{self.prefix}{next(iter(self.greatest(generation)))}(0)")
    return self.make(generation, **{name.removeprefix(self.prefix): integer(n, name) for name, n in calls})

WAIT = Fields({"cdna": "vmcnt[5:4] _:2 lgkmcnt:4 _:1 expcnt:3 vmcnt[3:0]", "rdna3": "vmcnt:6 lgkmcnt:6 _:1 expcnt:3",
               "rdna4": "vmcnt:6 lgkmcnt:6 _:1 expcnt:3"})
DEPCTR_FIELDS = "va_vdst:4 va_sdst:3 va_ssrc:1 hold_cnt:1 _:2 vm_vsrc:3 va_vcc:1 sa_sdst:1"
DEPCTR = Fields({"rdna3": DEPCTR_FIELDS, "rdna4": DEPCTR_FIELDS}, "depctr_")

class Delay:
  """Delay between dependent instructions: instid0(VALU_DEP_1) | instskip(NEXT) | instid1(VALU_DEP_2)."""
  FORMAT = fmt("_:5 instid1:4 instskip:3 instid0:4")
  IDS = ("NO_DEP", *(f"VALU_DEP_{i}" for i in range(1, 5)), *(f"TRANS32_DEP_{i}" for i in range(1, 4)),
         "FMA_ACCUM_CYCLE_1",
         *(f"SALU_CYCLE_{i}" for i in range(1, 4)))
  SKIPS = ("SAME", "NEXT", "SKIP_1", "SKIP_2", "SKIP_3", "SKIP_4")
  NAMES = {"instid0": IDS, "instskip": SKIPS, "instid1": IDS}

  def show(self, value: int, generation: Generation) -> str:
    parts = self.FORMAT.unpack(value) or {}
    known = all(parts[name] < len(names) for name, names in self.NAMES.items()) and self.FORMAT.pack(**parts) == value
    if not known or not value: return hex(value)
    return " | ".join(f"{name}({names[parts[name]]})" for name, names in self.NAMES.items() if parts[name])

  def parse(self, text: str, generation: Generation) -> int:
    number = parse_integer(text)
    if number is not None: return number
    parts = dict.fromkeys(self.NAMES, 0)
    for piece in text.split("|"):
      found = CALL.fullmatch(piece.strip())
      if found is None or found[1] not in self.NAMES:
        raise ParseError(f"{piece.strip()} is none of instid0(...), instskip(...), instid1(...)")
      names = self.NAMES[found[1]]
      if found[2] not in names: raise ParseError(f"{found[1]} must be {one_of(names)}, got {found[2]}")
      parts[found[1]] = names.index(found[2])
    return self.FORMAT.pack(**parts)

COMMON_REGISTERS = {"HW_REG_MODE": 1, "HW_REG_STATUS": 2, "HW_REG_GPR_ALLOC": 5, "HW_REG_LDS_ALLOC": 6,
                    "HW_REG_IB_STS": 7}
RDNA_REGISTERS = {"HW_REG_HW_ID1": 23, "HW_REG_HW_ID2": 24}
REGISTERS = {
  "cdna": {**COMMON_REGISTERS, "HW_REG_TRAPSTS": 3, "HW_REG_HW_ID": 4, "HW_REG_SH_MEM_BASES": 15, "HW_REG_TBA_LO": 16,
           "HW_REG_TBA_HI": 17,
           "HW_REG_TMA_LO": 18, "HW_REG_TMA_HI": 19, "HW_REG_XCC_ID": 20},
  "rdna3": {**COMMON_REGISTERS, **RDNA_REGISTERS, "HW_REG_TRAPSTS": 3, "HW_REG_SH_MEM_BASES": 15,
            "HW_REG_PERF_SNAPSHOT_PC_LO": 18,
            "HW_REG_PERF_SNAPSHOT_PC_HI": 19, "HW_REG_FLAT_SCR_LO": 20, "HW_REG_FLAT_SCR_HI": 21,
            "HW_REG_PERF_SNAPSHOT_DATA": 27,
            "HW_REG_SHADER_CYCLES": 29},
  "rdna4": {**COMMON_REGISTERS, **RDNA_REGISTERS, "HW_REG_WAVE_STATE_PRIV": 4, "HW_REG_PERF_SNAPSHOT_DATA": 10,
            "HW_REG_EXCP_FLAG_PRIV": 17,
            "HW_REG_EXCP_FLAG_USER": 18, "HW_REG_TRAP_CTRL": 19, "HW_REG_SCRATCH_BASE_LO": 20,
            "HW_REG_SCRATCH_BASE_HI": 21,
            "HW_REG_SHADER_CYCLES_LO": 29, "HW_REG_SHADER_CYCLES_HI": 30, "HW_REG_DVGPR_ALLOC_LO": 31},
}

class HardwareRegister:
  """hwreg(HW_REG_MODE, 4, 4): a register, its first bit and the number of bits."""
  FORMAT = fmt("size:5 offset:5 id:6")

  def show(self, value: int, generation: Generation) -> str:
    parts = self.FORMAT.unpack(value) or {}
    name = next((n for n, number in REGISTERS[generation.family].items() if number == parts["id"]), str(parts["id"]))
    return (f"hwreg({name})" if (parts["offset"], parts["size"]) == (0, 31) else f"hwreg({name}, {parts['offset']}, "
            f"{parts['size'] + 1})")

  def parse(self, text: str, generation: Generation) -> int:
    number = parse_integer(text)
    if number is not None: return number
    found = CALL.fullmatch(text)
    words = [w.strip() for w in found[2].split(",")] if found and found[1] == "hwreg" else []
    if len(words) not in (1, 3):
      raise ParseError(f"hwreg(name) or hwreg(name, first bit, number of bits) is expected, got {text}")
    known = REGISTERS[generation.family]
    # RDNA4 has a second name with WAVE for most of its registers.
    name = words[0] if words[0] in known else words[0].replace("HW_REG_WAVE_", "HW_REG_")
    register = known[name] if name in known else integer(words[0],
                                                         f"a hardware register that is none of {', '.join(known)}")
    first, size = ((integer(words[1], "the first bit"), integer(words[2], "the number of bits")) if len(words) == 3
                   else (0, 32))
    if not 0 <= first < 32 or not 0 < size <= 32:
      raise ParseError(f"hwreg: 1 to 32 bits from one in 0..31 are expected, got {size} from {first}")
    return self.FORMAT.pack(id=register, offset=first, size=size - 1)

COMMON_MESSAGES = {"MSG_INTERRUPT": 1, "MSG_GS_ALLOC_REQ": 9}
RDNA_MESSAGES = {**COMMON_MESSAGES, "MSG_HS_TESSFACTOR": 2, "MSG_DEALLOC_VGPRS": 3, "MSG_RTN_GET_DOORBELL": 128,
                 "MSG_RTN_GET_DDID": 129,
                 "MSG_RTN_GET_TMA": 130, "MSG_RTN_GET_REALTIME": 131, "MSG_RTN_GET_TBA": 133}
MESSAGES = {
  "cdna": {**COMMON_MESSAGES, "MSG_SAVEWAVE": 4, "MSG_STALL_WAVE_GEN": 5, "MSG_HALT_WAVES": 6,
           "MSG_EARLY_PRIM_DEALLOC": 8, "MSG_GET_DOORBELL": 10},
  "rdna3": {**RDNA_MESSAGES, "MSG_STALL_WAVE_GEN": 5, "MSG_HALT_WAVES": 6},
  "rdna4": RDNA_MESSAGES,
}

class SendMessage:
  """sendmsg(MSG_INTERRUPT) or sendmsg(id, operation, stream)."""
  FORMATS = {"cdna": fmt("_:6 stream:2 _:1 operation:3 id:4"), "rdna3": fmt("_:8 id:8"), "rdna4": fmt("_:8 id:8")}

  def show(self, value: int, generation: Generation) -> str:
    parts = self.FORMATS[generation.family].unpack(value) or {}
    if self.FORMATS[generation.family].pack(**parts) != value: return hex(value)
    name = next((n for n, number in MESSAGES[generation.family].items() if number == parts["id"]), "")
    rest = parts.get("operation", 0), parts.get("stream", 0)
    return f"sendmsg({name})" if name and not any(rest) else f"sendmsg({parts['id']}, {rest[0]}, {rest[1]})"

  def parse(self, text: str, generation: Generation) -> int:
    number = parse_integer(text)
    if number is not None: return number
    found = CALL.fullmatch(text)
    if found is None or found[1] != "sendmsg": raise ParseError(f"sendmsg(name) is expected, got {text}")
    words = [w.strip() for w in found[2].split(",")]
    known = MESSAGES[generation.family]
    parts = [known[words[0]] if words[0] in known
             else integer(words[0], f"a message that is none of {', '.join(known)}")]
    parts += [integer(word, f"the {what} of a message") for word, what in zip(words[1:], ("operation", "stream"))]
    names = list(self.FORMATS[generation.family].fields)
    values = dict(zip(("id", "operation", "stream"), parts))
    if any(value for name, value in values.items() if name not in names):
      raise ParseError(f"{generation.arch} sends no operation or stream with a message, got {text}")
    return self.FORMATS[generation.family].pack(**{name: values.get(name, 0) for name in names})

class IndexMode:
  """gpr_idx(SRC0,DST): the operands that are indexed."""
  NAMES = ("SRC0", "SRC1", "SRC2", "DST")

  def show(self, value: int, generation: Generation) -> str:
    return (f"gpr_idx({','.join(name for i, name in enumerate(self.NAMES) if value >> i & 1)})" if value < 16
            else hex(value))

  def parse(self, text: str, generation: Generation) -> int:
    number = parse_integer(text)
    if number is not None: return number
    found = CALL.fullmatch(text)
    words = [w.strip() for w in found[2].split(",") if w.strip()] if found else []
    if found is None or found[1] != "gpr_idx" or not set(words) <= set(self.NAMES):
      raise ParseError(f"gpr_idx of {one_of(self.NAMES)} is expected, got {text}")
    return sum(1 << self.NAMES.index(w) for w in set(words))

class Number:
  """A plain number; large ones in hexadecimal if base is 16."""

  def __init__(self, base: int = 10): self.base = base
  def show(self, value: int, generation: Generation) -> str:
    return hex(value) if self.base == 16 and not -16 <= value <= 64 else str(value)

  def parse(self, text: str, generation: Generation) -> int: return integer(text, "the operand")

WORDS: dict[str, ImmediateSyntax] = {
  "imm": Number(16), "simm": Number(), "length": Number(), "block": Number(), "waitcnt": WAIT, "depctr": DEPCTR,
  "delay": Delay(),
  "hwreg": HardwareRegister(), "sendmsg": SendMessage(), "gpr_idx": IndexMode(),
}

# ---- lanes: dpp_ctrl and the offset of ds_swizzle

DPP_COUNTED = {"row_shl": (0x100, 1, 15), "row_shr": (0x110, 1, 15), "row_ror": (0x120, 1, 15),
               "wave_shl": (0x12f, 1, 1), "wave_rol": (0x133, 1, 1),
               "wave_shr": (0x137, 1, 1), "wave_ror": (0x13b, 1, 1), "row_newbcast": (0x150, 0, 15),
               "row_share": (0x150, 0, 15),
               "row_xmask": (0x160, 0, 15)}
DPP_PLAIN = {"row_mirror": 0x140, "row_half_mirror": 0x141}
DPP_BROADCAST = {15: 0x142, 31: 0x143}
CDNA_DPP = ("wave_shl", "wave_rol", "wave_shr", "wave_ror", "row_newbcast", "row_bcast")
RDNA_DPP = ("row_share", "row_xmask")

def show_dpp(value: int, generation: Generation) -> str:
  """The text of a lane permutation: quad_perm:[3,2,1,0], row_shl:1, row_mirror ..."""
  if value < 256: return f"quad_perm:[{','.join(str(value >> 2 * i & 3) for i in range(4))}]"
  for name, code in DPP_PLAIN.items():
    if value == code: return name
  for lanes, code in DPP_BROADCAST.items():
    if value == code and generation.cdna: return f"row_bcast:{lanes}"
  for name, (base, low, high) in DPP_COUNTED.items():
    if low <= value - base <= high and name not in (RDNA_DPP if generation.cdna else CDNA_DPP):
      return f"{name}:{value - base}"
  return f"dpp_ctrl:{value:#x}"

def parse_dpp(name: str, text: str, generation: Generation) -> int:
  """The code of a lane permutation. name, text: the parts before and after the colon."""
  if name in (RDNA_DPP if generation.cdna else CDNA_DPP): raise ParseError(f"{generation.arch} has no {name}")
  if name == "quad_perm":
    lanes = parse_list(text, name)
    if len(lanes) != 4 or max(lanes) > 3: raise ParseError(f"quad_perm must be four lanes in 0..3, got {text}")
    return sum(lane << 2 * i for i, lane in enumerate(lanes))
  if name in DPP_PLAIN: return DPP_PLAIN[name]
  count = integer(text, name)
  if name == "dpp_ctrl": return count
  if name == "row_bcast":
    if count not in DPP_BROADCAST: raise ParseError(f"row_bcast must be 15 or 31, got {count}")
    return DPP_BROADCAST[count]
  base, low, high = DPP_COUNTED[name]
  if not low <= count <= high: raise ParseError(f"{name} must be in {low}..{high}, got {count}")
  return base + count

def parse_list(text: str, what: str) -> list[int]:
  """Parse a list of integers: [0,1,2]."""
  if text[:1] != "[" or text[-1:] != "]": raise ParseError(f"{what} must be a list like [0,1], got {text or 'nothing'}")
  return [integer(word, what) for word in text[1:-1].split(",")]

def parse_swizzle(text: str) -> int:
  """Parse the offset of ds_swizzle: swizzle(BITMASK_PERM,"00p11"), (BROADCAST,16,0), (QUAD_PERM,0,1,2,3), (SWAP,2) or
  (REVERSE,4)."""
  mode, *words = [w.strip() for w in text[text.index("(") + 1:].rstrip(")").split(",")]
  if mode == "BITMASK_PERM" and len(words) == 1 and re.fullmatch(r'"[01pi]{5}"', words[0]):
    bits = words[0][1:-1]
    masks = [sum(1 << 4 - i for i, c in enumerate(bits) if c in chars) for chars in ("pi", "1", "i")]  # and, or, xor
    return masks[0] | masks[1] << 5 | masks[2] << 10
  numbers = [integer(w, f"an operand of swizzle({mode})") for w in words if mode != "BITMASK_PERM"]
  if mode == "QUAD_PERM" and len(numbers) == 4 and max(numbers) < 4:
    return 0x8000 | sum(n << 2 * i for i, n in enumerate(numbers))
  if mode == "BROADCAST" and len(numbers) == 2 and numbers[0] in (2, 4, 8, 16, 32) and numbers[1] < numbers[0]:
    return 32 - numbers[0] | numbers[1] << 5
  if mode == "SWAP" and numbers in ([1], [2], [4], [8], [16]): return 31 | numbers[0] << 10
  if mode == "REVERSE" and numbers in ([2], [4], [8], [16], [32]): return 31 | numbers[0] - 1 << 10
  raise ParseError(f"{text} is no permutation: BITMASK_PERM with five of 0, 1, p, i in quotes, BROADCAST, QUAD_PERM, "
                   f"SWAP or REVERSE are")
