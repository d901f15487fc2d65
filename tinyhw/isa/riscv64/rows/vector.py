"""The RISC-V rows of the V extension, version 1.0: lines for table.py, made from tables of operations.

An operation has six bits (funct6) and forms. The form is the end of the mnemonic:

    vv vx vi vf       a vector, and a vector, an integer register, 5 bits, a float register
    wv wx wi wf       the same; the first source is twice as wide
    vs                a reduction
    vvm vxm vim       a source of bits in v0

Each line but those of whole registers, bits and scalars has a variant that v0 masks.

Sources: RISC-V Unprivileged ISA, version 20240411, chapter "V"; riscv-opcodes, rv_v. Pipes are groups of operations
that processors treat alike.
"""
from __future__ import annotations

# funct6, forms; properties after "|": uimm (5 bits without a sign), apart (the result is no source), apart1 (not the
# narrower source), wide (the result is twice as wide)
INTEGER = {
  "vec_int": """
vadd 000000 vv vx vi
vsub 000010 vv vx
vrsub 000011 vx vi
vminu 000100 vv vx
vmin 000101 vv vx
vmaxu 000110 vv vx
vmax 000111 vv vx
vand 001001 vv vx vi
vor 001010 vv vx vi
vxor 001011 vv vx vi
vsll 100101 vv vx vi |uimm
vsrl 101000 vv vx vi |uimm
vsra 101001 vv vx vi |uimm
""", "vec_compare": """
vmseq 011000 vv vx vi |bits
vmsne 011001 vv vx vi |bits
vmsltu 011010 vv vx |bits
vmslt 011011 vv vx |bits
vmsleu 011100 vv vx vi |bits
vmsle 011101 vv vx vi |bits
vmsgtu 011110 vx vi |bits
vmsgt 011111 vx vi |bits
""", "vec_fixed": """
vsaddu 100000 vv vx vi
vsadd 100001 vv vx vi
vssubu 100010 vv vx
vssub 100011 vv vx
vsmul 100111 vv vx
vssrl 101010 vv vx vi |uimm
vssra 101011 vv vx vi |uimm
""", "vec_narrow": """
vnsrl 101100 wv wx wi |uimm
vnsra 101101 wv wx wi |uimm
vnclipu 101110 wv wx wi |uimm
vnclip 101111 wv wx wi |uimm
""", "vec_permute": """
vrgather 001100 vv vx vi |uimm apart
vrgatherei16 001110 vv |apart
vslideup 001110 vx vi |uimm apart old
vslidedown 001111 vx vi |uimm
""", "vec_reduce": """
vwredsumu 110000 vs |bits
vwredsum 110001 vs |bits
"""}

MULTIPLY = {
  "vec_fixed": """
vaaddu 001000 vv vx
vaadd 001001 vv vx
vasubu 001010 vv vx
vasub 001011 vv vx
""", "vec_permute": """
vslide1up 001110 vx |apart
vslide1down 001111 vx
""", "vec_mul": """
vmulhu 100100 vv vx
vmul 100101 vv vx
vmulhsu 100110 vv vx
vmulh 100111 vv vx
""", "vec_div": """
vdivu 100000 vv vx
vdiv 100001 vv vx
vremu 100010 vv vx
vrem 100011 vv vx
""", "vec_muladd": """
vmadd 101001 vv vx |add
vnmsub 101011 vv vx |add
vmacc 101101 vv vx |add
vnmsac 101111 vv vx |add
vwmaccu 111100 vv vx |add apart
vwmacc 111101 vv vx |add apart
vwmaccus 111110 vx |add apart
vwmaccsu 111111 vv vx |add apart
""", "vec_widen": """
vwaddu 110000 vv vx |apart
vwadd 110001 vv vx |apart
vwsubu 110010 vv vx |apart
vwsub 110011 vv vx |apart
vwaddu 110100 wv |apart1
vwadd 110101 wv |apart1
vwsubu 110110 wv |apart1
vwsub 110111 wv |apart1
vwaddu 110100 wx
vwadd 110101 wx
vwsubu 110110 wx
vwsub 110111 wx
vwmulu 111000 vv vx |apart
vwmulsu 111010 vv vx |apart
vwmul 111011 vv vx |apart
""", "vec_reduce": """
vredsum 000000 vs |bits
vredand 000001 vs |bits
vredor 000010 vs |bits
vredxor 000011 vs |bits
vredminu 000100 vs |bits
vredmin 000101 vs |bits
vredmaxu 000110 vs |bits
vredmax 000111 vs |bits
"""}

FLOAT = {
  "vec_fp_add": """
vfadd 000000 vv vf
vfsub 000010 vv vf
vfrsub 100111 vf
""", "vec_fp_mul": """
vfmul 100100 vv vf
""", "vec_fp_minmax": """
vfmin 000100 vv vf
vfmax 000110 vv vf
""", "vec_fp_move": """
vfsgnj 001000 vv vf
vfsgnjn 001001 vv vf
vfsgnjx 001010 vv vf
""", "vec_permute": """
vfslide1up 001110 vf |apart
vfslide1down 001111 vf
""", "vec_fp_compare": """
vmfeq 011000 vv vf |bits
vmfle 011001 vv vf |bits
vmflt 011011 vv vf |bits
vmfne 011100 vv vf |bits
vmfgt 011101 vf |bits
vmfge 011111 vf |bits
""", "vec_fp_div": """
vfdiv 100000 vv vf
vfrdiv 100001 vf
""", "vec_fp_fma": """
vfmadd 101000 vv vf |add
vfnmadd 101001 vv vf |add
vfmsub 101010 vv vf |add
vfnmsub 101011 vv vf |add
vfmacc 101100 vv vf |add
vfnmacc 101101 vv vf |add
vfmsac 101110 vv vf |add
vfnmsac 101111 vv vf |add
vfwmacc 111100 vv vf |add apart
vfwnmacc 111101 vv vf |add apart
vfwmsac 111110 vv vf |add apart
vfwnmsac 111111 vv vf |add apart
""", "vec_fp_widen": """
vfwadd 110000 vv vf |apart
vfwsub 110010 vv vf |apart
vfwadd 110100 wv |apart1
vfwsub 110110 wv |apart1
vfwadd 110100 wf
vfwsub 110110 wf
vfwmul 111000 vv vf |apart
""", "vec_reduce": """
vfredusum 000001 vs |bits
vfredosum 000011 vs |bits
vfredmin 000101 vs |bits
vfredmax 000111 vs |bits
vfwredusum 110001 vs |bits
vfwredosum 110011 vs |bits
"""}

# bits 14 to 12 by the last letter of a form, for operations of integers, of multiplication, of floats
KINDS = {"I": {"v": "000", "i": "011", "x": "100", "s": "000"}, "M": {"v": "010", "x": "110", "s": "010"},
         "F": {"v": "001", "f": "101", "s": "001"}}
SOURCE = {"v": "Vn", "s": "Vn", "x": "Xn", "f": "Fn"}

def both(name: str, funct: str, middle: str, width: str, operands: str, words: str = "", opcode: str = "1010111",
         result: str = "d") -> list[str]:
  """The lines of an instruction without and with a mask. A masked result keeps elements of the old one.

  middle: bits 24 to 15; operands: after the result. Properties "bits": the result is bits or a scalar, and may be v0.
  """
  found = words.split()
  early = "!" if {"apart", "apart1"} & set(found) else ""
  old = "+" if "old" in found or "add" in found else "="
  rest = " ".join(word for word in found if word in ("apart", "apart1"))
  masked = rest if "bits" in found else f"{rest} masked".strip()
  plain = f"{name}  {funct}1{middle}{width}ddddd{opcode}  Vd{early}{old}{operands}  -  {rest or '-'}"
  other = f"{name}  {funct}0{middle}{width}ddddd{opcode}  Vd{early if 'bits' in found else '!'}+{operands}, v0.t  -  {masked or '-'}"
  return [plain.replace("  -  -", ""), other.replace("  -  -", "")]

def arithmetic(kind: str, groups: dict[str, str]) -> list[str]:
  lines = []
  for pipe, text in groups.items():
    lines.append(f"@ {pipe} v")
    for row in filter(None, text.split("\n")):
      plain, _, words = row.partition("|")
      name, funct, *forms = plain.split()
      for form in forms:
        last = form[-1]
        source = SOURCE.get(last) or ("<i>" if "uimm" in words else "<s:i>")
        middle = "mmmmm" + ("iiiii" if last == "i" else "nnnnn")
        order = f", {source}, Vm" if "add" in words else f", Vm, {source}"
        lines += both(f"{name}.{form}", funct, middle, KINDS[kind][last], order, words)
  return lines

# one source: name, funct6, bits 19 to 15, bits 14 to 12, pipe, properties
UNARY = """
vzext.vf8 010010 00010 010 vec_int apart
vsext.vf8 010010 00011 010 vec_int apart
vzext.vf4 010010 00100 010 vec_int apart
vsext.vf4 010010 00101 010 vec_int apart
vzext.vf2 010010 00110 010 vec_int apart
vsext.vf2 010010 00111 010 vec_int apart
vfcvt.xu.f.v 010010 00000 001 vec_fp_convert
vfcvt.x.f.v 010010 00001 001 vec_fp_convert
vfcvt.f.xu.v 010010 00010 001 vec_fp_convert
vfcvt.f.x.v 010010 00011 001 vec_fp_convert
vfcvt.rtz.xu.f.v 010010 00110 001 vec_fp_convert
vfcvt.rtz.x.f.v 010010 00111 001 vec_fp_convert
vfwcvt.xu.f.v 010010 01000 001 vec_fp_convert apart
vfwcvt.x.f.v 010010 01001 001 vec_fp_convert apart
vfwcvt.f.xu.v 010010 01010 001 vec_fp_convert apart
vfwcvt.f.x.v 010010 01011 001 vec_fp_convert apart
vfwcvt.f.f.v 010010 01100 001 vec_fp_convert apart
vfwcvt.rtz.xu.f.v 010010 01110 001 vec_fp_convert apart
vfwcvt.rtz.x.f.v 010010 01111 001 vec_fp_convert apart
vfncvt.xu.f.w 010010 10000 001 vec_fp_convert
vfncvt.x.f.w 010010 10001 001 vec_fp_convert
vfncvt.f.xu.w 010010 10010 001 vec_fp_convert
vfncvt.f.x.w 010010 10011 001 vec_fp_convert
vfncvt.f.f.w 010010 10100 001 vec_fp_convert
vfncvt.rod.f.f.w 010010 10101 001 vec_fp_convert
vfncvt.rtz.xu.f.w 010010 10110 001 vec_fp_convert
vfncvt.rtz.x.f.w 010010 10111 001 vec_fp_convert
vfsqrt.v 010011 00000 001 vec_fp_sqrt
vfrsqrt7.v 010011 00100 001 vec_fp_estimate
vfrec7.v 010011 00101 001 vec_fp_estimate
vfclass.v 010011 10000 001 vec_fp_move
vmsbf.m 010100 00001 010 vec_mask apart
vmsof.m 010100 00010 010 vec_mask apart
vmsif.m 010100 00011 010 vec_mask apart
viota.m 010100 10000 010 vec_mask apart
"""

def unary() -> list[str]:
  lines = []
  for row in filter(None, UNARY.split("\n")):
    name, funct, middle, width, pipe, *words = row.split()
    lines += [f"@ {pipe} v", *both(name, funct, "mmmmm" + middle, width, ", Vm", " ".join(words))]
  return lines

# spellings that the disassembler prefers: another operation with a fixed operand
ALIASES = """
@ vec_int v alias
vneg.v  0000111mmmmm00000100ddddd1010111  Vd=, Vm
vneg.v  0000110mmmmm00000100ddddd1010111  Vd!+, Vm, v0.t  -  masked
vnot.v  0010111mmmmm11111011ddddd1010111  Vd=, Vm
vnot.v  0010110mmmmm11111011ddddd1010111  Vd!+, Vm, v0.t  -  masked
vwcvt.x.x.v   1100011mmmmm00000110ddddd1010111  Vd!=, Vm  -  apart
vwcvt.x.x.v   1100010mmmmm00000110ddddd1010111  Vd!+, Vm, v0.t  -  apart masked
vwcvtu.x.x.v  1100001mmmmm00000110ddddd1010111  Vd!=, Vm  -  apart
vwcvtu.x.x.v  1100000mmmmm00000110ddddd1010111  Vd!+, Vm, v0.t  -  apart masked
vncvt.x.x.w   1011001mmmmm00000100ddddd1010111  Vd=, Vm
vncvt.x.x.w   1011000mmmmm00000100ddddd1010111  Vd!+, Vm, v0.t  -  masked
@ vec_fp_move v alias
vfneg.v  0010011mmmmmnnnnn001ddddd1010111  Vd=, Vmn
vfneg.v  0010010mmmmmnnnnn001ddddd1010111  Vd!+, Vmn, v0.t  -  masked
vfabs.v  0010101mmmmmnnnnn001ddddd1010111  Vd=, Vmn
vfabs.v  0010100mmmmmnnnnn001ddddd1010111  Vd!+, Vmn, v0.t  -  masked
@ vec_mask v alias
vmmv.m  0110011mmmmmnnnnn010ddddd1010111  Vd=, Vmn
vmnot.m  0111011mmmmmnnnnn010ddddd1010111  Vd=, Vmn
vmclr.m  0110111mmmmmnnnnn010ddddd1010111  Vdmn=
vmset.m  0111111mmmmmnnnnn010ddddd1010111  Vdmn=
"""

SPECIAL = """
@ vec_config v
vsetivli  11iiiiiiiiiijjjjj111ddddd1010111  Xd=, <j>, <vtype:i>
vsetvli  0iiiiiiiiiiinnnnn111ddddd1010111  Xd=, Xn, <vtype:i>
vsetvl   1000000mmmmmnnnnn111ddddd1010111  Xd=, Xn, Xm
@ vec_int v
vmv.v.v  010111100000nnnnn000ddddd1010111  Vd=, Vn
vmv.v.x  010111100000nnnnn100ddddd1010111  Vd=, Xn
vmv.v.i  010111100000iiiii011ddddd1010111  Vd=, <s:i>
vfmv.v.f  010111100000nnnnn101ddddd1010111  Vd=, Fn
vmerge.vvm  0101110mmmmmnnnnn000ddddd1010111  Vd!=, Vm, Vn, v0  -  masked
vmerge.vxm  0101110mmmmmnnnnn100ddddd1010111  Vd!=, Vm, Xn, v0  -  masked
vmerge.vim  0101110mmmmmiiiii011ddddd1010111  Vd!=, Vm, <s:i>, v0  -  masked
vfmerge.vfm  0101110mmmmmnnnnn101ddddd1010111  Vd!=, Vm, Fn, v0  -  masked
vadc.vvm  0100000mmmmmnnnnn000ddddd1010111  Vd!=, Vm, Vn, v0  -  masked
vadc.vxm  0100000mmmmmnnnnn100ddddd1010111  Vd!=, Vm, Xn, v0  -  masked
vadc.vim  0100000mmmmmiiiii011ddddd1010111  Vd!=, Vm, <s:i>, v0  -  masked
vsbc.vvm  0100100mmmmmnnnnn000ddddd1010111  Vd!=, Vm, Vn, v0  -  masked
vsbc.vxm  0100100mmmmmnnnnn100ddddd1010111  Vd!=, Vm, Xn, v0  -  masked
@ vec_compare v
vmadc.vvm  0100010mmmmmnnnnn000ddddd1010111  Vd=, Vm, Vn, v0
vmadc.vxm  0100010mmmmmnnnnn100ddddd1010111  Vd=, Vm, Xn, v0
vmadc.vim  0100010mmmmmiiiii011ddddd1010111  Vd=, Vm, <s:i>, v0
vmadc.vv  0100011mmmmmnnnnn000ddddd1010111  Vd=, Vm, Vn
vmadc.vx  0100011mmmmmnnnnn100ddddd1010111  Vd=, Vm, Xn
vmadc.vi  0100011mmmmmiiiii011ddddd1010111  Vd=, Vm, <s:i>
vmsbc.vvm  0100110mmmmmnnnnn000ddddd1010111  Vd=, Vm, Vn, v0
vmsbc.vxm  0100110mmmmmnnnnn100ddddd1010111  Vd=, Vm, Xn, v0
vmsbc.vv  0100111mmmmmnnnnn000ddddd1010111  Vd=, Vm, Vn
vmsbc.vx  0100111mmmmmnnnnn100ddddd1010111  Vd=, Vm, Xn
@ vec_mask v
vmandn.mm  0110001mmmmmnnnnn010ddddd1010111  Vd=, Vm, Vn
vmand.mm  0110011mmmmmnnnnn010ddddd1010111  Vd=, Vm, Vn
vmor.mm  0110101mmmmmnnnnn010ddddd1010111  Vd=, Vm, Vn
vmxor.mm  0110111mmmmmnnnnn010ddddd1010111  Vd=, Vm, Vn
vmorn.mm  0111001mmmmmnnnnn010ddddd1010111  Vd=, Vm, Vn
vmnand.mm  0111011mmmmmnnnnn010ddddd1010111  Vd=, Vm, Vn
vmnor.mm  0111101mmmmmnnnnn010ddddd1010111  Vd=, Vm, Vn
vmxnor.mm  0111111mmmmmnnnnn010ddddd1010111  Vd=, Vm, Vn
vid.v    01010010000010001010ddddd1010111  Vd=
vid.v    01010000000010001010ddddd1010111  Vd!+, v0.t  -  masked
@ vec_to_int v
vcpop.m  0100001mmmmm10000010ddddd1010111  Xd=, Vm
vcpop.m  0100000mmmmm10000010ddddd1010111  Xd=, Vm, v0.t
vfirst.m  0100001mmmmm10001010ddddd1010111  Xd=, Vm
vfirst.m  0100000mmmmm10001010ddddd1010111  Xd=, Vm, v0.t
vmv.x.s  0100001mmmmm00000010ddddd1010111  Xd=, Vm
vfmv.f.s  0100001mmmmm00000001ddddd1010111  Fd=, Vm
@ vec_from_int v
vmv.s.x  010000100000nnnnn110ddddd1010111  Vd+, Xn
vfmv.s.f  010000100000nnnnn101ddddd1010111  Vd+, Fn
@ vec_permute v
vcompress.vm  0101111mmmmmnnnnn010ddddd1010111  Vd!=, Vm, Vn  -  apart
@ vec_move v
vmv1r.v  1001111mmmmm00000011ddddd1010111  Vd=, Vm
vmv2r.v  1001111mmmmm00001011ddddd1010111  Vd*2/2=, Vm*2/2
vmv4r.v  1001111mmmmm00011011ddddd1010111  Vd*4/4=, Vm*4/4
vmv8r.v  1001111mmmmm00111011ddddd1010111  Vd*8/8=, Vm*8/8
"""

ACCESS_WIDTHS = (("8", "000"), ("16", "101"), ("32", "110"), ("64", "111"))

def whole() -> list[str]:
  """The lines of accesses of whole registers and of masks."""
  lines = ["@ vec_load v load", "vlm.v  000000101011nnnnn000ddddd0000111  Vd=, <no:z>[Xn]"]
  for count, bits in ((1, "000"), (2, "001"), (4, "011"), (8, "111")):
    group = f"*{count}/{count}" if count > 1 else ""
    lines += [f"vl{count}r.v  {bits}000101000nnnnn000ddddd0000111  Vd{group}=, <no:z>[Xn]  -  alias"]
    lines += [f"vl{count}re{size}.v  {bits}000101000nnnnn{width}ddddd0000111  Vd{group}=, <no:z>[Xn]"
              for size, width in ACCESS_WIDTHS]
  lines += ["@ vec_store v store", "vsm.v  000000101011nnnnn000ddddd0100111  Vd, <no:z>[Xn]"]
  return lines + [f"vs{count}r.v  {bits}000101000nnnnn000ddddd0100111  Vd{f'*{count}/{count}' if count > 1 else ''}, "
                  "<no:z>[Xn]" for count, bits in ((1, "000"), (2, "001"), (4, "011"), (8, "111"))]

# mnemonic with the number of fields and the bits of an element, bits 28 to 26, bits 24 to 20, operands after the base
ACCESSES = (("e{w}", "000", "00000", ""), ("se{w}", "010", "mmmmm", ", Xm"),
            ("uxei{w}", "001", "mmmmm", ", Vm"), ("oxei{w}", "011", "mmmmm", ", Vm"), ("e{w}ff", "000", "10000", ""))

def accesses() -> list[str]:
  """The lines of loads and stores of elements: adjacent, at a stride, at indices, up to the first fault; of one to
  eight fields."""
  lines = []
  for load in (True, False):
    lines.append("@ vec_load v load" if load else "@ vec_store v store")
    for name, kind, middle, rest in ACCESSES:
      if name.endswith("ff") and not load: continue
      for fields in range(1, 9):
        for size, width in ACCESS_WIDTHS:
          lines += access(name.format(w=size), fields, kind, middle, width, rest, load)
  return lines

def access(name: str, fields: int, kind: str, middle: str, width: str, rest: str, load: bool) -> list[str]:
  """The two lines of one access: without and with a mask."""
  mnemonic = ("vl" if load else "vs") + ("seg" + str(fields) if fields > 1 else "")
  mnemonic = access_name(mnemonic, name, fields)
  word = f"{fields - 1:03b}{kind}{{}}{middle}nnnnn{width}ddddd{'0000111' if load else '0100111'}"
  group = f"*{fields}" if fields > 1 else ""
  apart = load and fields > 1 and "Vm" in rest
  base = f", <no:z>[Xn]{rest}"
  if not load: return [f"{mnemonic}  {word.format(m)}  Vd{group}{base}{', v0.t' * (m == '0')}" for m in "10"]
  return [f"{mnemonic}  {word.format('1')}  Vd{group}{'!' * apart}={base}{'  -  apart' * apart}",
          f"{mnemonic}  {word.format('0')}  Vd{group}!+{base}, v0.t  -  masked{' apart' * apart}"]

def access_name(head: str, name: str, fields: int) -> str:
  """vl and e32 -> vle32.v; vlseg3 and uxei8 -> vluxseg3ei8.v; vlseg2 and se16 -> vlsseg2e16.v."""
  if fields == 1: return f"{head}{name}.v"
  kind, element = (name[:2], name[2:]) if name[:2] in ("ux", "ox") else ("s", name[1:]) if name[0] == "s" else ("", name)
  return f"{head[:2]}{kind}{head[2:]}{element}.v"

TEXT = "\n".join([*arithmetic("I", INTEGER), *arithmetic("M", MULTIPLY), *arithmetic("F", FLOAT), *unary(),
                  *ALIASES.split("\n"), *SPECIAL.split("\n"), *whole(), *accesses()]) + "\n"
