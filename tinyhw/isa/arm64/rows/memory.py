"""The AArch64 rows of loads and stores of single registers and pairs, of exclusive and atomic accesses, in the notation
of table.py. Source: DDI 0487, section C4.1.94.

A load or store has eleven forms that differ in the address. `access` writes their lines.
"""
from __future__ import annotations

# the end of the mnemonic, size and kind (bits 31:30 and 23:22), the register, and the logarithm of the bytes
GENERAL = (
  ("strb", "00", "00", "Wd", 0), ("ldrb", "00", "01", "Wd", 0), ("ldrsb", "00", "10", "Xd", 0), ("ldrsb", "00", "11", "Wd", 0),
  ("strh", "01", "00", "Wd", 1), ("ldrh", "01", "01", "Wd", 1), ("ldrsh", "01", "10", "Xd", 1), ("ldrsh", "01", "11", "Wd", 1),
  ("str", "10", "00", "Wd", 2), ("ldr", "10", "01", "Wd", 2), ("ldrsw", "10", "10", "Xd", 2),
  ("str", "11", "00", "Xd", 3), ("ldr", "11", "01", "Xd", 3),
)
VECTOR = (
  ("str", "00", "00", "Bd", 0), ("ldr", "00", "01", "Bd", 0), ("str", "00", "10", "Qd", 4), ("ldr", "00", "11", "Qd", 4),
  ("str", "01", "00", "Hd", 1), ("ldr", "01", "01", "Hd", 1), ("str", "10", "00", "Sd", 2), ("ldr", "10", "01", "Sd", 2),
  ("str", "11", "00", "Dd", 3), ("ldr", "11", "01", "Dd", 3),
)

def access(name: str, size: str, kind: str, register: str, log: int, vector: str) -> str:
  """The lines of a load or store with all addresses but literals."""
  head, data = f"{size}111{vector}0", register + "=" * (name[0] == "l")
  scaled = f"#<i*{1 << log}>" if log else "#<i>"
  lines = [f"{name}  {head}1{kind}iiiiiiiiiiiinnnnnddddd  {data}, [Xn|sp(, {scaled})]"]
  if name[:2] in ("ld", "st"):
    lines += [f"{name}  {head}0{kind}0iiiiiiiii01nnnnnddddd  {data}, [Xn|sp+], #<s:i>  -  back",
              f"{name}  {head}0{kind}0iiiiiiiii11nnnnnddddd  {data}, [Xn|sp+, #<s:i>]!  -  back"]
  by_register = f"{name}  {head}0{kind}1mmmmm"
  lines += [f"{by_register}011010nnnnnddddd  {data}, [Xn|sp, Xm]",
            f"{by_register}011110nnnnnddddd  {data}, [Xn|sp, Xm, lsl #{log}]",
            f"{by_register}o10010nnnnnddddd  {data}, [Xn|sp, Wm, <scale32:o>]",
            f"{by_register}o10110nnnnnddddd  {data}, [Xn|sp, Wm, <scale32:o> #{log}]",
            f"{by_register}111010nnnnnddddd  {data}, [Xn|sp, Xm, sxtx]",
            f"{by_register}111110nnnnnddddd  {data}, [Xn|sp, Xm, sxtx #{log}]"]
  unscaled = f"{head}0{kind}0iiiiiiiii00nnnnnddddd  {data}, [Xn|sp(, #<s:i>)]"
  lines += [f"{unscaled_name(name)}  {unscaled}", f"{name}  {unscaled}  -  unseen"]
  if not vector == "1" and name[:2] in ("ld", "st"):
    lines.append(f"{name[:2]}t{name[2:]}  {head}0{kind}0iiiiiiiii10nnnnnddddd  {data}, [Xn|sp(, #<s:i>)]")
  return "\n".join(lines) + "\n"

def unscaled_name(name: str) -> str:
  """The mnemonic with an offset in bytes: ldr -> ldur, prfm -> prfum."""
  return f"{name[:-1]}u{name[-1]}" if name == "prfm" else f"{name[:2]}u{name[2:]}"

def accesses(rows: tuple[tuple[str, str, str, str, int], ...], vector: str, loads: bool) -> str:
  return "".join(access(*row, vector) for row in rows if (row[0][0] == "l") == loads)

def pairs(name: str, opc: str, register: str, log: int, vector: str, modes: str = "nopw") -> str:
  """The lines of a load or store of two registers."""
  load = name[0] == "l"
  data = f"{register}d{'=' * load}, {register}a{'=' * load}"
  offset = f"#<s:i*{1 << log}>"
  forms = {"n": (f"{name[:2]}np", "000", f"[Xn|sp(, {offset})]", ""), "o": (name, "010", f"[Xn|sp(, {offset})]", "pair"),
           "p": (name, "001", f"[Xn|sp+], {offset}", "back pair"), "w": (name, "011", f"[Xn|sp+, {offset}]!", "back pair")}
  return "".join(f"{mnemonic}  {opc}101{vector}{mode}{int(load)}iiiiiiiaaaaannnnnddddd  {data}, {address}  -  {words}\n"
                 for mnemonic, mode, address, words in (forms[m] for m in modes))

GENERAL_PAIRS = (("00", "W", 2), ("10", "X", 3))
VECTOR_PAIRS = (("00", "S", 2), ("01", "D", 3), ("10", "Q", 4))

SINGLE = "".join((
  "@ load base load\n", accesses(GENERAL, "0", True),
  "ldr    00011000iiiiiiiiiiiiiiiiiiiddddd  Wd=, #<label:i*4>\n", "ldr    01011000iiiiiiiiiiiiiiiiiiiddddd  Xd=, #<label:i*4>\n",
  "ldrsw  10011000iiiiiiiiiiiiiiiiiiiddddd  Xd=, #<label:i*4>\n",
  "@ store base store\n", accesses(GENERAL, "0", False),
  "@ prefetch base\n", access("prfm", "11", "10", "<prefetch:d>", 3, "0"),
  "prfm   11011000iiiiiiiiiiiiiiiiiiiddddd  <prefetch:d>, #<label:i*4>\n",
  "@ load_vector base load\n", accesses(VECTOR, "1", True),
  "ldr    00011100iiiiiiiiiiiiiiiiiiiddddd  Sd=, #<label:i*4>\n", "ldr    01011100iiiiiiiiiiiiiiiiiiiddddd  Dd=, #<label:i*4>\n",
  "ldr    10011100iiiiiiiiiiiiiiiiiiiddddd  Qd=, #<label:i*4>\n",
  "@ store_vector base store\n", accesses(VECTOR, "1", False),
  "@ load_pair base load\n", *(pairs("ldp", *row, "0") for row in GENERAL_PAIRS), pairs("ldpsw", "01", "X", 2, "0", "opw"),
  "@ store_pair base store\n", *(pairs("stp", *row, "0") for row in GENERAL_PAIRS),
  "@ load_pair_vector base load\n", *(pairs("ldp", *row, "1") for row in VECTOR_PAIRS),
  "@ store_pair_vector base store\n", *(pairs("stp", *row, "1") for row in VECTOR_PAIRS),
  """@ load pauth load
ldraa  111110000j1iiiiiiiii01nnnnnddddd  Xd=, [Xn|sp(, #<s:ji*8>)]
ldraa  111110000j1iiiiiiiii11nnnnnddddd  Xd=, [Xn|sp+, #<s:ji*8>]!  -  back
ldrab  111110001j1iiiiiiiii01nnnnnddddd  Xd=, [Xn|sp(, #<s:ji*8>)]
ldrab  111110001j1iiiiiiiii11nnnnnddddd  Xd=, [Xn|sp+, #<s:ji*8>]!  -  back
"""))

# mnemonic, and the bits that make it one of the family
LSE_LOADS = (("add", "0000"), ("clr", "0001"), ("eor", "0010"), ("set", "0011"), ("smax", "0100"), ("smin", "0101"),
             ("umax", "0110"), ("umin", "0111"))
ORDERS = (("", "0", "0"), ("a", "1", "0"), ("l", "0", "1"), ("al", "1", "1"))   # acquire and release
SIZES = (("b", "00", "W"), ("h", "01", "W"), ("", "10", "W"), ("", "11", "X"))

def lse() -> str:
  """The lines of the atomic operations of LSE. A result in wzr or xzr has no acquire: stadd is ldadd with it."""
  lines = ["@ atomic lse load store"]
  for end, size, r in SIZES:
    for order, acquire, release in ORDERS:
      bits = f"{size}111000{acquire}{release}1mmmmm"
      for name, code in LSE_LOADS:
        if acquire == "0":
          lines.append(f"st{name}{order}{end}  {bits}{code}00nnnnn11111  {r}m, [Xn|sp]  -  alias")
        lines.append(f"ld{name}{order}{end}  {bits}{code}00nnnnnddddd  {r}m, {r}d=, [Xn|sp]")
      lines.append(f"swp{order}{end}  {bits}100000nnnnnddddd  {r}m, {r}d=, [Xn|sp]")
      lines.append(f"cas{order}{end}  {size}0010001{acquire}1mmmmm{release}11111nnnnnddddd  {r}m+, {r}d, [Xn|sp]")
      if not end:
        lines.append(f"casp{order}  0{size[1]}0010000{acquire}1mmmm0{release}11111nnnnndddd0  {r}m*2+, {r}m*2+1, {r}d*2, {r}d*2+1, "
                     "[Xn|sp]")
  return "\n".join(lines) + "\n"

def exclusive() -> str:
  """The lines of exclusive and ordered accesses."""
  lines = []
  for end, size, r in SIZES:
    lines += ["@ load_ordered base load", f"ldar{end}  {size}00100011011111111111nnnnnddddd  {r}d=, [Xn|sp]",
              f"ldaxr{end}  {size}00100001011111111111nnnnnddddd  {r}d=, [Xn|sp]",
              f"ldxr{end}  {size}00100001011111011111nnnnnddddd  {r}d=, [Xn|sp]",
              f"ldlar{end}  {size}00100011011111011111nnnnnddddd  {r}d=, [Xn|sp]  -  @lor",
              f"ldapr{end}  {size}11100010111111110000nnnnnddddd  {r}d=, [Xn|sp]  -  @rcpc",
              "@ store_ordered base store", f"stlr{end}  {size}00100010011111111111nnnnnddddd  {r}d, [Xn|sp]",
              f"stllr{end}  {size}00100010011111011111nnnnnddddd  {r}d, [Xn|sp]  -  @lor",
              f"stlxr{end}  {size}001000000mmmmm111111nnnnnddddd  Wm=, {r}d, [Xn|sp]  -  status",
              f"stxr{end}  {size}001000000mmmmm011111nnnnnddddd  Wm=, {r}d, [Xn|sp]  -  status"]
    if not end:
      lines += ["@ load_ordered base load", f"ldaxp  {size}001000011111111aaaaannnnnddddd  {r}d=, {r}a=, [Xn|sp]",
                f"ldxp  {size}001000011111110aaaaannnnnddddd  {r}d=, {r}a=, [Xn|sp]",
                "@ store_ordered base store", f"stlxp  {size}001000001mmmmm1aaaaannnnnddddd  Wm=, {r}d, {r}a, [Xn|sp]  -  status",
                f"stxp  {size}001000001mmmmm0aaaaannnnnddddd  Wm=, {r}d, {r}a, [Xn|sp]  -  status"]
    lines += ["@ store_ordered rcpc-immo store", f"stlur{end}  {size}011001000iiiiiiiii00nnnnnddddd  {r}d, [Xn|sp(, #<s:i>)]",
              "@ load_ordered rcpc-immo load", f"ldapur{end}  {size}011001010iiiiiiiii00nnnnnddddd  {r}d=, [Xn|sp(, #<s:i>)]"]
  for end, size, registers in (("sb", "00", ("W", "X")), ("sh", "01", ("W", "X")), ("sw", "10", ("X",))):
    lines += [f"ldapur{end}  {size}011001{'11' if x == 'W' else '10'}0iiiiiiiii00nnnnnddddd  {x}d=, [Xn|sp(, #<s:i>)]" for x in registers]
  return "\n".join(lines) + "\n"

TEXT = SINGLE + lse() + exclusive()
