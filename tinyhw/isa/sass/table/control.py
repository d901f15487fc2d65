"""The control word: the upper bits of each instruction. They say when it may issue, and for which results later
instructions wait.

The text is a prefix of the instruction. `[B0-2---:R3:W-:Y:S04]` waits until scoreboards 0 and 2 are free. It takes
scoreboard 3 until its sources have been read, and none for its result. The next instruction of the warp issues 4 cycles
later; Y prefers another warp meanwhile. Operands that stay in the reuse cache are marked in the instruction
(`R2.reuse`).
"""
from __future__ import annotations
import functools
import re

from tinyhw.errors import EncodeError, ParseError
from tinyhw.named_tuple import NamedTuple

# Bits 105 to 125 of the instruction: the fields of Control, from the lowest one on. The bits above have no name and are
# 0 in all code that was seen.
WIDTHS = {"stall": 4, "yields": 1, "write": 3, "read": 3, "wait": 6, "reuse": 4}
SHIFT = 105
NONE = 7          # no scoreboard
SCOREBOARDS = 6
MOST_STALL = 15
PREFIX = r"\[B([0-5-]{6}):R([0-5-]):W([0-5-]):([Y-]):S(\d\d?)\]\s*"

class Control(NamedTuple):
  """The fields of a control word.

  stall: cycles until the next instruction may issue, 0..15. yields: prefer another warp. write: the scoreboard that is
  taken until the result is written. read: the scoreboard that is taken until the sources are read; 7 is none. wait:
  bits of the scoreboards that must be free. reuse: bits 0 to 2 for sources a, b and c.
  """
  stall: int = 1
  yields: bool = True
  write: int = NONE
  read: int = NONE
  wait: int = 0
  reuse: int = 0

  @functools.lru_cache(maxsize=1 << 12)
  def pack(self) -> int:
    """Return the bits in their positions in the instruction. Raises EncodeError for a value that the hardware does not
    know."""
    for name, board in (("write", self.write), ("read", self.read)):
      if board != NONE and not 0 <= board < SCOREBOARDS:
        raise EncodeError(f"scoreboard {name} must be in 0..5, or 7 for none, got {board}")
    if self.yields and self.stall in (0, *range(12, MOST_STALL + 1)):
      raise EncodeError(f"stall {self.stall} does not go with yields; it goes with stalls 1 to 11")
    word, at = 0, SHIFT
    for (name, width), value in zip(WIDTHS.items(), self):
      if not 0 <= value < 1 << width: raise EncodeError(f"field {name} must be in 0..{(1 << width) - 1}, got {value}")
      word, at = word | value << at, at + width
    return word

  def __str__(self) -> str:
    waits = "".join(str(i) if self.wait >> i & 1 else "-" for i in range(SCOREBOARDS))
    read, write = ("-" if board == NONE else str(board) for board in (self.read, self.write))
    return f"[B{waits}:R{read}:W{write}:{'Y' if self.yields else '-'}:S{self.stall:02d}]"

# of a line without a control word: no waits, and the next instruction may issue in the next cycle
USUAL = Control()

def unpack(word: int) -> Control | None:
  """Return the control word of an instruction. Return None for a word that the hardware does not know."""
  fields, left = [], word >> SHIFT
  for width in WIDTHS.values():
    fields.append(left & (1 << width) - 1)
    left >>= width
  stall, yields, write, read, wait, reuse = fields
  if left or SCOREBOARDS in (read, write) or yields and stall in (0, *range(12, MOST_STALL + 1)): return None
  return Control(stall, bool(yields), write, read, wait, reuse)

def parse_prefix(text: str) -> tuple[Control, str]:
  """Split a line into its control word, or the usual one, and the rest of the line."""
  if not text.startswith("["): return USUAL, text
  found = re.match(PREFIX, text)
  if found is None: raise ParseError(f"a control word looks like {USUAL}, got {text.partition(']')[0]}]")
  waits, read, write, yields, stall = found.groups()
  wait = sum(1 << i for i, c in enumerate(waits) if c != "-")
  if any(c not in ("-", str(i)) for i, c in enumerate(waits)):
    raise ParseError(f"the scoreboards to wait for stand at their own places, as in B0-2---; got B{waits}")
  boards = [NONE if c == "-" else int(c) for c in (read, write)]
  return Control(int(stall), yields == "Y", boards[1], boards[0], wait), text[found.end():]
