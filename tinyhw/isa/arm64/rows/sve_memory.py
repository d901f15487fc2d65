"""The AArch64 rows of loads, stores and prefetches of SVE, in the notation of table.py.

Each function writes the lines of a group. They differ in the size of elements in memory and in registers, and in the
address. Source: Arm Architecture Reference Manual, DDI 0487, section C4.1 (SVE memory), chapter C8.
"""
from __future__ import annotations

MEMORY = {"b": "00", "h": "01", "w": "10", "d": "11"}       # the end of the mnemonic -> msz
LOG = {"b": 0, "h": 1, "w": 2, "d": 3}
# contiguous loads: the end of the mnemonic, the element in the register, dtype
LOADS = (("b", "b", "0000"), ("b", "h", "0001"), ("b", "s", "0010"), ("b", "d", "0011"), ("sw", "d", "0100"), ("h", "h", "0101"),
         ("h", "s", "0110"), ("h", "d", "0111"), ("sh", "d", "1000"), ("sh", "s", "1001"), ("w", "s", "1010"), ("w", "d", "1011"),
         ("sb", "d", "1100"), ("sb", "s", "1101"), ("sb", "h", "1110"), ("d", "d", "1111"))
STORES = (("b", "b", "00"), ("b", "h", "01"), ("b", "s", "10"), ("b", "d", "11"), ("h", "h", "01"), ("h", "s", "10"), ("h", "d", "11"),
          ("w", "s", "10"), ("w", "d", "11"), ("d", "d", "11"))
TAIL = "gggnnnnnddddd"

def shifted(register: str, end: str) -> str:
  """An index register, times the size in memory."""
  log = LOG[end[-1]]
  return f"{register}, lsl #{log}" if log else register

def contiguous() -> list[str]:
  lines = ["@ load_vector sve load"]
  for end, element, dtype in LOADS:
    data = f"{{ Zd.{element}= }}, Pg/z"
    lines += [f"ld1{end}  1010010{dtype}mmmmm010{TAIL}  {data}, [Xn|sp, {shifted('Xm|30', end)}]",
              f"ld1{end}  1010010{dtype}0iiii101{TAIL}  {data}, [Xn|sp(, #<s:i>, mul vl)]",
              f"ldff1{end}  1010010{dtype}mmmmm011{TAIL}  {data}, [Xn|sp(, {shifted('Xm', end)})]",
              f"ldnf1{end}  1010010{dtype}1iiii101{TAIL}  {data}, [Xn|sp(, #<s:i>, mul vl)]",
              f"ld1r{end}  1000010{dtype[:2]}1iiiiii1{dtype[2:]}{TAIL}  {data}, [Xn|sp(, #<i*{1 << LOG[end[-1]]}>)]"]
  lines.append("@ store_vector sve store")
  for end, element, size in STORES:
    data, head = f"{{ Zd.{element} }}, Pg", f"1110010{MEMORY[end]}{size}"
    lines += [f"st1{end}  {head}mmmmm010{TAIL}  {data}, [Xn|sp, {shifted('Xm|30', end)}]",
              f"st1{end}  {head}0iiii111{TAIL}  {data}, [Xn|sp(, #<s:i>, mul vl)]"]
  return lines

def structures() -> list[str]:
  """Non-temporal accesses, structures of two to four registers, and loads of 16 or 32 bytes into all of a register."""
  loads, stores = ["@ load_structure sve load"], ["@ store_structure sve store"]
  for end, msz in MEMORY.items():
    element = "s" if end == "w" else end
    address, each = f"[Xn|sp, {shifted('Xm|30', end)}]", "[Xn|sp(, #<s:i>, mul vl)]"
    loads += [f"ldnt1{end}  1010010{msz}00mmmmm110{TAIL}  {{ Zd.{element}= }}, Pg/z, {address}",
              f"ldnt1{end}  1010010{msz}000iiii111{TAIL}  {{ Zd.{element}= }}, Pg/z, {each}"]
    stores += [f"stnt1{end}  1110010{msz}00mmmmm011{TAIL}  {{ Zd.{element} }}, Pg, {address}",
               f"stnt1{end}  1110010{msz}001iiii111{TAIL}  {{ Zd.{element} }}, Pg, {each}"]
    for count in (2, 3, 4):
      code, each = f"{count - 1:02b}", f"[Xn|sp(, #<s:i*{count}>, mul vl)]"
      loads += [f"ld{count}{end}  1010010{msz}{code}mmmmm110{TAIL}  {{ Zd.{element}*{count}= }}, Pg/z, {address}",
                f"ld{count}{end}  1010010{msz}{code}0iiii111{TAIL}  {{ Zd.{element}*{count}= }}, Pg/z, {each}"]
      stores += [f"st{count}{end}  1110010{msz}{code}mmmmm011{TAIL}  {{ Zd.{element}*{count} }}, Pg, {address}",
                 f"st{count}{end}  1110010{msz}{code}1iiii111{TAIL}  {{ Zd.{element}*{count} }}, Pg, {each}"]
    for name, code, size, feature in (("q", "00", 16, ""), ("o", "01", 32, "  -  @f64mm")):
      loads += [f"ld1r{name}{end}  1010010{msz}{code}mmmmm000{TAIL}  {{ Zd.{element}= }}, Pg/z, {address}{feature}",
                f"ld1r{name}{end}  1010010{msz}{code}0iiii001{TAIL}  {{ Zd.{element}= }}, Pg/z, [Xn|sp(, #<s:i*{size}>)]{feature}"]
  return loads + stores

def offsets(end: str, element: str) -> list[tuple[str, str]]:
  """The vector indices extended from 32 bits: bits 22:21, and the text."""
  log = LOG[end[-1]]
  scales = [("0", "")] + ([("1", f" #{log}")] if log else [])
  return [(f"{xs}{scale}", f"Zm.{element}, {word}{text}") for xs, word in (("0", "uxtw"), ("1", "sxtw")) for scale, text in scales]

def gathers() -> list[str]:
  """Loads whose addresses are in vectors. ff is 1 for first-fault loads, u for zero-extended elements."""
  lines = ["@ gather sve load"]
  for end in ("b", "h", "w", "d", "sb", "sh", "sw"):
    u, msz, scale = "01"[end[0] != "s"], MEMORY[end[-1]], f"#<i*{1 << LOG[end[-1]]}>"
    for name, ff in (("ld1", "0"), ("ldff1", "1")):
      d, s = f"{name}{end}  1100010{msz}", f"{name}{end}  1000010{msz}"
      data_d, data_s = "{ Zd.d= }, Pg/z", "{ Zd.s= }, Pg/z"
      lines += [f"{d}10mmmmm1{u}{ff}{TAIL}  {data_d}, [Xn|sp, Zm.d]", f"{d}01iiiii1{u}{ff}{TAIL}  {data_d}, [Zn.d(, {scale})]"]
      lines += [f"{d}{code}mmmmm0{u}{ff}{TAIL}  {data_d}, [Xn|sp, {text}]" for code, text in offsets(end, "d")]
      if end[-1] != "b": lines.append(f"{d}11mmmmm1{u}{ff}{TAIL}  {data_d}, [Xn|sp, {shifted('Zm.d', end)}]")
      if end in ("d", "sw"): continue
      lines.append(f"{s}01iiiii1{u}{ff}{TAIL}  {data_s}, [Zn.s(, {scale})]")
      lines += [f"{s}{code}mmmmm0{u}{ff}{TAIL}  {data_s}, [Xn|sp, {text}]" for code, text in offsets(end, "s")]
  lines.append("@ gather sve2 load")
  for end in ("b", "h", "w", "d", "sb", "sh", "sw"):
    u, msz = "01"[end[0] != "s"], MEMORY[end[-1]]
    lines.append(f"ldnt1{end}  1100010{msz}00mmmmm1{u}0{TAIL}  {{ Zd.d= }}, Pg/z, [Zn.d(, Xm)]")
    if end not in ("d", "sw"): lines.append(f"ldnt1{end}  1000010{msz}00mmmmm10{u}{TAIL}  {{ Zd.s= }}, Pg/z, [Zn.s(, Xm)]")
  return lines

def scatters() -> list[str]:
  """Stores whose addresses are in vectors. Bit 22 is 1 for elements of 32 bits."""
  lines = ["@ scatter sve store"]
  for end, msz in MEMORY.items():
    scale, head = f"#<i*{1 << LOG[end]}>", f"st1{end}  1110010{msz}"
    lines += [f"{head}00mmmmm101{TAIL}  {{ Zd.d }}, Pg, [Xn|sp, Zm.d]", f"{head}10iiiii101{TAIL}  {{ Zd.d }}, Pg, [Zn.d(, {scale})]"]
    if end != "b": lines.append(f"{head}01mmmmm101{TAIL}  {{ Zd.d }}, Pg, [Xn|sp, {shifted('Zm.d', end)}]")
    for element, wide in (("d", "0"), ("s", "1")):
      if end == "d" and element == "s": continue
      lines += [f"{head}{wide}{code[1]}mmmmm1{code[0]}0{TAIL}  {{ Zd.{element} }}, Pg, [Xn|sp, {text}]"
                for code, text in offsets(end, element)]
      if element == "s": lines.append(f"{head}11iiiii101{TAIL}  {{ Zd.s }}, Pg, [Zn.s(, {scale})]")
  lines.append("@ scatter sve2 store")
  for end, msz in MEMORY.items():
    lines.append(f"stnt1{end}  1110010{msz}00mmmmm001{TAIL}  {{ Zd.d }}, Pg, [Zn.d(, Xm)]")
    if end != "d": lines.append(f"stnt1{end}  1110010{msz}10mmmmm001{TAIL}  {{ Zd.s }}, Pg, [Zn.s(, Xm)]")
  return lines

def prefetches() -> list[str]:
  lines = ["@ prefetch sve"]
  for end, msz in MEMORY.items():
    log, scale, tail = LOG[end], f"#<i*{1 << LOG[end]}>", "gggnnnnn0pppp"
    data = "<svepref:p>, Pg"
    extend = f" #{log}" if log else ""
    lines += [f"prf{end}  1000010111iiiiii0{msz}{tail}  {data}, [Xn|sp(, #<s:i>, mul vl)]",
              f"prf{end}  1000010{msz}00mmmmm110{tail}  {data}, [Xn|sp, {shifted('Xm|30', end)}]",
              f"prf{end}  1000010{msz}00iiiii111{tail}  {data}, [Zn.s(, {scale})]",
              f"prf{end}  1100010{msz}00iiiii111{tail}  {data}, [Zn.d(, {scale})]",
              f"prf{end}  11000100011mmmmm1{msz}{tail}  {data}, [Xn|sp, {shifted('Zm.d', end)}]"]
    for element, head in (("s", "1000010"), ("d", "1100010")):
      lines += [f"prf{end}  {head}00{xs}1mmmmm0{msz}{tail}  {data}, [Xn|sp, Zm.{element}, {word}{extend}]"
                for xs, word in (("0", "uxtw"), ("1", "sxtw"))]
  return lines

WHOLE = """
@ load_vector sve load
ldr    1000010110iiiiii000iiinnnnn0dddd  Pd=, [Xn|sp(, #<s:i>, mul vl)]
ldr    1000010110iiiiii010iiinnnnnddddd  Zd=, [Xn|sp(, #<s:i>, mul vl)]
@ store_vector sve store
str    1110010110iiiiii000iiinnnnn0dddd  Pd, [Xn|sp(, #<s:i>, mul vl)]
str    1110010110iiiiii010iiinnnnnddddd  Zd, [Xn|sp(, #<s:i>, mul vl)]
"""

TEXT = WHOLE + "\n".join(contiguous() + structures() + gathers() + scatters() + prefetches()) + "\n"
