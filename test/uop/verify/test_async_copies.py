"""Asynchronous copies to shared memory in a Program: accepted forms, and messages for others."""
from __future__ import annotations

import pytest

from tinyhw.dtype import dtypes
from tinyhw.errors import VerifyError
from tinyhw.uop.tensor_box import TensorBox
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.evaluate.evaluate import evaluate
from tinyhw.uop.ops import UOp
from tinyhw.uop.program import Program
from tinyhw.uop.verify.verify import verify

HALF, VOID = dtypes.float16, dtypes.void
DATA, LOCAL, COUNT = UOp.param(0, HALF, 1024), UOp(Ops.DEFINE_LOCAL, HALF, (),
                                                   (0, 512)), UOp(Ops.DEFINE_LOCAL, dtypes.uint64, (), (1, 2))
ZERO, ONE = UOp.const(dtypes.int32, 0), UOp.const(dtypes.int32, 1)
GOAL, SIGNAL, ELEMENT = UOp(Ops.INDEX, HALF, (LOCAL, ZERO)), UOp(Ops.INDEX, COUNT.dtype,
                                                                 (COUNT, ZERO)), UOp(Ops.INDEX, HALF, (DATA, ZERO))
BOX = UOp(Ops.TENSOR_BOX, HALF, (DATA, ZERO, ONE), TensorBox((64, 16), (1, 64), (64, 8)))
BEFORE = (DATA, LOCAL, COUNT, ZERO, ONE, GOAL, SIGNAL, ELEMENT)

def checked(*uops: UOp) -> None: verify(Program("k", (*BEFORE, *uops), 1, frozenset()), 1)

def test_a_box_that_a_signal_counts() -> None:
  checked(UOp(Ops.SIGNALS, VOID, (COUNT,)), UOp(Ops.BARRIER), BOX, UOp(Ops.ASYNC_COPY, VOID, (GOAL, BOX), 512),
          UOp(Ops.COMMIT, VOID, (SIGNAL,)),
          UOp(Ops.WAIT, VOID, (SIGNAL, ZERO), 0), UOp(Ops.WAIT, VOID, (), (1, 1)))

@pytest.mark.parametrize("wrong, said", [
  (BOX.replace(src=(DATA, ZERO)), "coordinate for each of 2 axes"),
  (BOX.replace(arg=TensorBox((64, 17), (1, 64), (64, 8))), "last element is 1087, of 1024"),
  (BOX.replace(src=(LOCAL, ZERO, ONE)), "not of .PARAM"),
  (BOX.replace(arg=TensorBox((64, 16), (1, 64), (32, 8))), "lines of 64 bytes"),
  (UOp(Ops.ASYNC_COPY, VOID, (GOAL, ELEMENT), 0), "of 0 elements"),
  (UOp(Ops.ASYNC_COPY, VOID, (ELEMENT, ELEMENT), 8), "not from memory to shared memory"),
  (UOp(Ops.SIGNALS, VOID, (LOCAL,)), "not of shared memory of uint64"),
  (UOp(Ops.SIGNALS, VOID, (COUNT,), "never"), "neither begins nor ends"),
  (UOp(Ops.COMMIT, VOID, (GOAL,)), "nor of .a signal, gate"),
  (UOp(Ops.COMMIT, VOID, (SIGNAL, ZERO)), "gate of type"),
  (UOp(Ops.WAIT, VOID, (SIGNAL,), 0), "nor for .a signal, phase"),
  (UOp(Ops.WAIT, VOID, (), -1), "leaves -1 groups")])
def test_what_is_wrong_is_told(wrong: UOp, said: str) -> None:
  with pytest.raises(VerifyError, match=said): checked(wrong)

def test_a_box_has_as_many_elements_as_are_copied() -> None:
  with pytest.raises(VerifyError, match="of 8 elements, where the box has 512"):
    checked(BOX, UOp(Ops.ASYNC_COPY, VOID, (GOAL, BOX), 8))

def test_lanes_name_one_box() -> None:
  lane = UOp(Ops.RANGE, dtypes.int32, (UOp.const(dtypes.int32, 4),), (0, AxisType.LOCAL))
  box = BOX.replace(src=(DATA, ZERO, lane))
  uops = DATA, LOCAL, ZERO, lane.src[0], lane, GOAL, box, UOp(Ops.ASYNC_COPY, VOID, (GOAL, box),
                                                              512), UOp(Ops.END, VOID, (lane,))
  with pytest.raises(VerifyError, match="lanes of a workgroup name different boxes"):
    evaluate(Program("k", uops, 1, frozenset()), {0: [0.0] * 1024})
