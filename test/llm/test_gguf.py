"""GGUF files: written files can be read. Damaged and hostile ones are refused at little cost."""
import struct
from typing import Any

import pytest
from formats.gguf_files import decoded, random_blocks, text, value, write
from formats.mutations import fuzz

from tinyhw import Tensor, dtypes
from tinyhw.errors import ArgumentError, FileFormatError, MissingFileError
from tinyhw.llm import blocks
from tinyhw.llm.gguf import gguf_load

METADATA = {"general.architecture": "llama", "llama.block_count": 2, "a.float": 1.5, "a.bool": True, "a.negative": -7,
            "a.long": 1 << 40,
            "tokens": ["<s>", "é", "日本"], "scores": [0.5, -1.0], "nested": [[1, 2], [3]], "empty": []}
Q8, F32, Q4_K = 8, 0, 12
TENSORS = {"a.weight": ((2, 64), Q8, random_blocks(blocks.TYPES[Q8], 4)),
           "norm": ((3,), F32, struct.pack("<3f", 1, 2, 3)),
           "scalar": ((), F32, struct.pack("<f", 7)), "k": ((1, 256), Q4_K, random_blocks(blocks.TYPES[Q4_K], 1)),
           "none": ((0, 32), Q8, b"")}
FILE = write(METADATA, TENSORS)

def load(data: bytes) -> Any: return gguf_load(Tensor(data, dtype=dtypes.uint8))

@pytest.mark.parametrize("version, alignment", [(2, 32), (3, 32), (3, 64), (3, 8)])
def test_what_is_written_is_read(tmp_path, version, alignment):
  metadata = {**METADATA, "general.alignment": alignment}
  path = tmp_path / "model.gguf"
  path.write_bytes(write(metadata, TENSORS, version, alignment))
  for source in (path, str(path), Tensor(path.read_bytes(), dtype=dtypes.uint8)):
    values, tensors = gguf_load(source)
    assert values == metadata and list(tensors) == list(TENSORS)
    assert tensors["a.weight"].shape == (2, 64) and tensors["norm"].tolist() == [1, 2,
                                                                                 3] and tensors["scalar"].item() == 7
    assert (tensors["a.weight"].flatten().tolist() == decoded(blocks.TYPES[Q8], TENSORS["a.weight"][2])
            and tensors["none"].shape == (0, 32))
    assert tensors["k"].dtype is dtypes.float32

@pytest.mark.slow
def test_only_the_header_is_read_before_elements_are_wanted(tmp_path):
  path = tmp_path / "big.gguf"
  with path.open("wb") as file:
    file.write(write({}, {"w": ((1 << 20, 1024), Q8, b"")}))
    file.truncate(file.tell() + (1 << 30) // 32 * 34)       # a sparse file of more than a GB
  _, tensors = gguf_load(path)
  assert tensors["w"].shape == (1 << 20, 1024) and tensors["w"][5, :4].tolist() == [0.0] * 4

def test_text_that_is_no_utf8_is_kept():
  values, _ = load(write({"tokens": [b"\xff\xfe", "a"]}, {}))
  assert values["tokens"][0].encode("utf-8", "surrogateescape") == b"\xff\xfe"

def header(*parts: bytes, tensors: int = 0, metadata: int = 1) -> bytes:
  return b"GGUF" + struct.pack("<IQQ", 3, tensors, metadata) + b"".join(parts)
def info(name: str, dims: list[int], kind: int, offset: int) -> bytes:
  """Return a tensor's entry, with sizes innermost first."""
  return text(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, kind, offset)

NESTED = text("x") + struct.pack("<I", 9) + struct.pack("<IQ", 9, 1) * 100 + bytes(12)
@pytest.mark.parametrize("data, why", [
  (b"", "does not begin with GGUF"), (b"GGML" + bytes(40), "does not begin with GGUF"),
  (b"GGUF" + struct.pack("<IQQ", 1, 0, 0), "version is 1"),
  (b"GGUF" + struct.pack(">IQQ", 3, 0, 0), "big-endian"), (header(metadata=1 << 60), "number of metadata is"),
  (header(tensors=1 << 60), "number of tensors is"),
  (header(struct.pack("<QQ", 1 << 62, 0)), "length of a name of metadata"),
  (header(text("x") + struct.pack("<I", 99)), "type 99"),
  (header(text("x") + struct.pack("<IIQ", 9, 4, 1 << 61)), "'x' is"),
  (header(text("x") + struct.pack("<IIQ", 9, 8, 1 << 61)), "'x' is"),
  (header(NESTED), "arrays in arrays"), (header(text("x") + value(1), text("x") + value(1), metadata=2),
                                         "stands twice"),
  (header(info("w", [1] * 5, 0, 0), tensors=1, metadata=0), "5 axes"),
  (header(info("w", [4], 0, 1 << 40), tensors=1, metadata=0), "ends at byte"),
  (header(info("w", [1 << 62, 1 << 62], 0, 0), tensors=1, metadata=0), "ends at byte"),
  (header(info("w", [4], 4, 0), tensors=1, metadata=0), "type 4 are not known"),
  (header(info("w", [33], 8, 0), tensors=1, metadata=0), "rows"),
  (header(info("w", [0], 0, 3), tensors=1, metadata=0), "not aligned"),
  (header(info("w", [0], 0, 0), info("w", [0], 0, 0), tensors=2, metadata=0), "two tensors"),
  (header(text("general.alignment") + value(0)), "general.alignment is 0"),
  (header(text("general.alignment") + value("x")), "general.alignment is 'x'"),
  (FILE[:len(FILE) // 3], "cut off"), (FILE[:-64], "cut off")])
def test_damaged_files_are_refused(data, why):
  with pytest.raises(FileFormatError, match=why): load(data)

def test_what_is_no_file_is_refused(tmp_path):
  with pytest.raises(MissingFileError, match="there is no file"): gguf_load(tmp_path / "none.gguf")
  with pytest.raises(ArgumentError, match="is a folder"): gguf_load(tmp_path)
  with pytest.raises(ArgumentError, match="vector of bytes"): gguf_load(Tensor.zeros(2, 2, dtype="uint8"))

def test_mutated_files():
  """Elements are computed only where their shapes are the original's. Other shapes would be other kernels, and cost
  compile time."""
  def use(data: bytes) -> None:
    for name, t in load(data)[1].items():
      if name in TENSORS and t.shape == TENSORS[name][0] and t.shape != (1, 256):
        assert len(t.flatten().tolist()) == t.numel()
  fuzz(use, {"whole": FILE, "bare": write({}, {"norm": ((3,), F32, bytes(12))})})

# ***** models in several files *****

def split(folder, count=3, /, **changes):
  """Return a model's parts, of one tensor each. `changes` puts other metadata into the last."""
  for k in range(count):
    metadata = {"split.no": k, "split.count": count, "split.tensors.count": count, **({"a": "b"} if k == 0 else {})}
    tensors = {f"t{k}": ((2,), F32, struct.pack("<2f", k, k + 1))}
    if k == count - 1:
      tensors = {changes.pop("tensor", f"t{k}"): tensors[f"t{k}"]}
      metadata |= {f"split.{key}": x for key, x in changes.items()}
    (folder / f"m-{k + 1:05}-of-{count:05}.gguf").write_bytes(write(metadata, tensors))
  return folder / f"m-00001-of-{count:05}.gguf"

def test_parts_are_one_model(tmp_path):
  values, tensors = gguf_load(split(tmp_path))
  assert values["a"] == "b" and {name: t.tolist() for name, t in tensors.items()} == {"t0": [0, 1], "t1": [1, 2],
                                                                                      "t2": [2, 3]}
  whole = tmp_path / "whole.gguf"   # a single part is an ordinary file
  whole.write_bytes(write({"split.no": 0, "split.count": 1}, {"t": ((1,), F32, bytes(4))}))
  assert list(gguf_load(whole)[1]) == ["t"]

@pytest.mark.parametrize("change, why", [({"no": 1}, "says that it is part 1 of 3"), ({"count": 4}, "part 2 of 4"),
                                         ({"tensor": "t0"}, "so has an earlier")])
def test_parts_that_do_not_fit_are_refused(tmp_path, change, why):
  with pytest.raises(FileFormatError, match=why): gguf_load(split(tmp_path, **change))

@pytest.mark.slow
def test_parts_that_are_missing_or_misnamed(tmp_path):
  first = split(tmp_path)
  with pytest.raises(ArgumentError, match="not the first part .* m-00001-of-00003"):
    gguf_load(tmp_path / "m-00002-of-00003.gguf")
  with pytest.raises(ArgumentError, match="one part of a model"): load(first.read_bytes())
  (tmp_path / "m-00003-of-00003.gguf").unlink()
  with pytest.raises(MissingFileError, match="m-00003-of-00003"): gguf_load(first)
  for name in ("other.gguf", "m-00001-of-00009.gguf"):
    first = first.rename(tmp_path / name)
    with pytest.raises(FileFormatError, match="does not end with -00001-of-00003"): gguf_load(first)
  for count in (-1, "x", 1 << 40):
    with pytest.raises(FileFormatError, match="split.count is"): load(write({"split.count": count}, {}))
  first.write_bytes(write({"split.no": 0, "split.count": 2, "split.tensors.count": 7}, {}))
  first = first.rename(tmp_path / "n-00001-of-00002.gguf")
  (tmp_path / "n-00002-of-00002.gguf").write_bytes(write({"split.no": 1, "split.count": 2}, {}))
  with pytest.raises(FileFormatError, match="have 0 tensors, and should have 7"): gguf_load(first)
