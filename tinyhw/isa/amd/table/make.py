"""Make the rows of AMD instructions from the lines of the table. The notation is explained in table.py.

A line has several encodings (short, long, DPP, SDWA) with operands of different kinds. `make_row` groups them:
encodings with the same operands form one row. The encoder uses the first one that fits.
"""
from __future__ import annotations
from collections.abc import Collection, Sequence

from tinyhw.isa.amd.table import regs
from tinyhw.isa.amd.table.form import EFFECTS, INTEGERS, MX_UNITS, Encoding, Form, Generation, Spec, type_of
from tinyhw.isa.amd.table.line import TableLine, Token
from tinyhw.machine.ir.inst import Access, Effect, Inst, Operand

# Kinds of an operand by its name; "a" too if the generation has accumulation registers.
KINDS = {"sdst": "s", "ssrc0": "scl", "ssrc1": "scl", "sdata": "s", "sbase": "s", "saddr": "s", "srsrc": "s",
         "soffset": "sc",
         "vaddr": "v", "addr": "v"}
DATA = ("vdst", "vdata", "data0", "data1")
# Value of a field for which the row has no operand.
FIELD_VALUES = {"op_sel_hi": 7, "dst_sel": 6}
OTHER_FIELD = {"literal": ("literalx", "literaly"), "vsrc1": ("src1",), "vdst": ("sdst",), "neg_lo": ("neg",),
               "neg_hi": ("abs",)}
# Implied value of a modifier that is left out, if not 0.
IMPLIED = {"op_sel_hi": 7, "row_mask": 15, "bank_mask": 15, "src0_sel": 6, "src1_sel": 6, "dst_sel": 6}
NEWBCAST = 0x150  # row_newbcast:0, the first of CDNA's lane permutations for 64 bits
# The modifiers of formats, in the order of a row's operands; a row has those for which one of its encodings has a
# field.
LANES = ("dpp_ctrl", "row_mask", "bank_mask", "bound_ctrl")
PARTS = ("dst_sel", "dst_unused", "src0_sel", "src1_sel")
MATRIX = ("op_sel", "op_sel_hi", "cbsz", "abid", "blgp")
MEMORY = ("offset", "offset0", "offset1", "idxen", "offen", "sc0", "nt", "sc1", "glc", "slc", "dlc", "th", "scope",
          "format", "gds")
# Number that is added to a short opcode in VOP3.
PROMOTED = {"vopc": {"cdna": 0, "rdna3": 0, "rdna4": 0}, "vop2": {"cdna": 0x100, "rdna3": 0x100, "rdna4": 0x100},
            "vop1": {"cdna": 0x140, "rdna3": 0x180, "rdna4": 0x180}}

def make_row(key: str, line: TableLine, suffix: str, generation: Generation) -> Inst | None:
  """The row of a line with a suffix; None if the instruction has no such form."""
  group = suffix.replace("_e64", "").replace("_e32", "")
  variants = [v for v in encodings_of(line, generation) if fits_suffix(v[0], group)]
  chosen = [v for v in variants if group == suffix or v[0] == suffix]
  if not chosen or suffix == "_rtn" and "atomic" not in line.words: return None
  tokens = [t for t in line.operands if not ("atomic" in line.words and t.name == "vdst" and suffix != "_rtn")]
  specs = [spec_of(token, line, suffix, generation) for token in tokens]
  specs += modifiers_of(line, suffix, variants, specs, generation)
  encodings = tuple(encoding_of(v, line, specs, suffix, generation) for v in chosen)
  reads = names_after("reads:", line.words) + (() if line.pipe in SCALAR_PIPES else ("exec",))
  writes = names_after("writes:", line.words)
  form = Form(key, line.mnemonic, generation, tuple(specs), encodings, reads, writes,
              counter_of(line, suffix, generation), line.words)
  effects = sum({EFFECTS[w] for w in line.words if w in EFFECTS})
  if "scc" in reads: effects |= Effect.READ_FLAGS
  if "scc" in writes: effects |= Effect.WRITE_FLAGS
  clobbers = tuple((regs.SGPR, regs.SPECIAL[w][0] + i) for w in writes if w in regs.SPECIAL
                   for i in range(regs.SPECIAL[w][1]))
  name = line.name + ("_rtn" if suffix == "_rtn" else "")
  operands = tuple(machine_operand(spec, line.words) for spec in specs)
  row = Inst(name, line.text, operands, line.pipe, effects, isa=form, clobbers=clobbers)
  form.row = row
  return row

def make_pair(x: TableLine, y: TableLine, generation: Generation) -> Inst:
  """The row of two operations in one instruction."""
  tokens = [token._replace(name=placed(token.name, place)) for line, place in ((x, "x"), (y, "y"))
            for token in line.operands]
  specs = [spec_of(token, x, "", generation) for token in tokens]
  literal = any(spec.integer == "k32" for spec in specs)
  encoding = encoding_of(("", "vopd_k" if literal else "vopd", x.op << 5 | y.op, {}), x, specs, "", generation)
  encoding.needs.clear()
  reads = names_after("reads:", x.words | y.words) + ("exec",)
  key = f"{x.name}::{y.name}"
  form = Form(key, f"{x.mnemonic} :: {y.mnemonic}", generation, tuple(specs), (encoding,), reads,
              words=x.words | y.words,
              first_operands=len(x.operands))
  row = Inst(key, f"{x.text} :: {y.text}", tuple(map(machine_operand, specs)), "dual", isa=form)
  form.row = row
  return row

def names_after(start: str, words: frozenset[str]) -> tuple[str, ...]:
  """The names after "reads:" and similar prefixes, in the same order in every process."""
  return tuple(word[len(start):] for word in sorted(words) if word.startswith(start))

def placed(name: str, place: str) -> str:
  """The name of a slot in the first (x) or second (y) operation: vsrc1 is vsrcx1 or vsrcy1."""
  return name[:-1] + place + name[-1] if name[-1].isdigit() else name + place

SCALAR_PIPES = ("salu", "smem", "branch")

Variant = tuple[str, str, int, dict[str, int]]  # suffix of the text, format, opcode, values of fields

def encodings_of(line: TableLine, generation: Generation) -> list[Variant]:
  """All encodings of a line, shorter ones first."""
  base, op = line.format, line.op
  words = line.words
  found: list[Variant] = []
  names = {token.name for token in line.operands}
  if base == "smem" and generation.cdna:
    return [("", name, op, {}) for name in (("smem_imm", "smem_register", "smem_both") if "soffset" in names
                                            else ("smem_none",))]
  if base in PROMOTED and "short" not in words:
    found += [("_e32", base, op, {}), ("_e64", long_format(line), op + PROMOTED[base][generation.family], {})]
  else: found.append(("", base + ("_k" if "literal" in names else ""), op, {}))
  if base[:3] != "vop": return found
  wide = any(has_several_registers(token) for token in line.operands) or "literal" in names
  for suffix, name, code, _ in list(found) if not wide or generation.cdna and "literal" not in names else ():
    long = "" if suffix != "_e64" and base in PROMOTED else "_e64"
    if name + "_dpp" in generation.formats and "nodpp" not in words and not (long and "nodpp64" in words):
      found.append((f"{long}_dpp", name + "_dpp", code, {}))
    if (name + "_dpp8" in generation.formats and "nodpp" not in words and "nodpp8" not in words
        and not (long and "nodpp64" in words)):
      found += [(f"{long}_dpp8", name + "_dpp8", code, {}), (f"{long}_dpp8", name + "_dpp8fi", code, {"fi": 1})]
    if name + "_sdwa" in generation.formats and not wide and "nosdwa" not in words:
      found.append(("_sdwa", name + "_sdwa", code, {}))
  return found

def has_several_registers(token: Token) -> bool:
  """Whether an operand has more than one register. Lanes are permuted one register at a time."""
  return token.type not in ("mask", "mx", *INTEGERS) and type_of(token.type, 32).units > 1

def long_format(line: TableLine) -> str:
  """The long format of a line: VOP3 or, with two destinations, VOP3SD."""
  names = {token.name for token in line.operands}
  return "vop3sd" if "vdst" in names and "sdst" in names else "vop3"

def fits_suffix(encoding: str, group: str) -> bool:
  """Whether an encoding belongs to a group: the plain ones (and _rtn), _dpp, _dpp8 or _sdwa."""
  if group in ("", "_rtn"): return encoding in ("", "_e32", "_e64")
  return encoding in (group, "_e64" + group)

MASKS = {"k16": 0xffff, "gpr_idx": 15, "length": 31}  # masks of integers that do not fill their field

def spec_of(token: Token, line: TableLine, suffix: str, generation: Generation) -> Spec:
  """The operand for a word of a line, in a form of the row."""
  if token.type in INTEGERS:
    return Spec(token.name, token.access, "i", integer=token.type, mask=MASKS.get(token.type, -1))
  name, access = token.name, token.access
  kinds = token.kinds or KINDS.get(name, "vscl")
  if name[:4] in ("vdst", "vsrc") and not token.kinds: kinds = "v"
  if name in DATA and not token.kinds: kinds = "va" if generation.cdna and line.format in ACCUMULATING else "v"
  if token.type == "mask" and name in ("src2", "sdst"): kinds = token.kinds or "s"
  if "dpp" in suffix:
    if (name in ("src0", "src1") or "vdpp" in line.words) and "v" in kinds: kinds = "v"
    if name == "vdst": access = Access.BOTH
  if suffix == "_rtn" and name == "vdata" and line.format == "mubuf": access = Access.BOTH
  if suffix == "_sdwa":
    if name in ("src0", "src1") and not token.kinds: kinds = "vs"
    if name == "vdst": access = Access.BOTH
  kind = type_of(token.type, generation.wave) if token.type != "address" else None
  if kind is not None and "twice" in line.words: kind = kind._replace(twice=True)
  if kind is None: sizes: tuple[int, ...] = (2, 1) if name == "vaddr" else (2,)
  else: sizes = tuple(dict.fromkeys(MX_UNITS)) if kind.name == "mx" else (kind.units,)
  files = {"v": generation.vectors, "s": regs.S, "m": regs.S, "a": regs.AE}
  classes = tuple(files[k][n] for k in kinds if k in files for n in sizes if n in files[k])
  implied = generation.vcc if token.type == "mask" else None
  return Spec(name, access, kinds, kind, classes, token.optional, implied=implied)

ACCUMULATING = ("ds", "ds2", "flat", "global", "scratch", "mubuf")

def modifiers_of(line: TableLine, suffix: str, variants: Sequence[Variant], specs: list[Spec],
                 generation: Generation) -> list[Spec]:
  """The modifiers of a form: those that the line allows and an encoding has a field for."""
  fields = {name for _, form, _, _ in variants for name in generation.formats[form].fields}
  if "mix" in line.words: fields |= {"neg", "abs"}  # they are called neg_lo and neg_hi there
  if "halves" in line.words: fields.add("op_sel")   # short encodings have it in the fields of registers
  if "dpp8" in suffix: fields.add("fi")             # the code of src0 tells it
  fixed = {word.partition(":")[0] for word in line.words if ":" in word}
  implied = usual_modifiers(line, suffix, generation)
  found = []
  for name in modifier_names(line, suffix, specs, generation):
    if name not in fields or name in fixed: continue
    usual = implied.get(name, 0)
    mask = mask_of(name, specs, line, usual, generation)
    found.append(Spec(name, Access.READ, "i", show=False, implied=usual, integer=name, mask=mask))
  return found

def modifier_names(line: TableLine, suffix: str, specs: list[Spec], generation: Generation) -> list[str]:
  """The modifiers that a form may have, in the order of the row's operands."""
  given = {word.partition("=")[0] for word in line.words}
  more = ["fi", *names_after("only:", line.words)]
  if line.format[:3] == "vop": return [*vector_names(line, suffix, specs, given), *more]
  if line.format[:4] == "mfma": return [*(name for name in MATRIX if f"no{name}" not in given), *more]
  return [*(name for name in MEMORY if "bare" not in given and (name != "gds" or not generation.cdna)), *more]

def vector_names(line: TableLine, suffix: str, specs: list[Spec], given: set[str]) -> list[str]:
  """The modifiers of vector arithmetic. given: the words of the line up to "="."""
  sdwa, packed = suffix == "_sdwa", "vop3p" in line.format
  reads_floats = any(spec.type is not None and spec.type.floating for spec in specs if spec.name[:3] == "src")
  gives_floats = bool(specs) and specs[0].type is not None and specs[0].type.floating
  names: list[str] = []
  if "mix" in given: names += ["neg", "abs"]
  elif (reads_floats or "neg" in given) and "noneg" not in given:
    names += ["neg_lo", "neg_hi"] if packed else ["neg", "abs"]
  elif sdwa and "noneg" not in given: names.append("sext")
  if "op_sel" in given: names.append("op_sel")
  if "clamp" in given or sdwa: names.append("clamp")
  if "omod" in given and (gives_floats or not sdwa): names.append("omod")
  if "op_sel" in given: names.append("op_sel_hi")
  names.append("bitop3")
  if "dpp8" in suffix: names.append("dpp8")
  elif "dpp" in suffix: names += LANES
  if sdwa: names += PARTS if "nodst" not in given else PARTS[2:]
  return names

def usual_modifiers(line: TableLine, suffix: str, generation: Generation) -> dict[str, int]:
  """Values of modifiers that are left out, if not 0."""
  usual = dict(IMPLIED)
  if line.format == "mfma_scale" or "mix" in line.words: usual["op_sel_hi"] = 0
  if line.format == "mtbuf": usual["format"] = 1
  if generation.cdna and suffix == "_dpp" and any(map(has_several_registers, line.operands)):
    usual["dpp_ctrl"] = NEWBCAST
  return usual

def mask_of(name: str, specs: list[Spec], line: TableLine, implied: int, generation: Generation) -> int:
  """The bits of a modifier: one for each source that it can change."""
  sources = [spec for spec in specs if spec.name in ("src0", "src1", "src2")]
  every = (1 << len(sources)) - 1
  given = next((w for w in line.words if w.partition("=")[0] == name and "=" in w), "")
  if given: return int(given.partition("=")[2].split("/")[-1 if generation.wave == 64 else 0])
  if name in ("neg", "abs") and "mix" not in line.words:
    return sum(1 << i for i, s in enumerate(sources) if s.type is not None and s.type.floating)
  if name in ("neg", "abs", "sext", "neg_lo", "neg_hi", "op_sel_hi"): return every
  if name == "op_sel" and "halves" in line.words:
    return sum(1 << bit for spec, bit in zip(specs, bits_of_op_sel(specs)) if bit >= 0 and is_half(spec))
  if name == "op_sel" and line.format != "mfma_scale": return every | (8 if "vop3p" not in line.format else 0)
  return 15 if implied == NEWBCAST else -1

def is_half(spec: Spec) -> bool:
  """Whether an operand is half of a vector register."""
  return spec.type is not None and spec.type.half and "v" in spec.kinds

def bits_of_op_sel(specs: list[Spec]) -> list[int]:
  """The bit of op_sel of each operand; -1 if there is none."""
  sources = [spec.name for spec in specs if spec.name in ("src0", "src1", "src2")]
  return [3 if spec.name == "vdst" else sources.index(spec.name) if spec.name in sources else -1 for spec in specs]

def encoding_of(variant: Variant, line: TableLine, specs: list[Spec], suffix: str, generation: Generation) -> Encoding:
  """Map the operands of a form to the fields of an encoding."""
  ending, name, op, extra = variant
  form = generation.formats[name]
  index = {spec.name: i for i, spec in enumerate(specs)}
  values: dict[str, int] = {"op": op}
  places: dict[str, int] = {}
  for word in line.words:
    key, _, value = word.partition(":")
    if value.isdecimal() and key in form.fields: values[key] = int(value)
  if "atomic" in line.words and generation.family != "rdna4":
    values["sc0" if generation.cdna else "glc"] = int(suffix == "_rtn")
  for bits in form.fields:
    if bits in values or bits == "acc": continue
    operand = next((n for n in (bits, *OTHER_FIELD.get(bits, ())) if n in index), None)
    if operand is not None: places[bits] = index[operand]
    elif bits == "saddr": values[bits] = 124 if generation.family == "rdna4" else 0
    else: values[bits] = FIELD_VALUES.get(bits, 0)
  halves: dict[str, int] = {}
  if "halves" in line.words:
    bits_of = bits_of_op_sel(specs)
    halves = {field: bits_of[i] for field, i in places.items() if is_half(specs[i])}
  elsewhere = {*places.values(), *([index["op_sel"]] if halves else [])}
  needs = {i: extra.get(spec.name, spec.implied) for i, spec in enumerate(specs) if i not in elsewhere}
  literal = ("dpp" not in name and "sdwa" not in name and not (generation.cdna and name[:4] in ("vop3", "mfma"))
             and name[:4] != "mfma")
  wide = {field: specs[i] for field, i in places.items() if form.fields[field].width >= 8
          and field not in VECTOR_FIELDS}
  sources = tuple(field for field, spec in wide.items() if "c" in spec.kinds and "sdwa" not in name)
  return Encoding(ending, form, name, values, needs, places, literal, sources, halves)

VECTOR_FIELDS = ("vsrc1", "vsrcx1", "vsrcy1")  # fields of eight bits with a vector register

def machine_operand(spec: Spec, words: Collection[str] = ()) -> Operand:
  """The operand for the machine code that all ISAs share. words: properties of the instruction."""
  return Operand(spec.name, spec.access, spec.classes[0] if spec.classes else None,
                 "reg" if spec.classes else spec.integer, optional=spec.optional,
                 early="early" in words and spec.name == "vdst", shared="early:sum" in words and spec.name == "src2")

# Counter of an instruction in flight, by pipe: for loads, and for instructions that only store.
COUNTERS = {
  "cdna": {"vmem": ("vmcnt", "vmcnt"), "flat": ("vmcnt+lgkmcnt", "vmcnt+lgkmcnt"), "lds": ("lgkmcnt", "lgkmcnt"),
           "smem": ("lgkmcnt", "lgkmcnt"),
           "message": ("lgkmcnt", "lgkmcnt")},
  "rdna3": {"vmem": ("vmcnt", "vscnt"), "flat": ("vmcnt+lgkmcnt", "vscnt+lgkmcnt"), "lds": ("lgkmcnt", "lgkmcnt"),
            "smem": ("lgkmcnt", "lgkmcnt"),
            "message": ("lgkmcnt", "lgkmcnt")},
  "rdna4": {"vmem": ("loadcnt", "storecnt"), "flat": ("loadcnt+dscnt", "storecnt+dscnt"), "lds": ("dscnt", "dscnt"),
            "smem": ("kmcnt", "kmcnt"),
            "message": ("kmcnt", "kmcnt")},
}

def counter_of(line: TableLine, suffix: str, generation: Generation) -> str:
  """The counter of a row while it is in flight, or "". Atomics that return nothing count as stores."""
  stores = "atomic" in line.words and suffix != "_rtn" or "store" in line.words and "load" not in line.words
  return COUNTERS[generation.family].get(line.pipe, ("", ""))[stores]
