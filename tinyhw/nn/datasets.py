"""Data sets of images: digits (comes with tinyhw), and MNIST, Fashion-MNIST and CIFAR-10 (downloaded once, or read from
a folder).

Each loader returns (X_train, Y_train, X_test, Y_test). X is uint8 of shape (N, channels, height, width), Y is uint8 of
shape (N,).

Without a network: put the files into `<folder>/mnist/`, `<folder>/fashion-mnist/` or `<folder>/cifar10/`, and set
DATASETS=<folder>. Use the names that `SOURCES` lists; unpacked files are fine too. DATASETS may also be the address
(http, https, file) of a mirror of such folders. Downloaded files must have the listed checksum. Files of your own only
need the right format.
"""
from __future__ import annotations
import os
import zlib

from tinyhw.config import DATASETS
from tinyhw.dtype import dtypes
from tinyhw.errors import DatasetError, FetchError, FileFormatError
from tinyhw.files.budget import Budget
from tinyhw.files.regular import open_input, packaged
from tinyhw.helpers import fetch, prod
from tinyhw.tensor import Tensor

Images = tuple[Tensor, Tensor, Tensor, Tensor]

_MNIST_FILES = ("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz", "t10k-images-idx3-ubyte.gz",
                "t10k-labels-idx1-ubyte.gz")
# name: (the address of its files, {file: sha256})
SOURCES: dict[str, tuple[str, dict[str, str]]] = {
  "mnist": ("https://storage.googleapis.com/cvdf-datasets/mnist/", dict(zip(_MNIST_FILES, (
    "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
    "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
    "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
    "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6")))),
  "fashion-mnist": ("https://github.com/zalandoresearch/fashion-mnist/raw/master/data/fashion/",
                    dict(zip(_MNIST_FILES, (
    "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
    "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
    "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
    "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5")))),
  "cifar10": ("https://www.cs.toronto.edu/~kriz/", {
    "cifar-10-binary.tar.gz": "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd"}),
}
_CIFAR_RECORD = 1 + 3 * 32 * 32  # the label, then the red, the green and the blue pixels
_DIGIT_RECORD = 8 * 8 + 1        # the pixels, then the label
_COPIES = 4                      # the data exists this many times between unpacking and Tensors
_HERE = os.path.dirname(os.path.abspath(__file__))
_DIGITS_FILES = (os.path.join(_HERE, "data", "digits.gz"),  # installed
                 os.path.join(os.path.dirname(os.path.dirname(_HERE)), "examples", "data", "digits.gz"))  # in a clone

# **** files ****

def gunzip(data: bytes, name: str) -> bytes:
  """Return the contents of a gzip file, or other data unchanged.

  Raises FileFormatError if it is damaged, BudgetError if it unpacks to too much.
  """
  if data[:2] != b"\x1f\x8b": return data
  budget, unpacker = Budget(name, len(data)), zlib.decompressobj(16 + zlib.MAX_WBITS)
  most = budget.most // _COPIES
  try: found = unpacker.decompress(data, most + 1)
  except zlib.error as error:
    raise FileFormatError(f"{name} is damaged ({error}); remove it, so that it is fetched again") from error
  budget.take(_COPIES * len(found))
  if not unpacker.eof:
    raise FileFormatError(f"{name} is damaged (it ends early); remove it, so that it is fetched again")
  return found

def read(dataset: str, file: str) -> bytes:
  """Return a file of a data set, unpacked: from the folder or mirror DATASETS, else downloaded. Raises DatasetError."""
  base, checksums = SOURCES[dataset]
  place = DATASETS.value
  if place and "://" not in place:
    folder = os.path.join(os.path.expanduser(place), dataset)
    for name in (file, file.removesuffix(".gz")):
      path = os.path.join(folder, name)
      if not os.path.isfile(path): continue
      with open_input(path, f"a file of {dataset}") as handle: return gunzip(handle.read(), path)
    raise DatasetError(f"{dataset}: {folder} has no {file}; put it there (it is at {base}{file}), or unset DATASETS "
                       f"to have it downloaded")
  if place: base = f"{place.rstrip('/')}/{dataset}/"
  try: path = str(fetch(base + file, name=file, subdir=dataset, sha256=checksums[file]))
  except FetchError as error:
    raise DatasetError(f"{dataset}: {error.message}. Without a network, get {SOURCES[dataset][0]}{file} elsewhere, "
                       f"put it into a folder {dataset}/ "
                       f"and set DATASETS to the folder around that") from error
  with open_input(path, f"a file of {dataset}") as handle: return gunzip(handle.read(), path)

def parse_idx(data: bytes, name: str = "the file") -> tuple[bytes, tuple[int, ...]]:
  """Return the bytes and the shape of an idx file of unsigned bytes (http://yann.lecun.com/exdb/mnist/). Its header is
  two zeros, type 8, rank, big-endian sizes."""
  if len(data) < 4 or data[:3] != b"\0\0\x08":
    raise FileFormatError(f"{name} is not an idx file of bytes: it begins with {data[:4]!r}")
  start = 4 + 4 * data[3]
  shape = tuple(int.from_bytes(data[i:i + 4], "big") for i in range(4, start, 4))
  if len(data) != start + prod(shape):
    raise FileFormatError(f"{name} has {len(data) - start} bytes for the shape {shape}; it is damaged")
  return data[start:], shape

def parse_cifar(archive: bytes, name: str = "the archive") -> dict[str, tuple[bytes, bytes]]:
  """Return {file: (pixels, labels)} of the .bin files in the tar of CIFAR-10's binary version
  (https://www.cs.toronto.edu/~kriz/cifar.html)."""
  from tinyhw.nn import tar_archive, tensor_io   # here: `import tinyhw` would pay for one loader
  source = tensor_io.InputFile(Tensor(archive, dtype=dtypes.uint8, device="PYTHON"), "tar")
  source.name = name
  return {os.path.basename(member.name): _split_cifar(archive[member.begin:member.begin + member.size],
                                                      f"{member.name} in {name}")
          for member in tar_archive.members(source) if member.name.endswith(".bin")}

def _split_cifar(data: bytes, name: str) -> tuple[bytes, bytes]:
  if not data or len(data) % _CIFAR_RECORD:
    raise FileFormatError(f"{name} has {len(data)} bytes, not a multiple of {_CIFAR_RECORD}; it is damaged")
  view = memoryview(data)
  return b"".join(view[i + 1:i + _CIFAR_RECORD] for i in range(0, len(data), _CIFAR_RECORD)), data[::_CIFAR_RECORD]

def parse_digits(data: bytes) -> tuple[bytes, bytes, bytes, bytes]:
  """Return (pixels, labels) for training, then for testing. Of the images of each digit, in the file's order, numbers
  2, 7, 12, ... are held out.

  So a fifth is held out, 359 of 1,797, with the digits as frequent as in the rest. The same people wrote both parts.
  """
  records = [data[i:i + _DIGIT_RECORD] for i in range(0, len(data), _DIGIT_RECORD)]
  seen = [0] * 10
  parts: tuple[list[bytes], list[bytes]] = ([], [])
  for record in records:
    label = record[-1]
    parts[seen[label] % 5 == 2].append(record)
    seen[label] += 1
  train, test = parts
  return (b"".join(r[:-1] for r in train), bytes(r[-1] for r in train), b"".join(r[:-1] for r in test),
          bytes(r[-1] for r in test))

# **** loaders ****

def _tensor(data: bytes, shape: tuple[int, ...], device: str | None) -> Tensor:
  return Tensor(data, dtype=dtypes.uint8, device=device).reshape(shape)

def _packaged_digits() -> tuple[str, bytes]:
  """Return the path of the digits, and the file. Raises DatasetError."""
  for path in _DIGITS_FILES:
    try: return path, packaged(path)
    except OSError: pass
  raise DatasetError(f"digits: none of {', '.join(_DIGITS_FILES)} is there; tinyhw is incomplete: install or clone it "
                     f"again")

def digits(device: str | None = None) -> Images:
  """Return 1,438 + 359 handwritten digits, (N, 1, 8, 8), values 0 to 16.

  They are part of tinyhw. Source and licence: examples/data/README.md.
  """
  path, data = _packaged_digits()
  pixels, labels, test_pixels, test_labels = parse_digits(gunzip(data, path))
  return (_tensor(pixels, (len(labels), 1, 8, 8), device), _tensor(labels, (len(labels),), device),
          _tensor(test_pixels, (len(test_labels), 1, 8, 8), device), _tensor(test_labels, (len(test_labels),), device))

def _idx(dataset: str, images: str, labels: str, device: str | None) -> tuple[Tensor, Tensor]:
  pixels, shape = parse_idx(read(dataset, images), images)
  classes, count = parse_idx(read(dataset, labels), labels)
  if len(shape) != 3 or shape[:1] != count:
    raise FileFormatError(f"{images} has shape {shape} and {labels} has shape {count}; they do not go together: get "
                          f"both from one place")
  return _tensor(pixels, (shape[0], 1, *shape[1:]), device), _tensor(classes, count, device)

def mnist(device: str | None = None, fashion: bool = False) -> Images:
  """Return 60,000 + 10,000 handwritten digits (fashion: pieces of clothing), (N, 1, 28, 28), values 0 to 255.

  Raises DatasetError.
  """
  dataset = "fashion-mnist" if fashion else "mnist"
  return (*_idx(dataset, *_MNIST_FILES[:2], device), *_idx(dataset, *_MNIST_FILES[2:], device))

def cifar(device: str | None = None) -> Images:
  """Return CIFAR-10: 50,000 + 10,000 color photographs in 10 classes, (N, 3, 32, 32), values 0 to 255.

  Raises DatasetError.
  """
  file = next(iter(SOURCES["cifar10"][1]))
  parts = parse_cifar(read("cifar10", file), file)
  wanted = [f"data_batch_{i}.bin" for i in range(1, 6)], ["test_batch.bin"]
  missing = [name for names in wanted for name in names if name not in parts]
  if missing:
    raise FileFormatError(f"{file} lacks {', '.join(missing)}; get CIFAR-10's binary version from "
                          f"{SOURCES['cifar10'][0]}")
  tensors = []
  for names in wanted:
    pixels, labels = (b"".join(parts[name][i] for name in names) for i in (0, 1))
    tensors += [_tensor(pixels, (len(labels), 3, 32, 32), device), _tensor(labels, (len(labels),), device)]
  return tensors[0], tensors[1], tensors[2], tensors[3]
