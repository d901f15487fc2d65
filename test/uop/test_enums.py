"""Groups of operations agree with each other and with the arithmetic."""
from __future__ import annotations
from enum import IntEnum
import pickle

from tinyhw.arithmetic import operation
from tinyhw.codegen.transform.tiling import OptOps
from tinyhw.dtype import dtypes
from tinyhw.errors import DTypeError
from tinyhw.uop.enums import AxisType, GroupOp, Ops, plain_members
from tinyhw.uop.evaluate.execute import element_function
from tinyhw.uop.ops import UOp
from tinyhw.uop.rewrite.match import ARITY

def test_groups() -> None:
  assert GroupOp.ALU == GroupOp.Unary | GroupOp.Binary | GroupOp.Ternary and not GroupOp.Unary & GroupOp.Binary
  assert (GroupOp.Associative <= GroupOp.Commutative and GroupOp.Idempotent <= GroupOp.Associative
          and GroupOp.Comparison <= GroupOp.Binary)
  assert GroupOp.Movement == {Ops[name] for name in ("RESHAPE", "PERMUTE", "EXPAND", "PAD", "SHRINK", "FLIP")}
  assert set(ARITY) == GroupOp.Elementwise

def test_every_elementwise_op_has_a_meaning() -> None:
  for op in GroupOp.ALU - {Ops.DOT4, Ops.DOT2}:
    found = False
    for dtype in (dtypes.float32, dtypes.int32, dtypes.bool, dtypes.uint64):
      try: found = operation(op.name, dtype) is not None or found
      except DTypeError: pass
    assert found, op

def test_the_meaning_of_dot4_depends_on_the_types_of_its_operands() -> None:
  found = []
  for a in dtypes.int32s:
    for b in dtypes.int32s:
      x, y = UOp.const(a, 0xff if a is dtypes.uint32 else -1), UOp.const(b, 0x80 if b is dtypes.uint32 else -0x80)
      found.append(element_function(UOp(Ops.DOT4, dtypes.int32, (x, y, UOp.const(dtypes.int32, 5))))(0xff, 0x80, 5))
  assert found == [133, -123, -32635, 32645]   # 5 + (-1 or 255) * (-128 or 128)

def test_commutative_ops_commute() -> None:
  for op in GroupOp.Commutative:
    f = operation(op.name, dtypes.int32)
    assert all(f(i, j) == f(j, i) for i in range(-4, 5) for j in range(-4, 5)), op

def test_older_names_and_order() -> None:
  assert (Ops.RECIP is Ops.RECIPROCAL and Ops.DEFINE_GLOBAL is Ops.PARAM and min(Ops) is Ops.CONST
          and len(set(AxisType)) == 9)

def test_operations_print_as_their_names() -> None:
  """The same in each version of Python. repr also contains the number."""
  assert str(Ops.ADD) == f"{Ops.ADD}" == "Ops.ADD" and repr(AxisType.GLOBAL) == "<AxisType.GLOBAL: 1>"
  assert str(AxisType.GLOBAL) == "AxisType.GLOBAL" and str(OptOps.GRID) == "OptOps.GRID"

def test_members_are_plain_attributes() -> None:
  assert all(cls.__dict__[name] is member for cls in (Ops, AxisType) for name, member in cls.__members__.items())

  @plain_members
  class Small(IntEnum):
    ONE = 1
    UNO = 1
    TWO = 2
  assert (Small.UNO is Small.ONE is Small(1) and list(Small) == [1, 2] and Small["TWO"] is Small.TWO
          and repr(Small.TWO) == "<Small.TWO: 2>")
  assert pickle.loads(pickle.dumps(Ops.ADD)) is Ops.ADD
