"""AMD rows of vector comparisons (VOPC), in the notation of table.py.

v_cmp writes a bit for each lane into a mask, v_cmpx into exec; on CDNA v_cmpx writes both. The predicates of a type
have consecutive opcodes. Opcodes of v_cmpx are 10 (CDNA) or 80 (RDNA) higher, in hexadecimal. RDNA4 has no predicate
that is always false or always true. RDNA3 has none for 16-bit integers.
"""
from __future__ import annotations

FLOAT = "f lt eq le gt lg ge o u nge nlg ngt nle neq nlt t".split()
INTEGER = "f lt eq le gt ne ge t".split()
# type: opcode of the first predicate on CDNA and on RDNA
TYPES = {"f16": (0x20, 0x00), "f32": (0x40, 0x10), "f64": (0x60, 0x20), "i16": (0xa0, 0x30), "u16": (0xa8, 0x38), "i32": (0xc0, 0x40),
         "u32": (0xc8, 0x48), "i64": (0xe0, 0x50), "u64": (0xe8, 0x58)}
CLASSES = {"f16": ("b16", 0x14, 0x7d), "f32": ("b32", 0x10, 0x7e), "f64": ("b32", 0x12, 0x7f)}

def compare(name: str, type: str, second: str, cdna: int, rdna: int, always: bool, clamp: str) -> str:
  """The lines of one comparison, as v_cmp and as v_cmpx. always: not all generations have it."""
  alias = f" v_cmp{{x}}_tru_{type}@cdna" if name == "t" and type[0] == "f" else ""
  step = 1 if name == "class" else 0x10
  lines = []
  for x, first, next_, result, effect in (("", cdna, rdna, "mask=", ""), ("x", cdna + step, rdna + 0x80, "mask=@cdna", " writes:exec vdst:126@rdna")):
    cells = f"{first:x} . {'-' if always and type[1:] == '16' and type[0] != 'f' else f'{next_:x}'} {'-' if always else '.'}"
    lines.append(f"v_cmp{x}_{name}_{type}{alias.format(x=x)}  {cells}  {result} src0:{type} src1:{second}  {clamp}{effect}")
  return "\n".join(lines)

TEXT = "@ vopc valu nodpp@cdna\n" + "\n".join(
  [compare(name, type, type, cdna + i, rdna + i, name in ("f", "t"), "clamp" if type[0] == "f" else "")
   for type, (cdna, rdna) in TYPES.items() for i, name in enumerate(FLOAT if type[0] == "f" else INTEGER)] +
  [compare("class", type, second, cdna, rdna, False, "") for type, (second, cdna, rdna) in CLASSES.items()])
