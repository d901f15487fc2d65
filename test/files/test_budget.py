"""tinyhw/files/budget.py: no reader takes more memory for a file than its budget. Each file here amplifies in its own
way.

The rule is 64 MB and 20 bytes for each byte of the file. Here 64 MB is replaced by 1 MB, so that files of some 100 KB
show the effect of files of some MB. tracemalloc and the devices count memory. One test runs the real rule, in processes
whose address space is limited.
"""
from __future__ import annotations
import gc
import gzip
import io
import json
import struct
import subprocess
import sys
import tarfile
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from formats.gguf_files import text, write
from formats.mutations import use
from formats.onnx_writer import field, function, graph, model, node, value_info
from formats.torch_files import stream_file, tar_file, zip_file

from tinyhw import Context, Tensor

from tinyhw.errors import BudgetError, TinyError
from tinyhw.files import budget
from tinyhw.files.budget import FREE, TIMES, Budget, json_cost, parse_json
from tinyhw.helpers import GlobalCounters
from tinyhw.llm.gguf import gguf_load
from tinyhw.llm.tokenizer import SimpleTokenizer
from tinyhw.nn import datasets
from tinyhw.nn.onnx import OnnxRunner
from tinyhw.nn.state import npy_load, npz_load, safe_load, tar_extract, torch_load, zip_extract
from tinyhw.viz.archive import Archive

ROOT = Path(__file__).resolve().parents[2]
SMALL = 1 << 20   # in place of FREE
N = 100_000       # bytes of a file, about

# ***** readers: from the path of a file *****

READERS: dict[str, Callable[[Path], Any]] = {
  "torch": torch_load, "safetensors": safe_load, "npy": npy_load, "npz": npz_load, "zip": zip_extract,
  "tar": tar_extract, "gguf": gguf_load,
  "onnx": OnnxRunner, "gunzip": lambda p: Tensor(datasets.parse_idx(datasets.gunzip(p.read_bytes(), str(p)))[0]),
  "cifar": lambda p: datasets.parse_cifar(datasets.gunzip(p.read_bytes(), str(p))),
  "viz": lambda p: [(a := Archive(str(p))).read("timeline"), a.close()],
}
BYTES = ("torch", "safetensors", "npy", "npz", "zip", "tar", "gguf", "onnx")   # those that take a Tensor of bytes, too

# ***** files that amplify *****

def pickled(setup: bytes, pattern: bytes, end: bytes = b"") -> bytes:
  return b"\x80\x02" + setup + pattern * (N // len(pattern)) + end + b"."

def string(s: bytes) -> bytes: return b"X" + struct.pack("<I", len(s)) + s

_STORAGE = b"(" + string(b"storage") + b"ctorch\nFloatStorage\n" + string(b"0") + string(b"cpu") + b"M\x00\x01tQ"
_REBUILD = b"ctorch._utils\n_rebuild_tensor_v2\nq\1(" + _STORAGE + b"K\0("   # the tensor's sizes and strides follow
_PAIRS = b"((" + b"".join(string(b"%03d" % i) + b"K\1\x86" for i in range(200)) + b"t\x85"
PICKLES = {
  "encoded text": pickled(b"](c_codecs\nencode\nq\1" + string(b"a" * 5000) + string(b"latin1") + b"\x86q\2(",
                          b"h\1h\2R", b"t"),
  "ordered dicts": pickled(b"ccollections\nOrderedDict\nq\1" + _PAIRS[1:] + b"q\2(", b"h\1h\2R", b"t"),
  "empty ordered dicts": pickled(b"ccollections\nOrderedDict\nq\1(", b"h\1)R", b"t"),
  "sets": pickled(b"cbuiltins\nset\nq\1(" + b"".join(b"M" + struct.pack("<H", i) for i in range(500, 800))
                  + b"t\x85q\2(", b"h\1h\2R", b"t"),
  "bytearrays": pickled(b"cbuiltins\nbytearray\nq\1C\xff" + bytes(255) + b"\x85q\2(", b"h\1h\2R", b"t"),
  "complex": pickled(b"cbuiltins\ncomplex\nq\1K\1K\2\x86q\2(", b"h\1h\2R", b"t"),
  "lists": pickled(b"](", b"]", b"e"), "dicts": pickled(b"](", b"}", b"e"), "empty sets": pickled(b"](", b"\x8f", b"e"),
  "tuples": pickled(b"](", b"N\x85", b"e"), "pairs": pickled(b"](", b"NN\x86", b"e"),
  "frozen sets": pickled(b"](", b"(\x91", b"e"),
  "lists of one": pickled(b"](", b"]Na", b"e"), "dicts of one": pickled(b"](", b"}NNs", b"e"),
  "nothing": pickled(b"](", b"N", b"e"),
  "memo": pickled(b"N", b"\x94"), "memo out of order": pickled(b"N", b"r\xff\xff\xff\x7f"),
  "references": pickled(b"]q\1](", b"h\1", b"e"),
  "numbers": pickled(b"](", b"M\xff\xff", b"e"), "floats": pickled(b"](", b"F1\n", b"e"),
  "long numbers": pickled(b"](", b"\x8a\2\xff\x7f", b"e"),
  "strings": pickled(b"](", b"\x8c\1a", b"e"), "wide strings": pickled(b"](", string("aaaaaaaaa\U0001f600".encode()),
                                                                       b"e"),
  "keys": b"\x80\x02}(" + b"".join(b"J" + struct.pack("<i", i) + b"N" for i in range(N // 6)) + b"u.",
  "marks": pickled(b"", b"("), "sizes": pickled(b"ctorch\nSize\nq\1(" + b"K\1" * 60 + b"t\x85q\2(", b"h\1h\2R", b"t"),
  "tensors": pickled(_REBUILD + b"K\2K\2K\2K\2t(K\1K\2K\4K\x08ttq\2(", b"h\1h\2R", b"t"),
  "gathered tensors": pickled(_REBUILD + b"K\3K\3K\3K\3t(K\1K\2K\4K\x09ttq\2(", b"h\1h\2R", b"t"),
  "expanded tensors": pickled(_REBUILD + b"J\0\0\0\x40" * 60 + b"t(" + b"K\0" * 60 + b"ttq\2(", b"h\1h\2R", b"t"),
  "storages": pickled(b"(" + _STORAGE[1:-2] + b"tq\1(", b"h\1Q", b"t"),
}

def safetensors(header: bytes, data: bytes = b"") -> bytes: return struct.pack("<Q", len(header)) + header + data

def npy(descr: str, data: bytes) -> bytes:
  head = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': ({len(data) // int(descr[-1])},), }}".ljust(
    117).encode() + b"\n"
  return b"\x93NUMPY\1\0" + struct.pack("<H", len(head)) + head + data

def zipped(files: dict[str, bytes], packing: int = zipfile.ZIP_DEFLATED) -> bytes:
  made = io.BytesIO()
  with zipfile.ZipFile(made, "w", packing, compresslevel=9) as z:
    for name, data in files.items(): z.writestr(name, data)
  return made.getvalue()

def tarred(files: dict[str, bytes], mode: str = "w:gz") -> bytes:
  made = io.BytesIO()
  with tarfile.open(fileobj=made, mode=mode) as tar:  # type: ignore[call-overload]
    for name, data in files.items():
      member = tarfile.TarInfo(name)
      member.size = len(data)
      tar.addfile(member, io.BytesIO(data))
  return made.getvalue()

def gguf_array(kind: int, item: bytes) -> bytes:
  """Return one array in the metadata, of N bytes of an item type."""
  count = N // len(item)
  return b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + text("a") + struct.pack("<IIQ", 9, kind, count) + item * count

def gguf_tensors(kind: int, size: int) -> bytes:
  return write({}, {f"{i:x}": ((size,), kind, b"") for i in range(N // 40)}) + bytes(4096)

def sparse_tar() -> bytes:
  """A file of 1 TB with nothing in it."""
  header = bytearray(tarred({"a.bin": b""}, "w")[:512])
  header[156:157], header[257:265], header[483:495] = b"S", b"ustar  \0", b"%011o\0" % (1 << 30)
  header[148:156] = b" " * 8
  header[148:156] = b"%06o\0 " % sum(header)
  return bytes(header) + bytes(1024)

ZEROS = bytes(30 << 20)
FILES: dict[str, tuple[str, Callable[[], bytes]]] = {
  **{f"zip of {name}": ("torch", lambda data=data: zip_file(data, {"0": bytes(1024)}))
     for name, data in PICKLES.items()},
  **{f"stream of {name}": ("torch", lambda data=data: stream_file(data, {"0": ("Float", bytes(1024))}))
     for name, data in PICKLES.items()
     if name in ("encoded text", "tensors", "storages")},
  "deflated pickle": ("torch", lambda: zip_file(b"\x80\x02X\0\0\0\1" + bytes(1 << 24) + b".", {},
                                                packing=zipfile.ZIP_DEFLATED)),
  "deflated storage": ("torch", lambda: zip_file(PICKLES["tensors"], {"0": ZEROS}, packing=zipfile.ZIP_DEFLATED)),
  "tar of lists": ("torch", lambda: tar_file(PICKLES["lists"], {}, {})),
  "safetensors of lists": ("safetensors", lambda: safetensors(b'{"a":[' + b"[]," * (N // 3) + b"0]}")),
  "safetensors of dicts": ("safetensors", lambda: safetensors(b'{"a":[' + b'{"":{}},' * (N // 8) + b"0]}")),
  "safetensors of numbers": ("safetensors", lambda: safetensors(b'{"a":[' + b"-9," * (N // 3) + b"0]}")),
  "safetensors of wide text": ("safetensors", lambda: safetensors(f'{{"a":["😀{"a" * N}"]}}'.encode())),
  "safetensors of escapes": ("safetensors", lambda: safetensors(b'{"a":["' + b"a" * N + b'\\ud83d\\ude00"]}')),
  "safetensors of names": ("safetensors",
                           lambda: safetensors(b"{" + b",".join(b'"%d":0' % i for i in range(N // 10)) + b"}")),
  "empty tensors": ("safetensors", lambda: safetensors(b"{" + b",".join(
    b'"%d":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}' % i for i in range(N // 60)) + b"}")),
  "big-endian": ("npy", lambda: npy(">f8", bytes(8 * (N // 8)))),
  "deflated array": ("npz", lambda: zipped({"a.npy": npy("<f8", ZEROS)})),
  "deflated arrays": ("npz", lambda: zipped({f"{i}.npy": npy("<f8", ZEROS[:1 << 18]) for i in range(100)})),
  "deflated zeros": ("zip", lambda: zipped({"a": ZEROS})),
  "many members": ("zip", lambda: zipped({f"{i:x}": b"" for i in range(N // 100)})),
  "gzip of zeros": ("tar", lambda: tarred({"a": ZEROS})),
  "gzip of many": ("tar", lambda: tarred({f"{i:x}": b"" for i in range(10_000)})),
  "long names": ("tar", lambda: tarred({f"{i:x}" * 400: b"" for i in range(20)}, "w")),
  **{f"gguf array of type {kind}": ("gguf", lambda kind=kind, item=item: gguf_array(kind, item)) for kind, item in (
    (0, b"\xfe"), (1, b"\x80"), (2, b"\xff\xfe"), (3, b"\0\x80"), (4, b"\xff" * 4), (6, b"\0\0\x80\x3f"), (7, b"\1"),
    (8, text("")), (8, text("ab")),
    (8, text("\U0001f600" + "a" * 20)), (9, struct.pack("<IQ", 0, 0)), (10, b"\xff" * 8), (12, bytes(8)))},
  "gguf metadata": ("gguf", lambda: write({f"{i:x}": True for i in range(N // 16)}, {})),
  **{f"gguf tensors of type {kind}": ("gguf", lambda kind=kind, size=size: gguf_tensors(kind, size))
     for kind, size in ((0, 1), (1, 0), (13, 256))},
  "attributes of nothing": ("onnx", lambda: model(graph([b"\x2a\0" * (N // 2)], [], []))),
  "nodes of nothing": ("onnx", lambda: model(graph([b""] * (N // 3), [], []))),
  "inputs of nothing": ("onnx", lambda: model(graph([], [b""] * (N // 3), []))),
  "unknown nodes": ("onnx", lambda: model(graph([node(f"X{i}", [], []) for i in range(N // 12)], [], []))),
  "numbers of one byte": ("onnx", lambda: model(graph(
    [node("X", [], ["y"]) + field(5, field(1, "a") + field(20, 7) + field(8, b"\1" * N))], [], []))),
  "initializers": ("onnx", lambda: field(7, b"".join(field(5, field(2, 2) + field(9, b"\1") + field(8, f"{i:x}"))
                                                     for i in range(N // 14)))),
  "int64 of one byte": ("onnx", lambda: field(7, field(5, field(1, N) + field(2, 7) + field(7, b"\1" * N)))),
  "uint8 of one byte": ("onnx", lambda: field(7, field(5, field(1, N) + field(2, 2) + field(5, b"\1" * N)))),
  "uint4": ("onnx", lambda: field(7, field(5, field(1, 2 * N) + field(2, 21) + field(9, b"\x12" * N)))),
  "bools": ("onnx", lambda: field(7, field(5, field(1, N) + field(2, 9) + field(9, b"\2" * N)))),
  "functions": ("onnx", lambda: model(graph([node("F0", ["x"], ["y"], domain="own")] * 2000,
                                            [value_info("x", "float32", [1])], ["y"]), functions=[
    function("own", "F0", ["a"], ["b"], [node("Identity", ["a"], ["b"])] * 20)])),
  "idx": ("gunzip", lambda: gzip.compress(b"\0\0\x08\1" + struct.pack(">I", len(ZEROS)) + ZEROS)),
  "cifar": ("cifar", lambda: tarred({"data_batch_1.bin": bytes(3073 * 10_000)})), "sparse cifar": ("cifar", sparse_tar),
  "viz member": ("viz", lambda: zipped({"index.json": b'{"version": 1}', "timeline.json": ZEROS})),
  "viz index": ("viz", lambda: zipped({"index.json": b'{"version": 1, "a": [' + b"[]," * 1_000_000 + b"0]}"})),
}

def made(read: Callable[[], Any]) -> tuple[int, bool]:
  """Return the peak bytes of a read, and whether it gave a result. It may raise a TinyError."""
  gc.collect()
  tracemalloc.start(1)
  try:
    held, devices, kept, done = tracemalloc.get_traced_memory()[0], GlobalCounters.mem_used, None, True
    try: kept = read()
    except TinyError: done = False
    peak = tracemalloc.get_traced_memory()[1] - held + GlobalCounters.mem_used - devices
    del kept
    return peak, done
  finally: tracemalloc.stop()

def peak_of(read: Callable[[], Any], most: int) -> int:
  """Return the peak bytes of a read, measured again if it is above `most`.

  The table of all nodes, which other tests have filled, may grow during one read. It does not grow in the next one.
  """
  peak = made(read)[0]
  return peak if peak <= most else made(read)[0]

@pytest.fixture(scope="module", autouse=True)
def warm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
  """Load modules at a first call, so that they do not count as memory of the file.

  Garbage collections do not walk objects that other tests left.
  """
  gc.collect()
  gc.freeze()
  path = tmp_path_factory.mktemp("warm") / "file"
  for name, data in (("torch", zip_file({"a": 1}, {})), ("safetensors", safetensors(b"{}")),
                     ("npy", npy("<f8", bytes(8))),
                     ("npz", zipped({"a.npy": npy("<f8", bytes(8))})), ("zip", zipped({"a": b"b"})),
                     ("tar", tarred({"a": b"b"})),
                     ("gguf", gguf_tensors(13, 256)),
                     ("onnx", model(graph([node("Identity", ["x"], ["y"])], [value_info("x", "float32", [1])], ["y"]))),
                     ("gunzip", gzip.compress(b"\0\0\x08\1\0\0\0\1a")), ("cifar", tarred({"a.bin": bytes(3073)})),
                     ("viz", zipped({"index.json": b'{"version": 1}'}))):
    path.write_bytes(data)
    try: use(READERS[name](path))
    except BudgetError: pass
  yield
  gc.unfreeze()

def test_the_budget_is_what_the_documents_promise() -> None:
  assert (FREE, TIMES) == (64 << 20, 20)

@pytest.mark.parametrize("name", FILES)
def test_a_file_makes_no_more_than_its_budget(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
  reader, make = FILES[name]
  data = make()
  (tmp_path / "file").write_bytes(data)
  monkeypatch.setattr(budget, "FREE", SMALL)
  most = SMALL + TIMES * len(data)
  peak = peak_of(lambda: READERS[reader](tmp_path / "file"), most)
  assert peak <= most, f"{peak} bytes for a file of {len(data)}, {(peak - SMALL) / len(data):.1f} for each"
  if reader in BYTES:
    t = Tensor(data, device="PYTHON").realize()
    peak = peak_of(lambda: READERS[reader](t), most)
    assert peak <= most, f"as a Tensor: {peak} bytes for a file of {len(data)}"

def test_what_a_header_says_is_not_made(tmp_path: Path) -> None:
  """A shape of 2**60 equal elements is a Tensor, lazy as others."""
  data = zip_file(PICKLES["expanded tensors"][:PICKLES["expanded tensors"].index(b"h\1h\2R") + 5] + b"t.",
                  {"0": bytes(1024)})
  (tmp_path / "file").write_bytes(data)
  found = torch_load(tmp_path / "file")[0]
  assert found.shape == (1 << 30,) * 60 and made(lambda: torch_load(tmp_path / "file"))[0] < SMALL

@pytest.mark.parametrize("name, make", [("torch_load", lambda: zip_file(PICKLES["encoded text"], {})),
  ("zip_extract", lambda: zipped({"a": ZEROS})), ("npz_load", lambda: zipped({"a.npy": npy("<f8", ZEROS)})),
  ("tar_extract", lambda: tarred({"a": ZEROS}))])
def test_the_error_says_how_to_allow_more(name: str, make: Callable[[], bytes],
                                          monkeypatch: pytest.MonkeyPatch) -> None:
  """By Context or the environment for any reader, by an argument for calls that have one."""
  monkeypatch.setattr(budget, "FREE", SMALL)
  read: Any = {"torch_load": torch_load, "zip_extract": zip_extract, "npz_load": npz_load,
               "tar_extract": tar_extract}[name]
  data = Tensor(make(), device="PYTHON")
  told = r"would make more than [0-9]+ bytes of memory; if you trust it, allow more: with Context\(READ_LIMIT=bytes\)"
  with pytest.raises(BudgetError, match=told): read(data)
  with Context(READ_LIMIT=1 << 30): assert read(data)
  assert read(data, limit=1 << 30)
  with pytest.raises(BudgetError, match="more than 1000 bytes"): read(data, limit=1000)

def test_a_budget() -> None:
  found = Budget("x", 10)
  assert found.most == found.left == FREE + TIMES * 10
  with found.borrowed(): found.take(FREE)
  found.take(FREE)
  found.give(100)
  assert found.left == TIMES * 10 + 100
  for _ in range(2): found.add("beside", 5)
  assert found.left == TIMES * 15 + 100
  with pytest.raises(BudgetError, match=f"reading x, which has 15 bytes, would make more than {FREE + TIMES * 15} "
                     f"bytes"):
    found.take(FREE)

@pytest.mark.parametrize("text", [
  b'{"a": [1, 2.5, "b", null, {"c": []}], "d": {}}', "[[\"\u00fc\U0001f600\"]]".encode(), b"[" * 900 + b"]" * 900,
  b"[" + b'{"":[{}]},' * 3000 + b"0]", b"[" + b"-9," * 9000 + b"1]",
  b"{" + b",".join(b'"%d":0' % i for i in range(9000)) + b"}",
  b'["' + b"\\u00e9" * 9000 + b'"]', b'"' + "\u4e00".encode() * 9000 + b'"'])
def test_json_costs_no_more_than_is_drawn(text: bytes) -> None:
  found = Budget("x", len(text))
  peak, done = made(lambda: parse_json(text, found))
  assert (done and peak <= json_cost(text) + 4000 and found.most - found.left == json_cost(text)
          and parse_json(text, found) == json.loads(text))

@pytest.mark.parametrize("text, why", [(b"{", "Expecting"), (b"[NaN]", "NaN is no number of JSON"),
                                       (b"[-Infinity]", "no number"), (b"\xff", "utf-8"),
                                       (b"[" * 100_000, "nests too deep"), (b'{"a": 1, "a": 2}', "stands twice")])
def test_what_is_no_json(text: bytes, why: str) -> None:
  with pytest.raises(ValueError, match=why): parse_json(text, Budget("x", 0), unique=True)

def test_special_tokens_are_no_expression() -> None:
  """They took 200 bytes for each of their characters, and half a minute for a megabyte."""
  tokens = ["<" + f"{i:06}" * 20 for i in range(2000)]
  kv = {"tokenizer.ggml.tokens": tokens, "tokenizer.ggml.token_type": [3] * len(tokens),
        "tokenizer.ggml.eos_token_id": 0,
        "tokenizer.ggml.pre": "llama3"}
  peak, done = made(lambda: SimpleTokenizer.from_gguf_kv(kv))
  assert done and peak < 8 * sum(map(len, tokens))

_LIMITED = """
import resource, sys
sys.path.insert(0, {root!r})
from tinyhw import Tensor
from tinyhw.errors import BudgetError
from tinyhw.nn.state import torch_load
path = {path!r}
def now(): return int(open("/proc/self/statm").read().split()[0]) * 4096
Tensor([1.0], device="PYTHON").tolist()
resource.setrlimit(resource.RLIMIT_AS, (now() + {room},) * 2)
try: torch_load(path)
except BudgetError as error: print("refused")
"""

@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits of the address space, and /proc")
@pytest.mark.parametrize("name", ["encoded text", "ordered dicts"])
def test_a_megabyte_that_wanted_gigabytes(name: str, tmp_path: Path) -> None:
  """In a process that has no more than 64 MB, 20 bytes for each byte of the file, and room for its modules."""
  data = PICKLES[name]
  whole = zip_file(data[:-2] + data[-8:-3] * 200_000 + data[-2:], {})
  assert 900_000 < len(whole) < 1_200_000
  (tmp_path / "file").write_bytes(whole)
  program = _LIMITED.format(root=str(ROOT), path=str(tmp_path / "file"), room=FREE + TIMES * len(whole) + (64 << 20))
  done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
  assert done.stdout == "refused\n", done.stderr
