"""Our interpreter of pickles agrees with Python's on plain data, and is bounded. test_torch_file.py also has hostile
pickles."""
import pickle

from hypothesis import given, settings
from hypothesis import strategies as st
from formats.mutations import cases, mutations, survives
import pytest

from tinyhw import Tensor
from tinyhw.errors import FileFormatError
from tinyhw.nn.tensor_io import InputFile
from tinyhw.nn.unpickle import DEEPEST, PLAIN, Reader, Unpickler

def load(data, **kwargs):
  return Unpickler(Reader(InputFile(Tensor(data, device="PYTHON"), "pickle")), PLAIN, **kwargs).load()

plain = st.recursive(st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
                     lambda x: st.lists(x) | st.dictionaries(st.text() | st.integers(-1000, 1000)
                                                             | st.tuples(st.integers(-9, 9), st.text()), x) |
                     st.tuples(x, x) | st.tuples() | st.sets(st.integers(-9, 9)), max_leaves=20)

@given(plain, st.integers(0, 5))
@settings(max_examples=100)
def test_plain_data_as_python_reads_it(x, protocol):
  data = pickle.dumps(x, protocol)
  try: wanted = pickle.loads(data)
  except ValueError: return   # Python does not read integers with more digits than this
  found = load(data)
  assert found == wanted and type(found) is type(wanted) and repr(found) == repr(wanted)

def test_frames_and_windows():
  x = {str(i): ["x" * (i % 100), i] for i in range(20_000)}
  for protocol in (2, 4): assert load(pickle.dumps(x, protocol)) == x, "longer than a window"

def test_depth():
  x = None
  for _ in range(DEEPEST): x = [x]
  assert load(pickle.dumps(x)) == x
  with pytest.raises(FileFormatError, match="nested more than 100 deep"): load(pickle.dumps([x]))

def test_shared_parts_may_be_few():
  part = list(range(100))
  assert load(pickle.dumps([part] * 100)) == [part] * 100
  with pytest.raises(FileFormatError, match="unfolds to far more"):
    load(pickle.dumps([list(range(1000))] + [[part] * 1000] * 100))

@pytest.mark.parametrize("x", (object(), ValueError("x"), range(3), InputFile, len, slice(1), complex),
                         ids=lambda x: repr(x).partition(" at 0x")[0])
def test_objects_are_refused(x):
  with pytest.raises(FileFormatError, match="only tensors and plain data are read|neither a tensor nor plain data"):
    load(pickle.dumps(x, 4))

def test_calls_take_what_they_say():
  assert load(pickle.dumps(1 + 2j)) == 1 + 2j and load(pickle.dumps(bytearray(b"x"), 3)) == bytearray(b"x")
  assert load(pickle.dumps(b"\xff", 2)) == b"\xff"
  bomb = b"\x80\x02cbuiltins\nbytearray\nJ\xff\xff\xff\x7f\x85R."
  with pytest.raises(FileFormatError, match="calls bytearray with arguments that it does not take"): load(bomb)
  with pytest.raises(FileFormatError, match="refers to something outside of it"): load(b"K\1Q.")
  with pytest.raises(FileFormatError, match="gives an object a state"): load(b"K\1K\2b.")

def test_mutated_pickles():
  x = {"a": [1, 2.5, None, True], "b": {"c": (1, (2, "x"), b"yz"), 3: {4, 5}}, "d": 2 ** 80, "e": [[]] * 3}
  samples = {f"protocol {p}": pickle.dumps(x, p) for p in range(6)}
  assert sum(not survives(load, data, what) for what, data in mutations(samples, cases()))
