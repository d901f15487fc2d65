"""Show and parse the modifiers after the operands of AMD text. A modifier is an integer operand of the row, by its
name.

Sources: the ISA guides; the spelling is LLVM's.
"""
from __future__ import annotations
from tinyhw.errors import ParseError
from tinyhw.isa.amd.asm.immediates import (
  DPP_COUNTED, DPP_PLAIN, integer, parse_dpp, parse_list, parse_swizzle, show_dpp)
from tinyhw.isa.amd.table.form import Form
from tinyhw.machine.notation.text import one_of

FLAGS = ("clamp", "glc", "slc", "dlc", "sc0", "nt", "sc1", "idxen", "offen", "gds", "lds")
OMOD = {"mul:2": 1, "mul:4": 2, "div:2": 3}
SELECT = ("BYTE_0", "BYTE_1", "BYTE_2", "BYTE_3", "WORD_0", "WORD_1", "DWORD")
NAMED = {"src0_sel": SELECT, "src1_sel": SELECT, "dst_sel": SELECT,
         "dst_unused": ("UNUSED_PAD", "UNUSED_SEXT", "UNUSED_PRESERVE"),
         "scope": ("SCOPE_CU", "SCOPE_SE", "SCOPE_DEV", "SCOPE_SYS")}
TH = {"LOAD": ("RT", "NT", "HT", "LU", "NT_RT", "RT_NT", "NT_HT"),
      "STORE": ("RT", "NT", "HT", "WB", "NT_RT", "RT_NT", "NT_HT", "NT_WB"),
      "ATOMIC": ("RT", "RETURN", "NT", "NT_RETURN", "CASCADE_RT", "", "CASCADE_NT")}
BYPASS, SYSTEM = 3, 3  # th, scope: bypass all caches
ALSO = {"BYPASS": BYPASS, "RT_RETURN": 1, "RT_WB": 3}
LISTS = ("op_sel", "op_sel_hi", "neg_lo", "neg_hi")
HEXADECIMAL = ("row_mask", "bank_mask", "bitop3")
ALWAYS = ("row_mask", "bank_mask", "dst_sel", "dst_unused", "src0_sel", "src1_sel", "dpp_ctrl", "dpp8")
SPELLED = {"bound_ctrl": "bound_ctrl:1", "fi": "fi:1"}
IN_OPERANDS = ("neg", "abs", "sext")
# Modifiers that come first in the text, in this order; the others follow in the order of the row.
FIRST = ("bitop3", "op_sel", "op_sel_hi", "neg_lo", "neg_hi", "clamp", "omod", "format", "idxen", "offen")

def sources(form: Form) -> list[int]:
  """The operands that the bits of op_sel, neg and abs apply to, in order: bit i belongs to the i-th of them."""
  return [i for i, spec in enumerate(form.specs) if spec.show and spec.name in ("src0", "src1", "src2")]

def kind_of_access(form: Form) -> str:
  """LOAD, STORE or ATOMIC, as in the names of th."""
  return "ATOMIC" if "atomic" in form.words else "STORE" if "store" in form.words else "LOAD"

def show_all(form: Form, operands: list[int]) -> list[str]:
  """The words after the operands."""
  names = [spec.name for spec in form.specs if not spec.show and spec.name not in IN_OPERANDS]
  words = []
  if "halves" in form.words: names.remove("op_sel")  # the names of the registers show it
  for name in sorted(names, key=lambda n: FIRST.index(n) if n in FIRST else len(FIRST)):
    value = operands[form.index[name]]
    if value != form.specs[form.index[name]].implied or name in ALWAYS:
      words.append(show_one(form, name, value, operands))
  words += [word for word in FLAGS if any(encoding.values.get(word) and f"{word}:1" in form.words
                                          for encoding in form.encodings)]
  words += [flag for flag in ("glc", "sc0") if form.key.endswith("_rtn") and form.encodings[0].values.get(flag)]
  return words

def show_one(form: Form, name: str, value: int, operands: list[int]) -> str:
  """The text of a modifier."""
  if name in SPELLED: return SPELLED[name]
  if name in FLAGS: return name
  if name == "omod": return next(word for word, code in OMOD.items() if code == value)
  if name == "dpp_ctrl": return show_dpp(value, form.generation)
  if name == "dpp8": return f"dpp8:[{','.join(str(value >> 3 * i & 7) for i in range(8))}]"
  if name == "op_sel" and "byte_sel" in form.words: return f"byte_sel:{byte_of(form, value)}"
  if name == "op_sel" and "index_key" in form.words: return f"index_key:{value}"
  if name == "blgp" and "f64" in form.key: return f"neg:[{','.join(str(value >> i & 1) for i in range(3))}]"
  if name in LISTS: return f"{name}:[{','.join(str(bit) for bit in bits_of(form, name, value))}]"
  if name == "th":
    words = TH[kind_of_access(form)]
    if value == BYPASS and operands[form.index["scope"]] == SYSTEM and "atomic" not in form.words:
      return f"th:TH_{kind_of_access(form)}_BYPASS"
    return f"th:TH_{kind_of_access(form)}_{words[value]}" if value < len(words) and words[value] else f"th:{value}"
  if name in NAMED: return f"{name}:{NAMED[name][value]}" if value < len(NAMED[name]) else f"{name}:{value}"
  return f"{name}:{hex(value) if name in HEXADECIMAL else value}"

def whole_op_sel(form: Form, name: str) -> bool:
  """Whether the modifier is op_sel of VOP3, whose bit 3 stands for the destination."""
  return name == "op_sel" and form.encodings[-1].format_name.partition("_")[0] == "vop3"

def bits_of(form: Form, name: str, value: int) -> list[int]:
  """The bits of a list modifier, one for each source. op_sel of VOP3 has the destination's bit (3) after them."""
  count = len(sources(form))
  bits = [value >> i & 1 for i in range(4)]
  if not whole_op_sel(form, name): return bits[:count]
  if named_bit_by_bit(form, name): return bits
  return bits[:2] if "lanes" in form.words else bits[:count] + bits[3:]

def named_bit_by_bit(form: Form, name: str) -> bool:
  """Whether the text lists all four bits of op_sel.

  It does so if bits 2 and 3 select the byte of the result to write, and there are only two sources.
  """
  return bool(form.specs[form.index[name]].mask & 7 & -1 << len(sources(form)))

BYTE_BITS = {"v_cvt_f32": (1, 0), "v_cvt_sr_": (2, 3)}  # bits of op_sel that select the byte, the low one first

def byte_bits(form: Form) -> tuple[int, int]:
  return next(bits for start, bits in BYTE_BITS.items() if form.key.startswith(start))

def byte_of(form: Form, value: int) -> int:
  """The value of byte_sel, which is spread over op_sel."""
  low, high = byte_bits(form)
  return value >> low & 1 | (value >> high & 1) << 1

def parse_one(form: Form, word: str) -> tuple[str, int]:
  """The (name, value) of a word of the text. Raises ParseError."""
  name, colon, text = word.partition(":")
  if word in FLAGS: return word, 1
  if word in OMOD: return "omod", OMOD[word]
  if name in ("quad_perm", "row_bcast", "dpp_ctrl", *DPP_COUNTED, *DPP_PLAIN):
    return "dpp_ctrl", parse_dpp(name, text, form.generation)
  if not colon: raise ParseError(f"{word} is no modifier")
  if name == "dpp8":
    lanes = parse_list(text, name)
    if len(lanes) != 8 or max(lanes) > 7: raise ParseError(f"dpp8 must be eight lanes in 0..7, got {text}")
    return name, sum(lane << 3 * i for i, lane in enumerate(lanes))
  if name == "byte_sel" and "byte_sel" in form.words:
    low, high = byte_bits(form)
    value = integer(text, name)
    return "op_sel", (value & 1) << low | (value >> 1) << high
  if name == "index_key" and "index_key" in form.words: return "op_sel", integer(text, name)
  if name in LISTS or name == "neg" and form.encodings[0].format_name == "mfma":
    return parse_bits(form, name, parse_list(text, name))
  if name == "th" and text[:3] == "TH_": return name, parse_th(form, text)
  if name == "offset" and text[:8] == "swizzle(": return name, parse_swizzle(text)
  if name == "format" and text == "[BUF_FMT_INVALID]": return name, 0
  if name in NAMED and text in NAMED[name]: return name, NAMED[name].index(text)
  if name in NAMED and not text.isdecimal(): raise ParseError(f"{name} must be {one_of(NAMED[name])}, got {text}")
  return name, integer(text, name)

def parse_bits(form: Form, name: str, bits: list[int]) -> tuple[str, int]:
  """Parse a list of bits for the sources; see bits_of."""
  if not set(bits) <= {0, 1}: raise ParseError(f"{name} must be a list of 0 and 1, got {bits}")
  if name == "neg": return "blgp", sum(bit << i for i, bit in enumerate(bits))
  count = len(sources(form))
  most = 4 if whole_op_sel(form, name) else count
  if len(bits) > most: raise ParseError(f"{name} of {form.mnemonic} has at most {most} bits, got {len(bits)}")
  if len(bits) == count + 1 and not named_bit_by_bit(form, name): bits = bits[:count] + [0] * (3 - count) + bits[count:]
  value = sum(bit << i for i, bit in enumerate(bits))
  if name == "op_sel_hi" and form.encodings[0].format_name[:5] == "vop3p": value |= 7 & -1 << len(bits)
  return name, value

def parse_th(form: Form, text: str) -> int:
  """Parse a temporal hint such as TH_LOAD_NT."""
  kind = kind_of_access(form)
  _, given, rest = text.split("_", 2)
  if given != kind: raise ParseError(f"th of this instruction is TH_{kind}_..., got {text}")
  if rest in ALSO: return ALSO[rest]
  if rest not in TH[kind]:
    raise ParseError(f"th must be {one_of([f'TH_{kind}_{n}' for n in TH[kind] if n])}, got {text}")
  return TH[kind].index(rest)
