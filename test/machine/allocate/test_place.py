"""Making room for one instruction moves the right values, and as few as possible."""
from __future__ import annotations
from generators.invented import Build, cisc, inputs, lanes, run

from tinyhw.machine.allocate.allocate import allocate
from tinyhw.machine.ir.inst import Function
from tinyhw.machine.ir.pseudo import PARALLEL
from tinyhw.machine.ir.target import Target
from tinyhw.machine.verify.allocation import check, snapshot

def copies(function: Function, target: Target) -> list[int]:
  """Sizes of the parallel copies of an allocated and checked function, whose results do not change."""
  expected = run(function, *inputs(1))
  reference = snapshot(function)
  check(allocate(function, target), target, reference)
  assert run(function, *inputs(1)) == expected
  return [len(i.operands) // 2 for b in function.blocks for i in b.insts if i.row is PARALLEL]

def test_shift_count_is_fetched_and_its_register_vacated() -> None:
  b = Build(cisc())
  x, other, count = b.params("r64", "r64", "r64", fixed={0: 3, 1: 1, 2: 5})
  b.emit("shl", y := b.new("r64"), count, ties=(x,))
  b.emit("store", other, 0, y)
  b.emit("ret", other)
  assert copies(b.function, b.target)[0] == 2  # count to its register, and the value there to another one

def test_no_copy_where_everything_is_in_place() -> None:
  b = Build(cisc())
  x, count = b.params("r64", "r64", fixed={0: 3, 1: 1})
  b.emit("shl", y := b.new("r64"), count, ties=(x,))
  b.emit("store", y, 0, y)
  b.emit("ret", b.function.blocks[0].params[1])
  assert copies(b.function, b.target) == [1]  # only for ret

def test_values_leave_registers_that_a_call_destroys() -> None:
  b = Build(cisc(10, 6))
  x = b.params("r64", fixed={0: 7})[0]
  kept = b.many("v", 3)
  for k, v in enumerate(kept): b.emit("vload", v, x, k)
  b.emit("call", x, r := b.new("r64"))
  for k, v in enumerate(kept): b.emit("vstore", r, k, v)
  b.emit("ret", r)
  assert copies(b.function, b.target) == []  # they avoid such registers from the start

def test_aligned_fixed_operands() -> None:
  b = Build(lanes(16))
  address, x, y = b.params("s1", "d1", "d2", fixed={0: 0, 1: 8, 2: 10})
  b.emit("tex", q := b.new("d4"), x, y)
  b.emit("st1", address, 1, x)
  b.emit("st4", address, 0, q)
  b.emit("exit")
  assert copies(b.function, b.target)[0] >= 2

def test_full_bank_is_packed_anew() -> None:
  """Pairs and singles fill all units. When half of the singles end, a quad fits only after pairs have moved."""
  b = Build(lanes(16))
  address = b.params("s1")[0]
  singles, pairs = b.many("d1", 8), []
  for k, r in enumerate(singles): b.emit("imm", r, k)
  for k in range(4):
    pairs.append(b.new("d2"))
    b.emit("pack", pairs[-1], singles[2 * k], singles[2 * k])
  for k in range(0, 8, 2): b.emit("st1", address, k, singles[k])
  b.emit("dup4", q := b.new("d4"), singles[1])
  b.emit("st4", address, 20, q)
  for k in range(1, 8, 2): b.emit("st1", address, k, singles[k])
  for k, p in enumerate(pairs):
    b.emit("sum2", s := b.new("d1"), p)
    b.emit("st1", address, 40 + k, s)
  b.emit("exit")
  assert sum(copies(b.function, b.target)) <= 4
