"""The argument of a kernel's SINK."""
import pickle

from tinyhw.uop import ops
from tinyhw.uop.kernel_info import KernelInfo
from tinyhw.uop.ops import UOp
from tinyhw.uop.text import parse, show

def test_it_compares_by_value_and_can_be_stored() -> None:
  info = KernelInfo("k", (), None)
  assert info == KernelInfo("k", ()) != KernelInfo("k") and pickle.loads(pickle.dumps(info)) == info
  assert parse(show(UOp.sink(arg=info))) is UOp.sink(arg=info) and ops.KernelInfo is KernelInfo
