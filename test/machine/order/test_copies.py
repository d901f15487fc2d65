"""Copies of any bank, as the data of an ISA define it. Each ISA's own test has the cases (late/test_drop_copies.py)."""
from __future__ import annotations

from tinyhw.machine.ir.inst import Access, Bank, Block, Effect, Function, Inst, MInst, Operand, Reg, RegClass
from tinyhw.machine.order.copies import Copies, drop_copies

BANK, OTHER = Bank("a", 8, tuple(range(8))), Bank("b", 8, tuple(range(8)))
A, B = RegClass("a", BANK, 32), RegClass("b", OTHER, 32)
READ, WRITE, BOTH = Access.READ, Access.WRITE, Access.BOTH

def reg(cls: RegClass, index: int) -> Reg: return Reg(cls, index=index)
def row(name: str, cls: RegClass, *accesses: Access) -> Inst:
  return Inst(name, None, tuple(Operand(f"o{k}", a, cls) for k, a in enumerate(accesses)))
def copied(inst: MInst) -> tuple[int, int] | None:
  if inst.row.name != "copy" or inst.operands[0].cls is not A: return None
  first, second = (r.index for r in inst.operands)
  return first, second

def left(cls: RegClass, *insts: tuple[Inst, tuple[int, ...]]) -> list[tuple[str, list[int]]]:
  function = Function("k")
  function.blocks = [Block(0)]
  function.blocks[0].insts = [MInst(one, [reg(cls, k) for k in numbers]) for one, numbers in insts]
  drop_copies(function, Copies(BANK, copied, reg))
  return [(inst.row.name, [r.index for r in inst.operands]) for inst in function.blocks[0].insts]

def test_one_bank() -> None:
  for cls, expected in ((A, [("use", [1])]), (B, [("copy", [2, 1]), ("use", [2])])):
    assert left(cls, (row("copy", cls, WRITE, READ), (2, 1)), (row("use", cls, READ), (2,))) == expected

def test_what_may_leave_a_register_as_it_was_reads_it() -> None:
  copy, use, some = row("copy", A, WRITE, READ), row("use", A, READ), row("some", A, BOTH)
  assert left(A, (copy, (2, 1)), (some, (2,)), (use, (2,)), (use, (1,))) \
    == [("copy", [2, 1]), ("some", [2]), ("use", [2]), ("use", [1])], "a partial write keeps the copy"

def early(cls: RegClass, reads: int) -> Inst:
  return Inst("early", None,
              (Operand("d", WRITE, cls, early=True), *(Operand(f"o{k}", READ, cls) for k in range(reads))))

def test_a_copy_that_keeps_a_source_from_an_early_result_stays() -> None:
  copy, use = row("copy", A, WRITE, READ), row("use", A, READ)
  assert left(A, (copy, (2, 1)), (early(A, 1), (1, 2)), (use, (1,))) == [("copy", [2, 1]), ("early", [1, 2]),
                                                                         ("use", [1])]
  assert left(A, (copy, (2, 1)), (early(A, 1), (3, 2)), (use, (3,)))[0] == ("early", [3, 1])

def test_an_early_result_is_not_made_where_its_source_is() -> None:
  pair = RegClass("pair", BANK, 64, 2)
  copy, pairs = row("copy", A, WRITE, READ), row("pairs", pair, READ)
  for made, register in ((row("plain", A, WRITE, READ), 2), (early(A, 1), 3)):
    function = Function("k")
    function.blocks = [Block(0)]
    function.blocks[0].insts = [MInst(made, [reg(A, 3), reg(A, 2)]), MInst(copy, [reg(A, 2), reg(A, 3)]),
                                MInst(pairs, [reg(pair, 1)])]
    drop_copies(function, Copies(BANK, copied, reg))
    assert [r.index for r in function.blocks[0].insts[0].operands] == [register,
                                                                       2] and len(function.blocks[0].insts) == register

def test_results_that_nobody_reads_go_with_what_makes_them() -> None:
  """A chain of unread results is dropped, also around a loop. Instructions that do more stay: they write a register of
  another bank that is no sink, or have an effect."""
  sink, other = reg(B, 7), reg(B, 3)
  half = Inst("half", None, (Operand("d", WRITE, A), Operand("o", WRITE, B), Operand("a", READ, A)))
  store = Inst("store", None, (Operand("a", READ, A),), effects=Effect.STORE)
  load = Inst("load", None, (Operand("d", WRITE, A),), effects=Effect.LOAD)
  again = Inst("again", None, (Operand("to", READ, kind="block"),), effects=Effect.JUMP)
  function = Function("k")
  function.blocks = [Block(0), Block(1), Block(2)]
  makes = [(1, sink, 0), (2, sink, 1), (3, other, 0), (4, sink, 0)]
  function.blocks[0].insts = [*(MInst(half, [reg(A, d), o, reg(A, a)]) for d, o, a in makes), MInst(load, [reg(A, 5)]),
                              MInst(load, [reg(A, 6)])]
  function.blocks[1].insts = [MInst(half, [reg(A, 6), sink, reg(A, 6)]), MInst(again, [function.blocks[1]])]
  function.blocks[2].insts = [MInst(half, [reg(A, 7), sink, reg(A, 5)]), MInst(store, [reg(A, 4)])]
  drop_copies(function, Copies(BANK, copied, reg, frozenset({sink})))
  left = [[(inst.row.name, getattr(inst.operands[0], "index", None)) for inst in block.insts]
          for block in function.blocks]
  assert left == [[("half", 3), ("half", 4), ("load", 6)], [("half", 6), ("again", None)], [("store", 4)]]
