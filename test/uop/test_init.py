"""tinyhw.uop: names that are loaded when they are asked for."""
import pytest

import tinyhw.uop
from tinyhw.uop import Ops, UOp
from tinyhw.uop.enums import Ops as enumerated
from tinyhw.uop.ops import UOp as node

def test_names() -> None:
  assert Ops is enumerated and UOp is node
  with pytest.raises(AttributeError, match="no attribute 'Rules'"): getattr(tinyhw.uop, "Rules")
