"""NumPy's files: both ways with NumPy, every version of the header, damaged and hostile ones."""
import io
import re
import zipfile

from formats.mutations import fuzz, survives, use
import numpy as np
import pytest

from tinyhw import Tensor, dtypes
from tinyhw.errors import ArgumentError, FileFormatError, MissingFileError
from tinyhw.nn.state import npy_load, npy_save, npz_load, npz_save

TYPES = ("?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8")
ARRAYS = {
  "matrix": np.arange(6, dtype=np.float32).reshape(2, 3), "scalar": np.array(2.5), "empty": np.zeros((0, 3), np.int16),
  "vector": np.arange(5),
  "fortran": np.asfortranarray(np.arange(24, dtype=np.uint8).reshape(2, 3, 4)),
  "big": np.arange(6, dtype=">i4").reshape(2, 3),
  "big fortran": np.asfortranarray(np.arange(6, dtype=">f8").reshape(2, 3)), "bools": np.array([True, False]),
}

def saved(array, version=None):
  made = io.BytesIO()
  np.lib.format.write_array(made, array, version)
  return made.getvalue()

@pytest.mark.parametrize("name", ARRAYS)
def test_ours_reads_numpy(tmp_path, name, engine):
  array = ARRAYS[name]
  for version in ((1, 0), (2, 0), (3, 0)):
    (tmp_path / "f").write_bytes(saved(array, version))
    for found in (npy_load(tmp_path / "f"), npy_load(str(tmp_path / "f")), npy_load(Tensor(saved(array, version)))):
      assert (found.shape, found.tolist(), found.to(None).numpy().dtype) == (array.shape, array.tolist(),
                                                                             array.dtype.newbyteorder("="))
  assert name.startswith("big") or name == "empty" or npy_load(tmp_path / "f").device == f"DISK:{tmp_path / 'f'}"

@pytest.mark.parametrize("kind", TYPES)
def test_types_both_ways(tmp_path, kind):
  array = np.frombuffer(bytes(range(16)) if kind != "?" else bytes([0, 1] * 8), kind)
  for order in "<>":
    np.save(tmp_path / "f.npy", array.astype(array.dtype.newbyteorder(order)))
    assert npy_load(tmp_path / "f.npy").tolist() == array.tolist()
  npy_save(Tensor(array), tmp_path / "g.npy")
  again = np.load(tmp_path / "g.npy")
  assert (again.dtype == array.dtype and again.tobytes() == array.tobytes() and (tmp_path / "g.npy").read_bytes()
          == saved(array, (1, 0)))

def test_shapes_both_ways(tmp_path):
  for t in (Tensor(2.5), Tensor(np.zeros((0, 3), np.float32)), Tensor([[1, 2]]).T, Tensor([1]) + 1,
            Tensor.ones(2, 3, 4)):
    npy_save(t, tmp_path / "f")
    assert (np.load(tmp_path / "f").tolist() == t.tolist() == npy_load(tmp_path / "f").tolist()
            and np.load(tmp_path / "f").shape == t.shape)

@pytest.mark.parametrize("packing", (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))
def test_errors_in_an_archive_name_its_file(tmp_path, packing):
  with zipfile.ZipFile(tmp_path / "f.npz", "w", packing) as archive: archive.writestr("a.npy", b"no array at all")
  with pytest.raises(FileFormatError, match=f"^{re.escape(str(tmp_path / 'f.npz'))} is no whole npy .'a.npy'. file: "
                     f"it begins with"):
    npz_load(tmp_path / "f.npz")

@pytest.mark.parametrize("compressed", (False, True))
def test_npz_both_ways(tmp_path, compressed, engine):
  (np.savez_compressed if compressed else np.savez)(tmp_path / "f.npz", **ARRAYS)
  found = npz_load(tmp_path / "f.npz")
  assert {name: t.tolist() for name, t in found.items()} == {name: a.tolist() for name, a in ARRAYS.items()}
  assert found["matrix"].device.startswith("DISK:") is not compressed
  npz_save(found, tmp_path / "g.npz", compressed)
  assert {name: a.tolist() for name, a in np.load(tmp_path / "g.npz").items()} == {name: a.tolist()
                                                                                   for name, a in ARRAYS.items()}
  assert ((tmp_path / "g.npz").stat().st_size < (tmp_path / "f.npz").stat().st_size * 1.2)

def test_npz_of_other_things(tmp_path):
  import zipfile
  with zipfile.ZipFile(tmp_path / "f", "w") as z: z.writestr("readme.txt", b"x")
  with pytest.raises(FileFormatError, match="member 'readme.txt' is no array"): npz_load(tmp_path / "f")

def test_what_cannot_be_saved(tmp_path):
  with pytest.raises(ArgumentError,
    match="NumPy has no dtypes.bfloat16; cast it first, or use safe_save"):
    npy_save(Tensor([1.0]).cast("bfloat16"), "f")
  with pytest.raises(ArgumentError, match="npy_save wants Tensors, not 5"): npy_save(5, tmp_path / "f")
  with pytest.raises(ArgumentError, match="npz_save wants a dict"): npz_save([Tensor(1)], tmp_path / "f")
  with pytest.raises(ArgumentError, match="cannot be the name of an array"): npz_save({"": Tensor(1)}, tmp_path / "f")
  with pytest.raises(MissingFileError, match="there is no folder"): npy_save(Tensor(1), tmp_path / "none" / "f")
  with pytest.raises(MissingFileError, match="there is no file"): npy_load(tmp_path / "f")
  assert not list(tmp_path.iterdir())

def test_a_failed_write_leaves_nothing(tmp_path):
  file = tmp_path / "source"
  file.write_bytes(bytes(8))
  t = Tensor(file, dtype=dtypes.float32)
  file.write_bytes(b"")
  for save in (lambda: npy_save(t, tmp_path / "f"), lambda: npz_save({"a": t}, tmp_path / "f")):
    with pytest.raises(FileFormatError, match="became shorter"): save()
  assert [p.name for p in tmp_path.iterdir()] == ["source"]

def made(header, data=bytes(24), version=1, length=None):
  text = header if isinstance(header, bytes) else header.encode()
  width = 2 if version == 1 else 4
  return (b"\x93NUMPY" + bytes([version, 0]) + (len(text) if length is None else length).to_bytes(width, "little")
          + text + data)

def described(descr="'<f4'", fortran="False", shape="(2, 3)"):
  return f"{{'descr': {descr}, 'fortran_order': {fortran}, 'shape': {shape}, }}"

def test_headers_that_others_write():
  for header in (described(shape="(2L, 3L)"), described('"<f4"'),
                 "{'shape':(2,3),'fortran_order':False,'descr':'<f4'}\n", described("'=f4'"),
                 described("'f4'"), described(shape="(6,)"), described(shape="( 2 , 3 , )"),
                 " " + described() + " " * 100 + "\n"):
    assert npy_load(Tensor(made(header))).numel() == 6
  assert (npy_load(Tensor(made(described(shape="()")))).shape == ()
          and npy_load(Tensor(made(described(), bytes(30)))).shape == (2, 3))

BAD = {
  "nothing": (b"", "takes bytes 0 to 8"), "magic": (b"\x93NUMPZ" + bytes(100), "begins with"),
  "version": (made(described(), version=4),
              "version 4.0"),
  "header": (made(described(), length=60000), "60000 bytes; at most 10000"),
  "long": (made(described(), version=2, length=1 << 31), "at most 10000"),
  "cut": (made(described())[:-1], "cut off"), "short": (made(described(), b""), "cut off"),
  "objects": (made(described("'|O'")),
              "pickles that may run"),
  "records": (made(described("[('a', '<f4'), ('b', '<i4')]")), "records of several fields"),
  "text": (made(described("'<U5'")), "are text"),
  "complex": (made(described("'<c8'")), "are complex numbers"), "dates": (made(described("'<M8[s]'")), "are dates"),
  "wide": (made(described("'<f16'")), "floats"),
  "raw": (made(described("'|V2'")), "raw bytes or records"), "unknown": (made(described("'<x9'")), "not known"),
  "negative": (made(described(shape="(-1,)")), "not one"),
  "huge": (made(described(shape="(99999999999, 99999999999)")), "cut off"),
  "digits": (made(described(shape=f"({'9' * 1000},)")), "natural numbers"),
  "axes": (made(described(shape=f"({'1,' * 100})")), "natural numbers"),
  "list": (made(described(shape="[2, 3]")), "not one"),
  "call": (made(described(shape="(__import__('os').system('true'),)")), "not one of an array"),
  "nested": (made(described(shape="(" * 3000 + ")" * 3000)), "not one"),
  "twice": (made(described()[:-1] + "'a': 'b'}"), "not one"), "missing": (made("{'descr': '<f4'}"), "not one"),
  "empty": (made("{}"), "not one"),
  "not closed": (made(described()[:-1]), "not one"), "binary": (made(b"\xff\xfe" * 20), "not one"),
  "dict": (made("{" * 5000), "not one"),
  "spaces": (made("{" + " " * 9000 + "x"), "not one"), "quotes": (made("{" + "'a':True," * 1000 + "x"), "not one"),
  "commas": (made("{'a':(" + "," * 9000), "not one"),
  "backtracking": (made("{" + "'a':True  " * 900 + "x"), "not one"),
  "gap": (made(described(shape="(2, , 3)")), "natural numbers"),
    "letters": (made(described(shape="(L)")), "natural numbers"),
}

@pytest.mark.parametrize("name", BAD)
def test_damage(name):
  data, text = BAD[name]
  assert not survives(lambda d: npy_load(Tensor(d)), data, name)
  with pytest.raises(FileFormatError, match=text): npy_load(Tensor(data))

def test_mutated_files(tmp_path):
  np.savez(tmp_path / "z", a=np.arange(5), b=np.ones((2, 2)))
  samples = {name: saved(array) for name, array in ARRAYS.items()}
  fuzz(lambda data: use(npy_load(Tensor(data, device="PYTHON"))), samples)
  fuzz(lambda data: use(npz_load(Tensor(data, device="PYTHON"))), {"npz": (tmp_path / "z.npz").read_bytes()})
