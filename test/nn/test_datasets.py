"""tinyhw/nn/datasets.py: the packaged digits, and loaders that read made files from a server on loopback."""
import gzip
import hashlib
import http.server
import io
import struct
import tarfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from tinyhw.config import Context
from tinyhw.errors import DatasetError, FileFormatError
from tinyhw.nn import datasets
from tinyhw.tensor import Tensor

def idx(shape: tuple[int, ...], data: bytes) -> bytes:
  return bytes([0, 0, 8, len(shape)]) + struct.pack(f">{len(shape)}I", *shape) + data

def some(n: int, start: int) -> bytes: return bytes((i * 7 + start) % 256 for i in range(n))

MNIST = {"train-images-idx3-ubyte.gz": idx((3, 4, 5), some(60, 0)), "train-labels-idx1-ubyte.gz": idx((3,), b"\1\0\2"),
         "t10k-images-idx3-ubyte.gz": idx((2, 4, 5), some(40, 9)), "t10k-labels-idx1-ubyte.gz": idx((2,), b"\4\3")}

def cifar_tar(names: list[str]) -> bytes:
  """Return CIFAR-10's binary archive with two pictures a file. The labels are the file's number and 9."""
  stream = io.BytesIO()
  with tarfile.open(fileobj=stream, mode="w") as tar:
    for number, name in enumerate(names):
      record = bytes([number]) + some(3072, number) + b"\x09" + some(3072, 100 + number)
      member = tarfile.TarInfo(f"cifar-10-batches-bin/{name}")
      member.size = len(record)
      tar.addfile(member, io.BytesIO(record))
  return stream.getvalue()

CIFAR_NAMES = ["readme.html"] + [f"data_batch_{i}.bin" for i in (3, 1, 2, 4, 5)] + ["test_batch.bin"]

class Handler(http.server.SimpleHTTPRequestHandler):
  def log_message(self, format: str, *args: object) -> None: pass

@pytest.fixture(params=["folder", "unpacked folder", "mirror", "address"])
def made(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
  """Provide small data sets in place of the real ones, in each way in which a user may have them."""
  for dataset, files in (("mnist", MNIST), ("fashion-mnist", MNIST),
                         ("cifar10", {"cifar-10-binary.tar.gz": cifar_tar(CIFAR_NAMES)})):
    (tmp_path / dataset).mkdir()
    for name, data in files.items():
      if request.param == "unpacked folder": (tmp_path / dataset / name.removesuffix(".gz")).write_bytes(data)
      else: (tmp_path / dataset / name).write_bytes(gzip.compress(data))
  with http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(tmp_path))) as server:
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    address = f"http://127.0.0.1:{server.server_address[1]}"
    place = {"mirror": address, "address": ""}.get(request.param, str(tmp_path))
    for name, (_, checksums) in list(datasets.SOURCES.items()):
      sums = {f: hashlib.sha256(p.read_bytes()).hexdigest() if (p := tmp_path / name / f).exists() else ""
              for f in checksums}
      monkeypatch.setitem(datasets.SOURCES, name, (f"{address}/{name}/", sums))
    with Context(DATASETS=place, CACHEDIR=str(tmp_path / "cache")): yield tmp_path
    server.shutdown()
    thread.join()

def numbers(tensor: Tensor) -> tuple[tuple[int, ...], bytes]:
  return tuple(tensor.shape), bytes(tensor.flatten().tolist())

@pytest.mark.parametrize("fashion", [False, True])
def test_mnist(made: Path, fashion: bool) -> None:
  assert [numbers(t) for t in datasets.mnist(fashion=fashion)] == [
    ((3, 1, 4, 5), some(60, 0)), ((3,), b"\1\0\2"), ((2, 1, 4, 5), some(40, 9)), ((2,), b"\4\3")]

def test_cifar(made: Path) -> None:
  x, y, x_test, y_test = (numbers(t) for t in datasets.cifar())
  # in the order of the files' names, not of the archive
  assert y == ((10,), bytes([2, 9, 3, 9, 1, 9, 4, 9, 5, 9])) and y_test == ((2,), bytes([6, 9]))
  assert x[0] == (10, 3, 32, 32) and x[1][:3072] == some(3072, 2) and x_test == ((2, 3, 32, 32),
                                                                                 some(3072, 6) + some(3072, 106))

@pytest.mark.parametrize("made", ["address"], indirect=True)
def test_a_changed_file_is_refused(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
  address, files = datasets.SOURCES["mnist"]
  monkeypatch.setitem(datasets.SOURCES, "mnist", (address, dict.fromkeys(files, "0" * 64)))
  with Context(DATASETS=""), pytest.raises(DatasetError, match="has the sha256 .*Without a network, get http.*and set "
                                           "DATASETS"):
    datasets.mnist()

def test_offline_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setitem(datasets.SOURCES, "mnist", ("http://127.0.0.1:9/", datasets.SOURCES["mnist"][1]))
  with Context(DATASETS="", CACHEDIR=str(tmp_path)), pytest.raises(DatasetError) as caught:
    datasets.read("mnist", "t10k-labels-idx1-ubyte.gz")
  advice = ("Without a network, get http://127.0.0.1:9/t10k-labels-idx1-ubyte.gz elsewhere, put it into a folder "
            "mnist/ and set DATASETS")
  assert advice in str(caught.value)
  with Context(DATASETS=str(tmp_path)):
    with pytest.raises(DatasetError, match="cifar10: .*cifar10 has no cifar-10-binary.tar.gz; put it there"):
      datasets.cifar()

@pytest.mark.parametrize("parse,data,message", [
  (datasets.parse_idx, b"\0\0\x0d\x01\0\0\0\0", "is not an idx file of bytes"),
  (datasets.parse_idx, b"", "is not an idx file of bytes"),
  (datasets.parse_idx, idx((2, 3), b"12345"), r"has 5 bytes for the shape \(2, 3\)"),
  (datasets.parse_idx, idx((2, 3), b"")[:9], "is damaged"),
  (datasets.parse_cifar, b"no tar" * 200, "is no whole tar file"),
  (partial(datasets.gunzip, name="x"), gzip.compress(b"text", mtime=0)[:-9], "x is damaged .*; remove it"),
  (partial(datasets._split_cifar, name="x"), b"1" * 3074, "not a multiple of 3073")])
def test_damaged_files_are_refused(parse: Callable[[bytes], object], data: bytes, message: str) -> None:
  with pytest.raises(FileFormatError, match=message): parse(data)

def test_incomplete_archive_is_refused(tmp_path: Path) -> None:
  (tmp_path / "cifar10").mkdir()
  (tmp_path / "cifar10" / "cifar-10-binary.tar.gz").write_bytes(cifar_tar(CIFAR_NAMES[:-2]))
  with Context(DATASETS=str(tmp_path)):
    with pytest.raises(FileFormatError, match="lacks data_batch_5.bin, test_batch.bin; get CIFAR-10's"):
      datasets.cifar()

def test_images_and_labels_must_match(tmp_path: Path) -> None:
  (tmp_path / "mnist").mkdir()
  for name, data in MNIST.items(): (tmp_path / "mnist" / name).write_bytes(data)
  (tmp_path / "mnist" / "train-labels-idx1-ubyte.gz").write_bytes(idx((2,), b"\1\0"))
  with Context(DATASETS=str(tmp_path)), pytest.raises(FileFormatError, match="they do not go together"):
    datasets.mnist()

# **** digits ****

DIGITS = Path(__file__).resolve().parents[2] / "examples/data/digits.gz"

def test_digits_file_is_the_one_its_readme_describes() -> None:
  readme = DIGITS.with_name("README.md").read_text(encoding="utf-8")
  assert (hashlib.sha256(DIGITS.read_bytes()).hexdigest() in readme
          and hashlib.sha256(gzip.decompress(DIGITS.read_bytes())).hexdigest() in readme)

def test_parse_digits_holds_a_fifth_of_each_digit_out() -> None:
  pixels, labels, test_pixels, test_labels = datasets.parse_digits(gzip.decompress(DIGITS.read_bytes()))
  assert (len(labels), len(test_labels)) == (1438, 359) and (len(pixels), len(test_pixels)) == (1438 * 64, 359 * 64)
  assert max(pixels) == 16 and Counter(labels + test_labels) == dict(enumerate((178, 182, 177, 183, 181, 182, 181, 179,
                                                                                174, 180)))
  assert all(abs(Counter(test_labels)[i] - Counter(labels)[i] / 4) <= 1 for i in range(10))
  first_zero = bytes.fromhex("0000050d09010000" "00000d0f0a0f0500" "00030f02000b0800" "00040c0000080800"
                             "0005080000090800" "00040b00010c0700"
                             "00020e050a0c0000" "0000060d0a000000")
  assert pixels[:64] == first_zero and labels[0] == 0

def test_digits() -> None:
  tensors = datasets.digits()
  parts = datasets.parse_digits(gzip.decompress(DIGITS.read_bytes()))
  assert [tuple(t.shape) for t in tensors] == [(1438, 1, 8, 8), (1438,), (359, 1, 8, 8), (359,)]
  assert [numbers(t)[1] for t in tensors] == list(parts)

def test_missing_digits_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setattr(datasets, "_DIGITS_FILES", ("/nowhere/digits.gz",))
  with pytest.raises(DatasetError, match="none of /nowhere/digits.gz is there; tinyhw is incomplete"): datasets.digits()
