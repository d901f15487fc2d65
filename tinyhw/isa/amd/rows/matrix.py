"""AMD rows of the matrix units: WMMA and SWMMAC of RDNA, MFMA and SMFMAC of CDNA, in the notation of table.py.

A name has the type of the result, the shape MxNxK, and the types of the sources. On CDNA it also has the number of
products that are computed at once. A lane has elements / lanes of the elements of each matrix. A of a sparse product
has half of its K, and an index that selects the half.

WMMA writes D before it has read all of A and B; D may be C. D of MFMA may overlap A or B; C is D or does not overlap it
(check.py). On RDNA3 both halves of a wave have the same rows of A and B, and 16-bit results use half of each register.

Source: LLVM, VOP3PInstructions.td: the constraints of WMMAInst, and the comments of VOPProfileMAI.NoDstOverlap on the
hardware.
"""
from __future__ import annotations

# opcode on CDNA3 ("-": CDNA4 only), opcode on CDNA4, name
MFMA = """
- 35  f32_16x16x32_bf16
- 36  i32_16x16x64_i8
- 37  f32_32x32x16_bf16
- 38  i32_32x32x32_i8
3e -  f32_16x16x8_xf32
3f -  f32_32x32x4_xf32
40 .  f32_32x32x1_2b_f32
41 .  f32_16x16x1_4b_f32
42 .  f32_4x4x1_16b_f32
44 .  f32_32x32x2_f32
45 .  f32_16x16x4_f32
48 .  f32_32x32x4_2b_f16
49 .  f32_16x16x4_4b_f16
4a .  f32_4x4x4_16b_f16
4c .  f32_32x32x8_f16
4d .  f32_16x16x16_f16
50 .  i32_32x32x4_2b_i8
51 .  i32_16x16x4_4b_i8
52 .  i32_4x4x4_16b_i8
- 54  f32_16x16x32_f16
- 55  f32_32x32x16_f16
56 .  i32_32x32x16_i8
57 .  i32_16x16x32_i8
5d .  f32_32x32x4_2b_bf16
5e .  f32_16x16x4_4b_bf16
5f .  f32_4x4x4_16b_bf16
60 .  f32_32x32x8_bf16
61 .  f32_16x16x16_bf16
6e .  f64_16x16x4_f64
6f .  f64_4x4x4_4b_f64
70 .  f32_16x16x32_bf8_bf8
71 .  f32_16x16x32_bf8_fp8
72 .  f32_16x16x32_fp8_bf8
73 .  f32_16x16x32_fp8_fp8
74 .  f32_32x32x16_bf8_bf8
75 .  f32_32x32x16_bf8_fp8
76 .  f32_32x32x16_fp8_bf8
77 .  f32_32x32x16_fp8_fp8
"""
SMFMAC = """
- 39  f32_16x16x64_bf16
- 3a  i32_16x16x128_i8
- 3b  f32_16x16x128_bf8_bf8
- 3c  f32_16x16x128_bf8_fp8
- 3d  f32_16x16x128_fp8_bf8
- 43  f32_16x16x128_fp8_fp8
- 46  f32_32x32x32_bf16
- 47  i32_32x32x64_i8
- 4b  f32_32x32x64_bf8_bf8
- 4e  f32_32x32x64_bf8_fp8
- 4f  f32_32x32x64_fp8_bf8
- 53  f32_32x32x64_fp8_fp8
- 5a  f32_16x16x64_f16
- 5b  f32_32x32x32_f16
62 .  f32_16x16x32_f16
64 .  f32_32x32x16_f16
66 .  f32_16x16x32_bf16
68 .  f32_32x32x16_bf16
6a .  i32_16x16x64_i8
6c .  i32_32x32x32_i8
78 .  f32_16x16x64_bf8_bf8
79 .  f32_16x16x64_bf8_fp8
7a .  f32_16x16x64_fp8_bf8
7b .  f32_16x16x64_fp8_fp8
7c .  f32_32x32x32_bf8_bf8
7d .  f32_32x32x32_bf8_fp8
7e .  f32_32x32x32_fp8_bf8
7f .  f32_32x32x32_fp8_fp8
"""
# RDNA3 and RDNA4
WMMA = """
40 .  f32_16x16x16_f16
41 .  f32_16x16x16_bf16
42 .  f16_16x16x16_f16
43 .  bf16_16x16x16_bf16
44 .  i32_16x16x16_iu8
45 .  i32_16x16x16_iu4
- 46  f32_16x16x16_fp8_fp8
- 47  f32_16x16x16_fp8_bf8
- 48  f32_16x16x16_bf8_fp8
- 49  f32_16x16x16_bf8_bf8
- 4a  i32_16x16x32_iu4
"""
SWMMAC = """
- 50  f32_16x16x32_f16
- 51  f32_16x16x32_bf16
- 52  f16_16x16x32_f16
- 53  bf16_16x16x32_bf16
- 54  i32_16x16x32_iu8
- 55  i32_16x16x32_iu4
- 56  i32_16x16x64_iu4
- 57  f32_16x16x32_fp8_fp8
- 58  f32_16x16x32_fp8_bf8
- 59  f32_16x16x32_bf8_fp8
- 5a  f32_16x16x32_bf8_bf8
"""

class ProductShape:
  """The shape and types in the name of a matrix instruction."""

  def __init__(self, name: str):
    self.result, size, *rest = name.split("_")
    self.m, self.n, self.k = map(int, size.split("x"))
    self.blocks = int(rest.pop(0)[:-1]) if rest[0][-1] == "b" and rest[0][:-1].isdecimal() else 1
    self.a, self.b = rest[0].replace("xf32", "f32"), rest[-1].replace("xf32", "f32")

def _entries(text: str) -> list[tuple[str, str, str, ProductShape]]:
  """(first opcode, second opcode, name, shape) of the lines."""
  return [(first, second, name, ProductShape(name)) for first, second, name in map(str.split, text.strip().split("\n"))]

def _of(kind: str, elements: int) -> str:
  """The type of a number of elements."""
  return f"{kind}x{elements}" if elements > 1 else kind

def mfma(first: str, second: str, name: str, s: ProductShape, sparse: bool) -> str:
  """A line of MFMA or SMFMAC, for waves of 64 lanes."""
  d = _of(s.result, s.m * s.n * s.blocks // 64)
  a, b = _of(s.a, s.m * s.k * s.blocks // (128 if sparse else 64)), _of(s.b, s.n * s.k * s.blocks // 64)
  operands = f"{d}[va]+ {a}[va] {b}[va] b32[v]" if sparse else f"{d}[va]= {a}[va] {b}[va] {d}[vac]"
  return f"v_{'smfmac' if sparse else 'mfma'}_{name}  {first} {second} - -  {operands}  {'noblgp' if sparse else ''}"

def wmma(op: str, name: str, s: ProductShape, rdna3: bool, sparse: bool) -> str:
  """A line of WMMA or SWMMAC for one generation. After a slash: for waves of 64 lanes."""
  def lanes(kind: str, elements: int) -> str:
    if elements == 64 and kind[-1] == "4" and elements // 64: return f"{kind}x{elements // 32}"
    return f"{kind}x{elements // 32}/{max(1, elements // 64)}"
  if rdna3:
    d = f"{s.result}x{16 if s.result[-2:] == '16' else 8}/{8 if s.result[-2:] == '16' else 4}"
    a, b = f"{s.a}x{s.k}", f"{s.b}x{s.k}"
  else: d, a, b = lanes(s.result, s.m * s.n), lanes(s.a, s.m * s.k // (2 if sparse else 1)), lanes(s.b, s.n * s.k)
  cells = f"- - {op} -" if rdna3 else f"- - - {op}"
  words = signs(s, rdna3, sparse) + (" clamp" if s.result == "i32" else "") + (" op_sel" if rdna3 and s.result[-2:] == "16" else "")
  if sparse: return f"v_swmmac_{name}  {cells}  {d}+ {a}[v] {b}[v] b32[v]  {words} {keys(s)} op_sel_hi:7 index_key"
  return f"v_wmma_{name}  {cells}  {d}= {a}[v] {b}[v] {d}[vc]  {words} early early:sum"

def signs(s: ProductShape, rdna3: bool, sparse: bool) -> str:
  """The properties of neg_lo and neg_hi. Floats have both for each operand. Integers have neg_lo of A and B, for signed
  operands."""
  if rdna3: return "neg"
  if s.a[:2] == "iu": return "neg neg_lo=3 neg_hi=0"
  if s.a[-1] == "8": return "" if sparse else "neg neg_lo=4 neg_hi=4"
  return "neg neg_lo=3 neg_hi=3" if sparse else "neg"

def keys(s: ProductShape) -> str:
  """The number of parts of the index register to choose from. An index has 2 bits for each of K / 4 pairs of 16
  rows."""
  if s.k == 64: return "op_sel=0/1"
  return "op_sel=1/1" if s.a == "iu4" else "op_sel=1/3"

SCALED = """
@ mfma mfma noabid mx
v_mfma_f32_16x16x128_f8f6f4  - 2d - -  f32x4[va]= mx[va] mx[va] f32x4[vac]
v_mfma_f32_32x32x64_f8f6f4   - 2e - -  f32x16[va]= mx[va] mx[va] f32x16[vac]
@ mfma_scale mfma mx
v_mfma_scale_f32_16x16x128_f8f6f4  - 2d - -  f32x4[va]= mx[va] mx[va] f32x4[vac] b32[v] b32[v]
v_mfma_scale_f32_32x32x64_f8f6f4   - 2e - -  f32x16[va]= mx[va] mx[va] f32x16[vac] b32[v] b32[v]
"""
LINES = [mfma(first, second, name, shape, sparse)
         for text, sparse in ((MFMA, False), (SMFMAC, True)) for first, second, name, shape in _entries(text)]
WAVES = [wmma(op if op != "." else first, name, shape, rdna3, sparse)
         for text, sparse in ((WMMA, False), (SWMMAC, True)) for first, second, name, shape in _entries(text)
         for op, rdna3 in ((first, True), (second, False)) if op != "-"]
TEXT = "\n".join(["@ mfma mfma", *LINES, SCALED, "@ vop3p wmma nodpp", *WAVES])
