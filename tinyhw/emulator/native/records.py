"""Records: a program as threaded code (native/threaded.py), a sequence of 8-byte words.

A record has the addresses of two functions (for all lanes, and for some), its size in bytes, and operands. native.py
defines the operands of compiled functions. The operands of functions in assembly have names in `OPERANDS`, which the
texts of native/threaded.py and native/access.py use. Places count bytes from the processor's state.
"""
from __future__ import annotations
from array import array
from collections.abc import Mapping, Sequence
from types import SimpleNamespace

from tinyhw.named_tuple import NamedTuple

WORD = 8
HEAD = 3          # words of a record before its operands
PAIRS = 6         # of an entry

class Lanes(NamedTuple):
  """The lanes in which a guard holds. mask: place of the guard's mask; inversion: the value that it is XORed with.

  running: place of the mask of lanes that run at all; number: of the guard among the masks of written lanes.
  """
  mask: int
  inversion: int
  running: int
  number: int

class VectorAccess(NamedTuple):
  """Operands of a vector load or store.

  - addresses: place of the row of the low address words; high: distance to the row of the high words, or 0.
  - base: place of a scalar that is added, or -1; offset: a constant that is added.
  - data: place of the first row of data; row: distance between rows; words: number of rows.
  - unaligned: bits that are 0 in all addresses of plain accesses.
  """
  addresses: int
  high: int
  base: int
  offset: int
  data: int
  row: int
  words: int
  unaligned: int

class ScalarAccess(NamedTuple):
  """Operands of a scalar load. base: place of the address; register: place of a 32-bit offset, or -1; offset: a
  constant that is added; data: place of the result; words: number of words."""
  base: int
  register: int
  offset: int
  data: int
  words: int

CHOICE = ("yes", "no")   # next records
OPERANDS: dict[str, tuple[str, ...]] = {
  "entry": ("instructions", "pairs"),                      # of the block; PAIRS times (state before, state after)
  "jump": ("to",),                                         # a record
  "jump_zero": (*CHOICE, "place", "mask"),                 # yes: the word at the place has none of the mask's bits
  "jump_set": (*CHOICE, "place", "mask"),                  # yes: it has one
  "activate": ("mask",),                                   # place of the mask of lanes to activate
  "guard": (*Lanes._fields, "active"),                     # activates these lanes; active: place of their mask
  "branch": (*CHOICE, *Lanes._fields),                     # yes: all lanes that run; no: none of them
  # numbers of registers that are read and written; then the numbers of their masks
  "written": ("reads", "writes", "numbers"),
  "vector": VectorAccess._fields, "scalar": ScalarAccess._fields,
}

def offsets(function: str) -> SimpleNamespace:
  """Return the offsets of a function's operands in a record, in bytes, by name."""
  return SimpleNamespace(**{name: WORD * (HEAD + i) for i, name in enumerate(OPERANDS[function])})

class Records:
  """Records of one block while they are made, and their memory afterwards. functions: addresses of those in assembly.

  A method that appends a record returns its place in words.
  """
  def __init__(self, functions: Mapping[str, int]):
    self.functions = functions
    self.words = array("q")
    self.address = 0
    # (place of a word that becomes the address of a record, place of that record)
    self.choices: list[tuple[int, int]] = []

  def add(self, whole: int, some: int, operands: Sequence[int]) -> int:
    """Append a record. whole, some: addresses of the functions for all lanes, and for some of them."""
    at = len(self.words)
    self.words.extend((whole, some, WORD * (HEAD + len(operands)), *operands))
    return at

  def steer(self, function: str, *operands: int) -> int:
    """Append a record of a function in assembly."""
    address = self.functions[function]
    return self.add(address, address, operands)

  def entry(self, instructions: int) -> int:
    """Append the entry of a block, which no state has passed yet."""
    return self.steer("entry", instructions, *[-1, -1] * PAIRS)

  def admit(self, slot: int, before: int, after: int) -> None:
    """Let a state pass the entry, which is the first record. slot: 0 to PAIRS - 1."""
    at = HEAD + 1 + 2 * slot
    self.words[at:at + 2] = array("q", (before, after))

  def python(self) -> int:
    """Append an instruction that Python executes."""
    return self.steer("python")

  def link(self) -> int:
    """Append an end whose next record is not known yet. `join` turns it into a jump."""
    return self.steer("link", 0)

  def join(self, at: int, target: int) -> None:
    """Turn a link into a jump to the record at an address."""
    address = self.functions["jump"]
    self.words[at:at + HEAD + 1] = array("q", (address, address, WORD * (HEAD + 1), target))

  def jump(self, function: str, place: int, mask: int) -> int:
    """Append "jump_zero" or "jump_set". `choose` sets its targets."""
    return self.steer(function, 0, 0, place, mask)

  def branch(self, lanes: Lanes) -> int:
    """Append a branch of lanes. `choose` sets its targets."""
    return self.steer("branch", 0, 0, *lanes)

  def choose(self, at: int, yes: int, no: int) -> None:
    """Set the next records of a jump or branch, by place."""
    self.choices += [(at + HEAD, yes), (at + HEAD + 1, no)]

  def activate(self, mask: int) -> int:
    """Append a record that activates the lanes of a mask."""
    return self.steer("activate", mask)

  def guard(self, lanes: Lanes, active: int) -> int:
    """Append a record that activates the lanes of a guard, and stores their mask."""
    return self.steer("guard", *lanes, active)

  def written(self, reads: Sequence[int], writes: Sequence[int], all_lanes: bool = False) -> int:
    """Append a check that the registers `reads` were written. It then marks the registers `writes` as written. Both are
    for the active lanes, or for all lanes. Registers are given by number."""
    return self.steer("written_all" if all_lanes else "written", len(reads), len(writes), *reads, *writes)

  def size(self, at: int) -> int:
    """Return the size of a record in bytes."""
    return self.words[at + 2]

  def complete(self, at: int, some: int) -> None:
    """Set the function of a record for some lanes."""
    self.words[at + 1] = some

  def done(self) -> None:
    """Finish: nothing more is added, and the records do not move any more."""
    self.address = self.words.buffer_info()[0]
    for at, place in self.choices: self.words[at] = self.address + WORD * place
