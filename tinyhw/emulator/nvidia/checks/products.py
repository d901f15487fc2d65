"""Vector registers that asynchronous products of a warpgroup (HGMMA) own, tracked for one warp.

WARPGROUP.ARRIVE hands registers over: earlier reads and writes of the warp are settled. A register that the warp
touches later needs another WARPGROUP.ARRIVE before a product may use it.

A product owns the registers of its accumulator, and of an operand A in registers, until WARPGROUP.DEPBAR has waited for
its group. A product whose text has gsb0 ends a group. Only products of the same shape may share an accumulator
meanwhile, since they are done in order.

Source: PTX ISA, wgmma.fence, wgmma.commit_group, wgmma.wait_group.
"""
from __future__ import annotations
from collections.abc import Collection

from tinyhw.emulator.errors import MissingWait
from tinyhw.emulator.nvidia.warp.state import named
from tinyhw.isa.sass.table.form import NO_GROUP
from tinyhw.isa.sass.table.uses import ARRIVAL, PRODUCTS_DONE, Unit, Uses
from tinyhw.machine.ir.inst import MInst
from tinyhw.named_tuple import NamedTuple

class KnownProducts(NamedTuple):
  """The state of a Products, in a form that can be compared."""
  arrived: bool = False
  touched: tuple[Unit, ...] = ()
  taken: tuple[tuple[Unit, int, str], ...] = ()

class Products:
  """Registers of products. arrived: registers have been handed over at least once. touched: those that the warp has
  used since.

  taken: register -> (age, owner). age: number of groups that have ended since a product took it, including its own.
  owner: shape and first register of the accumulator that it belongs to; "" for an operand.
  """
  __slots__ = ("arrived", "touched", "taken")

  def __init__(self) -> None:
    self.arrived = False
    self.touched: set[Unit] = set()
    self.taken: dict[Unit, tuple[int, str]] = {}

  def known(self) -> KnownProducts:
    """Return the state."""
    if not self.arrived: return KnownProducts()
    return KnownProducts(True, tuple(sorted(self.touched)),
                         tuple(sorted((unit, age, owner) for unit, (age, owner) in self.taken.items())))

  def tell(self, what: KnownProducts) -> None:
    """Set the state."""
    self.arrived, self.touched = what.arrived, set(what.touched)
    self.taken = {unit: (age, owner) for unit, age, owner in what.taken}

  def issue(self, inst: MInst, uses: Uses, coming: Collection[Unit]) -> None:
    """Check that an instruction may use its registers, and record its changes. coming: registers whose result was not
    waited for. Raises MissingWait."""
    name = inst.row.name
    if uses.product: self.multiply(inst, uses)
    elif name == ARRIVAL: self.arrived, self.touched = True, {unit for unit in coming if unit[0] == "R"}
    elif self.arrived:
      if name == PRODUCTS_DONE: self.wait(inst.operands[inst.row.isa.index["n"]])
      units = [unit for unit in (*(unit for unit, _ in uses.reads), *uses.writes) if unit[0] == "R"]
      for unit in units:
        if unit in self.taken:
          raise MissingWait(f"{named(unit)} belongs to an asynchronous product: no WARPGROUP.DEPBAR has waited for "
                            f"its group")
      self.touched.update(units)

  def wait(self, left: int) -> None:
    """Release the registers of all groups but the last `left` ones."""
    self.taken = {unit: (age, owner) for unit, (age, owner) in self.taken.items() if age <= left}

  def multiply(self, inst: MInst, uses: Uses) -> None:
    """Take the registers of a product."""
    if not self.arrived: raise MissingWait("no WARPGROUP.ARRIVE stands before the first asynchronous product")
    form = inst.row.isa
    sums = inst.operands[form.index["d"]]
    owner = f"{form.key} {sums.cls.name} {sums.index}"
    wanted = {unit: "" for unit, _ in uses.reads if unit[0] == "R"} | dict.fromkeys(uses.writes, owner)
    for unit, whose in sorted(wanted.items()):
      if unit in self.touched:
        raise MissingWait(f"{named(unit)} was read or written after the last WARPGROUP.ARRIVE: another one must hand "
                          f"it over")
      if unit in self.taken and self.taken[unit][1] != whose:
        raise MissingWait(f"{named(unit)} belongs to another asynchronous product: no WARPGROUP.DEPBAR has waited for "
                          f"its group")
    self.taken.update((unit, (0, whose)) for unit, whose in wanted.items())
    if inst.operands[form.index["group"]] != NO_GROUP:
      self.taken = {unit: (age + 1, owner) for unit, (age, owner) in self.taken.items()}
