"""The AArch64 rows of AdvSIMD loads and stores of structures, in the notation of table.py. They have no offset: the base
alone, or with the base advanced by the whole size or by a register. Source: DDI 0487, section C4.1.94."""
from __future__ import annotations

# name, registers, opcode (bits 15:12), variants
ALL = "8b 16b 4h 8h 2s 4s 2d"
STRUCTURES = (("1", 4, "0010", f"1d {ALL}"), ("1", 3, "0110", f"1d {ALL}"), ("1", 2, "1010", f"1d {ALL}"), ("1", 1, "0111", f"1d {ALL}"),
              ("2", 2, "1000", ALL), ("3", 3, "0100", ALL), ("4", 4, "0000", ALL))
# element -> opcode bits 15:14, then bits 12:10, where i is part of the index
LANES = (("b", "00", "iii"), ("h", "01", "ii0"), ("s", "10", "i00"), ("d", "10", "001"))

def whole(load: bool) -> str:
  """The lines of whole registers."""
  lines, name, mark = [], "ld" if load else "st", "=" if load else ""
  for end, count, code, variants in STRUCTURES:
    data, tail = f"{{ Vd.T*{count}{mark} }}", f"{code}ZZnnnnnddddd"
    lines += [f"{name}{end}  0Q0011000{int(load)}000000{tail}  {data}, [Xn|sp]  {variants}",
              f"{name}{end}  0Q0011001{int(load)}011111{tail}  {data}, [Xn|sp+], #<T*{count}>  {variants}",
              f"{name}{end}  0Q0011001{int(load)}0mmmmm{tail}  {data}, [Xn|sp+], Xm|30  {variants}"]
  return "\n".join(lines) + "\n"

def lanes(load: bool) -> str:
  """The lines of one element of each register. The index has the bits Q, S and size, as far as the element leaves them."""
  lines, name, mark = [], "ld" if load else "st", "+" if load else ""
  for count in (1, 2, 3, 4):
    odd, high = "01"[count % 2 == 0], "01"[count > 2]
    for element, code, low in LANES:
      data = f"{{ Vd.{element}*{count}{mark} }}[<qi>]" if "i" in low else f"{{ Vd.{element}*{count}{mark} }}[<q>]"
      head, tail = "0q001101", f"{code}{high}{low}nnnnnddddd"
      size = {"b": 1, "h": 2, "s": 4, "d": 8}[element] * count
      lines += [f"{name}{count}  {head}0{int(load)}{odd}00000{tail}  {data}, [Xn|sp]",
                f"{name}{count}  {head}1{int(load)}{odd}11111{tail}  {data}, [Xn|sp+], #{size}",
                f"{name}{count}  {head}1{int(load)}{odd}mmmmm{tail}  {data}, [Xn|sp+], Xm|30"]
  return "\n".join(lines) + "\n"

def replicated() -> str:
  """The lines of loads that fill each register with one element."""
  lines = []
  for count in (1, 2, 3, 4):
    odd, high = "01"[count % 2 == 0], "01"[count > 2]
    data, tail = f"{{ Vd.T*{count}= }}", f"11{high}0ZZnnnnnddddd"
    lines += [f"ld{count}r  0Q00110101{odd}00000{tail}  {data}, [Xn|sp]  1d {ALL}",
              f"ld{count}r  0Q00110111{odd}11111{tail}  {data}, [Xn|sp+], #<E*{count}>  1d {ALL}",
              f"ld{count}r  0Q00110111{odd}mmmmm{tail}  {data}, [Xn|sp+], Xm|30  1d {ALL}"]
  return "\n".join(lines) + "\n"

TEXT = ("@ load_structure base load\n" + whole(True) + lanes(True) + replicated()
        + "@ store_structure base store\n" + whole(False) + lanes(False))
