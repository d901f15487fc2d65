"""Files of PyTorch: those of our own writer, golden files of PyTorch, PyTorch itself where it is installed; hostile and
damaged files."""
import os
import pathlib
import re
import struct
import zipfile

from formats.mutations import cases, fuzz, survives, use
import numpy as np
import pytest
from formats.torch_files import (
  ITEMSIZES, Built, Global, Reduced, Referred, Stored, ordered, pickled, stream_file, tar_file, tensor, zip_file)

from tinyhw import Tensor, dtypes, nn
from tinyhw.errors import FileFormatError
from tinyhw.nn.state import load_state_dict, torch_load

GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "golden"
NUMBERS = np.arange(24, dtype=np.float32)
WHOLE = Stored("0", "Float", 24)

def refused(data, text):
  with pytest.raises(FileFormatError, match=text): torch_load(Tensor(data))

@pytest.fixture
def file(tmp_path):
  """Return a function that loads bytes as a file."""
  def load(data):
    (tmp_path / "f").write_bytes(data)
    return torch_load(tmp_path / "f")
  return load

FORMATS = {
  "zip": lambda x: zip_file(x, {"0": NUMBERS.tobytes()}),
  "deflated": lambda x: zip_file(x, {"0": NUMBERS.tobytes()}, packing=zipfile.ZIP_DEFLATED),
  "protocol 3": lambda x: zip_file(x, {"0": NUMBERS.tobytes()}, protocol=3), "without byteorder": lambda x: zip_file(x,
    {"0": NUMBERS.tobytes()}, None),
  "stream": lambda x: stream_file(x, {"0": ("Float", NUMBERS.tobytes())}),
}
VIEWS = {   # offset, size, strides, as NumPy makes them
  "whole": (0, (2, 3, 4), (12, 4, 1)), "scalar": (5, (), ()), "row": (12, (3, 4), (4, 1)),
  "column": (1, (2, 3), (12, 4)),
  "permuted": (0, (4, 2, 3), (1, 12, 4)), "steps": (0, (2, 2, 2), (12, 8, 3)), "expanded": (4, (3, 4), (0, 1)),
  "empty": (0, (0, 3), (3, 1)),
  "gap": (1, (2, 3, 2), (12, 4, 1)), "last": (23, (1, 1), (7, 9)), "every other": (1, (12,), (2,)),
}

@pytest.mark.parametrize("format", FORMATS)
def test_views_of_one_storage(file, format, engine):
  x = {name: tensor(WHOLE, *view) for name, view in VIEWS.items()}
  loaded = file(FORMATS[format](x))
  assert list(loaded) == list(VIEWS)
  for name, (offset, size, strides) in VIEWS.items():
    wanted = np.lib.stride_tricks.as_strided(NUMBERS[offset:], size, [4 * s for s in strides])
    assert (loaded[name].shape, loaded[name].dtype, loaded[name].tolist()) == (size, dtypes.float32,
                                                                               wanted.tolist()), name
    assert name == "steps" or 0 in size or loaded[name].device.startswith("DISK:") or format == "deflated"
    assert (loaded[name].to(None) + 1).tolist() == (wanted + 1).tolist()

def test_views_of_storages(file):
  """In files from before 0.4, a storage may be a part of another one."""
  def data(view):
    return stream_file(tensor(Stored("0", "Float", 24, view), 1, (2, 2), (2, 1)), {"0": ("Float", NUMBERS.tobytes())})
  assert file(data(("v", 4, 8))).tolist() == [[5.0, 6.0],
                                              [7.0, 8.0]] and file(data(None)).tolist() == [[1.0, 2.0], [3.0, 4.0]]
  for view in (("v", 20, 5), ("v", -1, 5), ("v", 0, True), ("v", 1 << 61, 1)):
    refused(data(view), "a view of storage '0' lies outside of it")
  for view in (("v", 0, 4), ("v", 20, 4)): refused(data(view), "reaches element 4 of a storage of 4")
  refused(data((1, 2)), "arguments that it does not take")

@pytest.mark.parametrize("packing", (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))
def test_errors_name_the_file(tmp_path, file, packing):
  x = tensor(WHOLE, 0, (4,), (1,))
  for data, text in ((zip_file(x, {"0": bytes(10)}, packing=packing), "should have 24 elements"),
                     (zip_file(b"\x80\x02\xff", {}, packing=packing), "no opcode"),
                     (zip_file(Reduced(Global("os", "getcwd"), ()), {}, packing=packing), "wants os.getcwd")):
    with pytest.raises(FileFormatError, match=f"^{re.escape(str(tmp_path / 'f'))} is no whole PyTorch file: .*{text}"):
      file(data)
    refused(data, f"^the tensor is no whole PyTorch file: .*{text}")

def test_plain_data(file):
  x = {"n": 3, "f": 1.5, "none": None, "t": (True, False), "l": [1, [2, b"xyz", "ü"]], 7: {"deep": {"er": -5}},
       "big": 2 ** 70, "set": {1, 2},
       "o": Built(ordered(("b", 1), ("a", 2)), {"_metadata": 1}), "size": Reduced(Global("torch", "Size"), ((2, 3),)),
       "dtype": Global("torch", "bfloat16"), "device": Reduced(Global("torch", "device"), ("cuda", 0)),
       "numpy": Reduced(Global("numpy.core.multiarray", "scalar"),
                        (Reduced(Global("numpy", "dtype"), ("f8", False, True)), struct.pack("<d", 2.5)))}
  for data in (zip_file(x, {}), stream_file(x, {}), zip_file(x, {}, protocol=3), tar_file(x, {}, {})):
    found = file(data)
    assert found == {**x, "o": {"b": 1, "a": 2}, "size": (2, 3), "dtype": dtypes.bfloat16, "device": "cpu",
                     "numpy": 2.5}
    assert list(found["o"]) == ["b", "a"]

@pytest.mark.parametrize("kind", ITEMSIZES)
def test_types(file, kind):
  data = bytes(range(64)) if kind != "Bool" else bytes([0, 1] * 32)
  count = 64 // ITEMSIZES[kind]
  x = {"t": tensor(Stored("0", kind, count), 0, (count,), (1,))}
  for made in (zip_file(x, {"0": data}), stream_file(x, {"0": (kind, data)})):
    assert bytes(file(made)["t"]._read()[0]) == data

def test_types_that_tensors_bring(file):
  call = Global("torch._utils", "_rebuild_tensor_v3")
  x = {name: Reduced(call, (Stored("0", "Untyped", 64), 1, (3,), (1,), False, ordered(), Global("torch", name)))
       for name in ("uint16", "uint32", "uint64", "float8_e4m3fn", "float8_e5m2")}
  for name, t in file(zip_file(x, {"0": bytes(range(64))})).items():
    n = t.dtype.itemsize
    assert (t.dtype.itemsize == {"uint16": 2, "uint32": 4, "uint64": 8}.get(name, 1)
            and bytes(t._read()[0]) == bytes(range(n, 4 * n)))

@pytest.mark.parametrize("call, dtype",
                         [("_rebuild_tensor_v2", ()), ("_rebuild_tensor_v3", (Global("torch", "float32"),))])
def test_bits_of_tensors(file, call, dtype):
  """The imaginary part of a conjugate is saved as the stored number, with the bit `neg`."""
  def data(*bits):
    return zip_file(Reduced(Global("torch._utils", call), (WHOLE, 1, (3,), (2,), False, ordered(), *dtype, *bits)),
                    {"0": NUMBERS.tobytes()})
  for bits in ((), (None,), ({},), ({"conj": False, "neg": False},)):
    assert file(data(*bits)).tolist() == NUMBERS[1:6:2].tolist()
  assert file(data({"neg": True})).tolist() == (-NUMBERS[1:6:2]).tolist()
  refused(data({"conj": True}), "a tensor has the bit 'conj', which no tensor has here; save a copy, made with")
  for bad in (1, {"neg": 1}): refused(data(bad), "a tensor's bits are a dict of bools")

def test_pytorchs_negative_bit(tmp_path):
  torch = pytest.importorskip("torch")
  x = torch.tensor([1 + 2j, 3 - 4j]).conj().imag
  torch.save(x, tmp_path / "f")
  assert torch_load(tmp_path / "f").tolist() == x.tolist() == [-2.0, 4.0]

def test_parameters_and_state(file):
  t = tensor(WHOLE, 0, (24,), (1,))
  x = {"p": Reduced(Global("torch._utils", "_rebuild_parameter"), (t, True, ordered())),
       "old": Reduced(Global("torch.nn.parameter",
                             "Parameter"), (t, True)),
       "typed": Reduced(Global("torch._tensor", "_rebuild_from_type_v2"),
                        (t.function, Global("torch", "Tensor"), t.arguments, {"a": 1}))}
  for data in (FORMATS["zip"](x), FORMATS["stream"](x)):
    assert {name: t.tolist() for name, t in file(data).items()} == dict.fromkeys(x, NUMBERS.tolist())

def test_what_calls_do_not_take():
  for x, text in ((Reduced(Global("torch._tensor", "_rebuild_from_type_v2"),
                           (Global("torch", "Size"), Global("torch", "Tensor"), (), {})),
    "only tensors are"),
                  (Built(Reduced(Global("numpy", "dtype"), ("f8",)), 5), "a type's state has its byte order"),
                  (Reduced(Global("numpy", "dtype"), ("f9",)), "no number has such a type"),
                  (Reduced(Global("torch", "Size"), ((-1,),)), "natural"),
                  (Reduced(Global("numpy.core.multiarray", "scalar"), (1, b"x")), "a scalar is its type and its bytes"),
                  (Reduced(Global("builtins", "set"), ([[]],)), "a set of other things"),
                  (Reduced(Global("torch.nn.parameter",
                                  "Parameter"), (1,)), "is a tensor"),
                  (Reduced(Global("torch._utils", "_rebuild_tensor_v3"), (WHOLE, 0, (), (), False, ordered(), "x")),
                   "is no dtype")):
    refused(zip_file(x, {"0": NUMBERS.tobytes()}), text)

def test_scalars_of_numpy(file):
  for value in (np.float64(2.5), np.float32(-1), np.int64(7), np.bool_(True), np.uint8(255)):
    kind = Built(Reduced(Global("numpy", "dtype"), (value.dtype.str[1:], False, True)),
                 (3, value.dtype.str[0], None, None, None, -1, -1, 0))
    found = file(zip_file({"x": Reduced(Global("numpy._core.multiarray", "scalar"), (kind, value.tobytes()))}, {},
                          protocol=3))["x"]
    assert found == value.item() and type(found) is type(value.item())
  big = Built(Reduced(Global("numpy", "dtype"), ("i4",)), (3, ">"))
  assert file(zip_file(Reduced(Global("numpy.core.multiarray", "scalar"), (big, b"\0\0\0\1")), {}, protocol=3)) == 1

def test_tar_files_that_lie():
  storages, tensors = {"1": ("Float", NUMBERS.tobytes())}, {"7": ("1", 0, (2,), (1,))}
  for made, text in ((tar_file(Referred("8"), storages, tensors), "refers to no tensor of its own"),
                     (tar_file(Referred("7"), storages, {"7": ("2", 0, (2,), (1,))}),
                      "a tensor has no key and storage"),
                     (tar_file(Referred("7"), storages, {"7": ("1", 0, (-2,), (1,))}),
                      "a tensor is damaged: offset, size or stride"),
                     (tar_file(Referred("7"), storages, {"7": ("1", 23, (2,), (1,))}), "reaches element 24"),
                     (tar_file(Referred("7"), storages, {"7": ("1", 0, (1,) * 65, (1,) * 65)}), "a tensor has 65 axes"),
                     (tar_file(Referred("7"), storages, tensors, [("3", "1", 20, 5)]),
                      "a view of a storage lies outside of it"),
                     (tar_file(Referred("7"), storages, tensors, [("3", "9", 0, 1)]), "a view of a storage is damaged"),
                     (tar_file(Referred("7"), {(1, 2): ("Float", b"")}, tensors),
                      "a storage has no key, location and type")):
    refused(made, text)

def test_tar(file):
  data = tar_file(ordered(("w", Referred("7")), ("b", Referred("8")), ("v", Referred("9"))),
                  {"1": ("Float", NUMBERS.tobytes()),
                   "2": ("Int", bytes(8))},
                  {"7": ("1", 2, (2, 3), (4, 1)), "8": ("2", 0, (2,), (1,)), "9": ("3", 0, (2,), (1,))},
                  [("3", "1", 20, 4)])
  found = file(data)
  assert (found["w"].tolist() == NUMBERS[2:10].reshape(2, 4)[:, :3].tolist() and found["b"].tolist() == [0, 0]
          and found["v"].tolist() == [20.0, 21.0])
  assert found["w"].device.startswith("DISK:")

class Two:
  def __init__(self): self.a, self.b = nn.Linear(3, 2), nn.LayerNorm(2)

def test_golden_files(engine):
  """test/golden/make_torch.py wrote them with PyTorch."""
  for name in ("torch_zip.pt", "torch_stream.pt"):
    found, model = torch_load(GOLDEN / name), Two()
    assert (found["epoch"] == 3 and found["lr"] == 0.5 and found["shape"] == (2, 3)
            and found["tied"].tolist() == found["model"]["a.weight"].tolist())
    load_state_dict(model, found["model"], verbose=False)
    assert model.a.weight.tolist() == [[0.0, 0.5, 1.0], [1.5, 2.0, 2.5]] and model.b.bias.tolist() == [0.25, -0.25]
    assert found["transposed"].tolist() == [[0.0, 1.5], [0.5, 2.0], [1.0, 2.5]]
    types = {str(t.dtype): t.cast("float32").tolist() for t in (x.to(None) for x in found["types"])}
    assert len(types) == len(found["types"]) and all(values == [0.0, 1.0, 2.0] or "bool" in name and values == [0, 1, 1]
                                                     for name,
                                                     values in types.items())

# ***** PyTorch, where it is installed *****

def same(ours, theirs):
  torch = pytest.importorskip("torch")
  if isinstance(theirs, torch.Tensor):
    assert ours.shape == tuple(theirs.shape)
    assert ours.tolist() == (theirs.float() if theirs.is_floating_point() and theirs.itemsize == 1
                             else theirs).detach().tolist()
  elif isinstance(theirs, dict):
    assert list(ours) == list(theirs)
    for key in theirs: same(ours[key], theirs[key])
  elif isinstance(theirs, (list, tuple)):
    assert len(ours) == len(theirs) and type(ours) is (tuple if isinstance(theirs, torch.Size) else type(theirs))
    for a, b in zip(ours, theirs): same(a, b)
  else: assert ours == theirs

@pytest.mark.parametrize("options", ({}, {"_use_new_zipfile_serialization": False}, {"pickle_protocol": 4}), ids=str)
def test_ours_reads_pytorch(tmp_path, options):
  torch = pytest.importorskip("torch")
  t = torch.arange(120, dtype=torch.float32).reshape(2, 3, 4, 5)
  model = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4))
  optimizer = torch.optim.Adam(model.parameters())
  model(torch.rand(1, 3, 5, 5)).sum().backward()
  optimizer.step()
  x = {"model": model.state_dict(), "optimizer": optimizer.state_dict(),
       "views": [t, t[1], t[:, 1], t.permute(3, 1, 0, 2), t[:, ::2, ::3],
                 t[0, 0, 0].expand(3, 5),
                 t.to(memory_format=torch.channels_last), t[..., 2], torch.zeros(0, 2), torch.tensor(2.5)],
       "parameter": torch.nn.Parameter(t[0]),
       "types": [torch.arange(3).to(kind) for kind in (torch.bfloat16, torch.float16, torch.float64, torch.int8,
                                                       torch.int16, torch.int64,
                                                       torch.bool)]}
  torch.save(x, tmp_path / "f", **options)
  same(torch_load(tmp_path / "f"), x)

def test_pytorch_reads_what_the_writer_writes(tmp_path):
  """This shows that the writer of these tests has the right formats."""
  torch = pytest.importorskip("torch")
  x = {name: tensor(WHOLE, *view) for name, view in VIEWS.items()}
  for name in ("zip", "stream"):
    (tmp_path / name).write_bytes(FORMATS[name](x))
    same(torch_load(tmp_path / name), torch.load(tmp_path / name, weights_only=True))

# ***** hostile and damaged files *****

def calls(module, name, *arguments): return Reduced(Global(module, name), arguments)

HOSTILE = {
  "os.system": calls("os", "system", "touch /tmp/never"), "eval": calls("builtins", "eval", "1"),
  "exec": calls("__builtin__", "exec", "1"),
  "getattr": calls("builtins", "getattr", Global("torch", "Size"), "mro"),
  "subprocess": calls("subprocess", "Popen", ["true"]),
  "import": calls("importlib", "import_module", "os"), "torch.load": calls("torch.serialization", "load", "f"),
  "dotted": calls("torch._utils", "_rebuild_tensor_v2.__globals__"), "hub": calls("torch.hub", "load", "x"),
  "open": calls("io", "open",
                "/etc/passwd"),
}

@pytest.mark.parametrize("name", HOSTILE)
def test_no_call_but_those_of_tensors(name):
  for data in (zip_file(HOSTILE[name], {}), stream_file(HOSTILE[name], {}), tar_file(HOSTILE[name], {}, {})):
    refused(data, "its pickle wants .*, and only tensors and plain data are read")

def test_whole_models_are_refused():
  model = Built(Reduced(Global("copyreg", "_reconstructor"), (Global("__main__", "Net"), Global("builtins", "object"),
                                                              None)), {})
  refused(zip_file(model, {}), r"wants copyreg._reconstructor.* save its state_dict\(\)")

def laughs(opcode, count=60):
  """Return a pickle that doubles its value again and again: a tuple, a list or a dict of two of it."""
  return b"\x80\x02]" + opcode * count + b"."

BOMBS = {
  "tuples": (laughs(b"2\x86"), "unfolds to far more"),
  "lists": (b"\x80\x02]" + b"q\0]h\0ah\0a" * 60 + b".", "unfolds to far more"),
  "dicts": (b"\x80\x02}" + b"q\0}K\1h\0sK\2h\0s" * 60 + b".", "unfolds to far more"),
  "deep": (b"\x80\x02]" + b"\x85" * 20_000 + b".", "nested more than 100 deep"),
  "deeper": (b"\x80\x02" + b"(" * 20_000 + b"t" * 20_000 + b".", "nested more"),
  "itself": (b"\x80\x02]q\0h\0a.", "contains itself"), "key": (b"\x80\x02}" + b"K\1" + b"2\x86" * 100 + b"Ns.",
                                                               "a key in its pickle is too large"),
  "set": (b"\x80\x02\x8f(" + b"K\1" + b"2\x86" * 100 + b"\x90.", "a key in its pickle is too large"),
  "called": (b"\x80\x02)" + b"2\x86" * 100 + b")R.", "calls something of <class 'tuple'>, which is not allowed"),
  "printed": (b"\x80\x02cnumpy\ndtype\n)" + b"2\x86" * 100 + b"\x85R.", "no number has such a type"),
  "storage": (b"\x80\x02)" + b"2\x86" * 100 + b"Q.", "not a storage"), "list as key": (b"\x80\x02}]Ns.",
      "a key in its pickle is no plain data: list"),
  "long": (b"\x80\x02\x8b\xff\xff\xff\x7f", "a number in its pickle has 2147483647 bytes"),
  "line": (b"I" + b"1" * 100_000 + b"\n.",
           "line in its pickle is too long"),
  "digits": (b"L" + b"9" * 1000 + b"L\n.", "is no number"), "bytes": (b"\x80\x04\x8e" + b"\xff" * 7 + b"\x7f.",
                                                                      "its pickle wants 9223372036854775807 bytes"),
  "text": (b"X\xff\xff\xff\xff.", "its pickle wants 4294967295 bytes"),
  "frame": (b"\x80\x04\x95" + b"\xff" * 8 + b"K\1.", None),
  "memo": (b"\x80\x02K\1r\xff\xff\xff\xff.", None), "no memo": (b"h\7.", "entry 7 of its memo, which is not there"),
  "unmarked": (b"e.", "no mark where it wants one"), "float": (b"Fabc\n.", "is no number"),
  "quotes": (b"Sabc\n.", "is damaged"),
  "escape": (b"V\\u12\n.", "a string in its pickle is damaged"), "pop": (b"0.", "takes more from the stack"),
  "utf": (b"X\1\0\0\0\xff.", "no UTF-8"),
  "string": (b"U\1xS'y'\n\x86.", None), "bytes of Python 2": (b"U\1\xff.", None), "empty": (b"", "wants 1 bytes"),
  "nothing": (b".",
              "takes more from the stack"), "mark": (b"(.", "takes more from the stack"),
  "no mark": (b"t.", "no mark"),
  "opcode": (b"\x80\x02\xfe.", "no opcode that plain data has: 0xfe"),
  "instance": (b"(ios\nsystem\n.", "no opcode that plain data has: 0x69"),
  "extension": (b"\x80\x02\x82\1.", "no opcode"), "protocol": (b"\x80\x09N.", "protocol 9"),
  "utf8": (b"X\2\0\0\0\xff\xff.", "no UTF-8"),
  "odd": (b"(K\1d.", "sets a key without a value"), "append": (b"K\1K\2a.", "appends to something else: int"),
  "build": (b"K\1K\2b.",
            "a int has no state"),
  "class": (b"\x80\x02ctorch\nSize\n.", "holds torch.Size, which is neither a tensor nor plain data"),
  "storage class": (b"\x80\x02]ctorch\nFloatStorage\na.", "holds StorageType"),
  "persistent text": (b"P5\n.", "not a storage"),
}

@pytest.mark.parametrize("name", BOMBS)
def test_bombs(name):
  data, text = BOMBS[name]
  for made in (zip_file(data, {}), stream_file(data, {})):
    assert survives(lambda d: torch_load(Tensor(d)), made, name) is (text is None)
    if text is not None: refused(made, text)

def test_tensors_stay_inside_of_their_storage():
  for view, text in (((0, (25,), (1,)), "reaches element 24 of a storage of 24"),
                     ((24, (1,), (1,)), "reaches element 24"), ((-1, (1,),
                                                                 (1,)), "no natural"),
                     ((0, (2, 2), (1,)), "no natural"), ((0, (-1,), (1,)), "no natural"),
                     ((0, (2 ** 40, 2 ** 40), (0, 1)), "reaches element"),
                     ((0, (20, 5), (1, 1)), "overlaps itself; save its .clone"),
                     ((0, (2,), (1 << 61,)), "reaches element"), ((0, "ab", (1,
                                                                             1)), "no natural"),
                     ((0, (1 << 80,), (0,)), "no natural"), ((0, (True,), (1,)), "no natural")):
    for made in (zip_file(tensor(WHOLE, *view), {"0": NUMBERS.tobytes()}),
                 stream_file(tensor(WHOLE, *view), {"0": ("Float", NUMBERS.tobytes())})):
      refused(made, text)

def test_storages_must_be_there():
  x = tensor(WHOLE, 0, (24,), (1,))
  refused(zip_file(x, {"1": NUMBERS.tobytes()}), "it has no storage '0'")
  refused(zip_file(x, {"0": NUMBERS.tobytes()[:-1]}), "storage '0' should have 24 elements, and has 95 bytes")
  refused(stream_file(x, {}), "it has no storage '0'")
  refused(stream_file(x, {"0": ("Float", NUMBERS.tobytes())})[:-1], "was the download cut off")
  refused(stream_file(x, {"1": ("Float", NUMBERS.tobytes())}), "which no tensor has")
  refused(zip_file(Reduced(Global("torch._utils", "_rebuild_tensor_v2"), (1, 2)), {}),
          "arguments that it does not take")
  refused(zip_file(Reduced(Global("torch._utils", "_rebuild_tensor_v2"), (1, 0, (), (), 0, 0)), {}),
          "a tensor has no storage")

def test_what_is_no_file_of_pytorch():
  refused(b"", "neither a zip archive nor begins with a pickle")
  refused(b"hello", "neither a zip archive nor begins with a pickle")
  refused(pickled({"a": 1}), "not with torch.save's magic number")
  refused(zip_file({}, {}, b"big"), "big-endian; save it again on a little-endian machine")
  refused(stream_file({}, {}, little=False), "big-endian")
  import io
  made = io.BytesIO()
  with zipfile.ZipFile(made, "w") as z: z.writestr("a/x", b"")
  refused(made.getvalue(), "a zip archive without data.pkl")
  with zipfile.ZipFile(made, "a") as z:
    z.writestr("a/data.pkl", b"N.")
    z.writestr("a/constants.pkl", b"N.")
  refused(made.getvalue(), r"a TorchScript program; save the module's state_dict\(\) instead")

@pytest.mark.slow
def test_mutated_files(tmp_path):
  nested = {"state": ordered(*[(name, tensor(WHOLE, *view)) for name, view in VIEWS.items() if name != "steps"]),
            "l": [1, (2.5, None,
                      b"x")], "n": {3: "x"}}
  samples = {name: FORMATS[name](nested) for name in ("zip", "deflated", "stream", "protocol 3")}
  samples["tar"] = tar_file({"w": Referred("7")}, {"1": ("Float", NUMBERS.tobytes())}, {"7": ("1", 2, (2, 3), (4, 1))},
                            [("3", "1", 20, 4)])
  samples["golden"] = (GOLDEN / "torch_stream.pt").read_bytes()
  def read(data):
    (tmp_path / "f").write_bytes(data)
    use(torch_load(tmp_path / "f"))
  fuzz(read, samples, count=cases(400, 12_000))
  assert os.listdir(tmp_path) == ["f"]
