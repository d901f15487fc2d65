"""Records: what a program becomes as threaded code (native/threaded.py), one after the other, in 8-byte words.

A record has two addresses of functions (for all lanes, and for some), its size in bytes, and operands. Operands of
compiled functions are those that native.py gives them. Those of the functions that are written in assembly have names
in `OPERANDS`, where the texts of native/threaded.py and native/access.py have them from; places count bytes from the
processor's state.
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
  """Lanes in which a guard holds. mask: place of the guard's; inversion: what it is XORed with; running: place of the
  lanes that run at all; number: of the guard among the masks of what has been written."""
  mask: int
  inversion: int
  running: int
  number: int

class VectorAccess(NamedTuple):
  """Of a load or store of vectors. addresses: place of the row of their low words; high: distance of the row with the
  high ones, or 0; base: place of a scalar that is added, or -1; offset: what else is added; data: place of the first
  row of data; row: distance of the next ones; words: how many;
  unaligned: bits that are 0 in all addresses of plain accesses."""
  addresses: int
  high: int
  base: int
  offset: int
  data: int
  row: int
  words: int
  unaligned: int

class ScalarAccess(NamedTuple):
  """Of a load of scalars. base: place of the address; register: place of an offset of 32 bits, or -1; offset: what else
  is added; data: place of the result; words: how many."""
  base: int
  register: int
  offset: int
  data: int
  words: int

CHOICE = ("yes", "no")   # records to go on with
OPERANDS: dict[str, tuple[str, ...]] = {
  "entry": ("instructions", "pairs"),                      # of the block; PAIRS times (state before, state behind)
  "jump": ("to",),                                         # a record
  "jump_zero": (*CHOICE, "place", "mask"),                 # asks whether the word at the place has none of the mask's
                                                           # bits
  "jump_set": (*CHOICE, "place", "mask"),                  # whether it has one
  "activate": ("mask",),                                   # place of the lanes that are active from now on
  "guard": (*Lanes._fields, "active"),                     # the lanes are active from now on, and stored at a place
  "branch": (*CHOICE, *Lanes._fields),                     # yes: all lanes that run; no: none of them
  "written": ("reads", "writes", "numbers"),               # how many registers are read and written; the numbers of
                                                           # their masks
  "vector": VectorAccess._fields, "scalar": ScalarAccess._fields,
}

def offsets(function: str) -> SimpleNamespace:
  """Where the operands of a function stand in a record, in bytes, by name."""
  return SimpleNamespace(**{name: WORD * (HEAD + i) for i, name in enumerate(OPERANDS[function])})

class Records:
  """Records of one block while they are made, and their memory afterwards. functions: addresses of those in assembly.
  All methods that append a record give its place in words."""
  def __init__(self, functions: Mapping[str, int]):
    self.functions = functions
    self.words = array("q")
    self.address = 0
    self.choices: list[tuple[int, int]] = []   # places of words that are to be addresses of records, and the places of
                                               # those

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

  def admit(self, slot: int, before: int, behind: int) -> None:
    """From now on the entry, which is the first record, lets a state in. slot: of the PAIRS ones."""
    at = HEAD + 1 + 2 * slot
    self.words[at:at + 2] = array("q", (before, behind))

  def python(self) -> int:
    """Append an instruction that Python executes."""
    return self.steer("python")

  def link(self) -> int:
    """Append an end whose next record is not known yet; `join` makes a jump of it."""
    return self.steer("link", 0)

  def join(self, at: int, target: int) -> None:
    """A link goes to the record at an address from now on."""
    address = self.functions["jump"]
    self.words[at:at + HEAD + 1] = array("q", (address, address, WORD * (HEAD + 1), target))

  def jump(self, function: str, place: int, mask: int) -> int:
    """Append "jump_zero" or "jump_set"; `choose` says where to."""
    return self.steer(function, 0, 0, place, mask)

  def branch(self, lanes: Lanes) -> int:
    """Append a branch of lanes; `choose` says where to."""
    return self.steer("branch", 0, 0, *lanes)

  def choose(self, at: int, yes: int, no: int) -> None:
    """A jump or branch goes on with these records, by place."""
    self.choices += [(at + HEAD, yes), (at + HEAD + 1, no)]

  def activate(self, mask: int) -> int:
    """Append what activates the lanes of a mask."""
    return self.steer("activate", mask)

  def guard(self, lanes: Lanes, active: int) -> int:
    """Append what activates the lanes of a guard, and stores them."""
    return self.steer("guard", *lanes, active)

  def written(self, reads: Sequence[int], writes: Sequence[int], all_lanes: bool = False) -> int:
    """Append a check that registers which are read have been written, after which others have, too: in active lanes,
    or in all. By number."""
    return self.steer("written_all" if all_lanes else "written", len(reads), len(writes), *reads, *writes)

  def size(self, at: int) -> int:
    """The bytes of a record."""
    return self.words[at + 2]

  def complete(self, at: int, some: int) -> None:
    """A record has this function for some lanes from now on."""
    self.words[at + 1] = some

  def done(self) -> None:
    """Nothing more is added; the records stay where they are from now on."""
    self.address = self.words.buffer_info()[0]
    for at, place in self.choices: self.words[at] = self.address + WORD * place
