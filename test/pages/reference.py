"""The reference, docs/reference/: what is public, by module, from signatures and docstrings. Written by
`python3 test/pages/test_docs.py`.

PAGES says what stands on which page. Entries of a class stand in the order of its source; a Tensor's, which are many,
under the family of methods that they belong to. An example in a docstring is a doctest: test_reference.py runs them.
"""
from __future__ import annotations
import importlib
import inspect
import textwrap
from collections.abc import Iterator
from typing import Any, NamedTuple

FOLDER = "docs/reference"

class Page(NamedTuple):
  """A page: its title, the module, and the names to show in their order; None: all public names that the module
  defines itself."""
  file: str
  title: str
  module: str
  names: tuple[str, ...] | None = None

PAGES = (
  Page("tensor.md", "Tensor", "tinyhw.tensor", ("Tensor",)),
  Page("nn.md", "Layers", "tinyhw.nn"),
  Page("optim.md", "Optimizers", "tinyhw.nn.optim"),
  Page("optim-rules.md", "Optimizers by a rule", "tinyhw.nn.optim.ruled"),
  Page("schedules.md", "Schedules of learning rates", "tinyhw.nn.optim.schedules"),
  Page("cycles.md", "Cycles and plateaus", "tinyhw.nn.optim.cycles"),
  Page("state.md", "Models in files", "tinyhw.nn.state", (
    "get_state_dict", "get_parameters", "load_state_dict", "safe_load", "safe_save", "safe_load_metadata", "torch_load",
    "npy_load", "npy_save",
    "npz_load", "npz_save", "tar_extract", "zip_extract", "TensorIO")),
  Page("datasets.md", "Data sets", "tinyhw.nn.datasets", ("mnist", "cifar")),
  Page("jit.md", "TinyJit", "tinyhw.capture.jit", ("TinyJit",)),
  Page("function.md", "Functions as units", "tinyhw.function", ("function",)),
  Page("onnx.md", "ONNX", "tinyhw.nn.onnx", ("OnnxRunner", "OnnxPBParser")),
  Page("gguf.md", "GGUF", "tinyhw.llm.gguf", ("gguf_load", "ggml_data_to_tensor")),
  Page("language-models.md", "Language models", "tinyhw.llm.cli", (
    "load", "text_after", "SimpleTokenizer", "FallbackTemplate", "Transformer", "LLMServer")),
  Page("dtype.md", "Element types", "tinyhw.dtype",
       ("DType", "DTypes", "to_dtype", "least_upper_dtype", "least_upper_float", "can_lossless_cast",
        "float_to_fp16", "float_to_bf16", "float_to_fp8", "fp8_to_float")),
  Page("device.md", "Devices and buffers", "tinyhw.device",
       ("Device", "Buffer", "Compiled", "Allocator", "LRUAllocator", "enumerate_devices_str")),
  Page("uop.md", "The graph", "tinyhw.uop.ops", ("UOp", "Variable")),
  Page("config.md", "Variables", "tinyhw.config", ("Context", "ContextVar", "getenv")),
  Page("helpers.md", "Helpers", "tinyhw.helpers"),
  Page("errors.md", "Errors", "tinyhw.errors"),
)

def pages() -> dict[str, str]:
  """The text of each page by its path below the repository, the index first."""
  made = {f"{FOLDER}/{page.file}": page_text(page) for page in PAGES}
  index = "".join(f"- [{page.title}]({page.file}): `{page.module}`\n" for page in PAGES)
  head = ("# Reference\n\nWritten by `python3 test/pages/test_docs.py` from docstrings; do not edit. Each example runs "
          "as a test.\n\n")
  return {f"{FOLDER}/README.md": head + index, **made}

def page_text(page: Page) -> str:
  module = importlib.import_module(page.module)
  names = page.names or tuple(name for name, value in vars(module).items() if is_own(name, value, page.module))
  parts = [f"# {page.title}\n\n`{page.module}`\n"]
  for name in names: parts += entries(name, getattr(module, name))
  return "\n".join(parts)

def is_own(name: str, value: Any, module: str) -> bool:
  return (not name.startswith("_") and (inspect.isclass(value) or inspect.isfunction(value))
          and value.__module__ == module)

def entries(name: str, value: Any) -> Iterator[str]:
  """A function, or a class with its public members."""
  # Device is the one object of its class
  if not inspect.isclass(value) and not inspect.isroutine(value): value = type(value)
  yield entry(2, name, value)
  if not inspect.isclass(value): return
  for family in reversed(value.__mro__):
    members = [(key, member) for key, member in vars(family).items() if not key.startswith("_") and describes(member)]
    if not members or not family.__module__.startswith("tinyhw"): continue
    if family is not value and name == "Tensor":
      yield f"## {(inspect.getdoc(family) or family.__name__).split('. ')[0].rstrip('.')}\n"
    for key, member in members: yield entry(3, key, member)

def describes(member: Any) -> bool:
  """Is a member of a class something to be told: a function or property with a docstring?"""
  return bool(inspect.getdoc(plain(member))) and (isinstance(member, (staticmethod, classmethod, property))
                                                  or inspect.isfunction(member))

def plain(member: Any) -> Any:
  if isinstance(member, property): return member.fget
  return member.__func__ if isinstance(member, (staticmethod, classmethod)) else member

def entry(level: int, name: str, value: Any) -> str:
  """A heading with the signature, the docstring's words, and its example."""
  words, example = split(inspect.getdoc(plain(value)) or "")
  text = f"{'#' * level} `{name}{'' if isinstance(value, property) else signature(value)}`\n"
  if words: text += f"\n{words}\n"
  if example: text += f"\n```pycon\n{example}\n```\n"
  return text

def signature(value: Any) -> str:
  """Parameters with their defaults, without types."""
  try: parameters = list(inspect.signature(plain(value)).parameters.values())
  except (ValueError, TypeError): return ""
  if inspect.isclass(value) and [p.kind for p in parameters] == [inspect.Parameter.VAR_POSITIONAL,
                                                                 inspect.Parameter.VAR_KEYWORD]:
    return ""
  bare = [p.replace(annotation=inspect.Parameter.empty) for p in parameters if p.name not in ("self", "cls")]
  return str(inspect.Signature(bare)).replace("dtypes.", "")

def split(doc: str) -> tuple[str, str]:
  """The words and the examples of a docstring."""
  blocks = textwrap.dedent(doc).split("\n\n")
  first = next((k for k, block in enumerate(blocks) if block.lstrip().startswith(">>>")), len(blocks))
  return "\n\n".join(blocks[:first]).strip(), "\n\n".join(blocks[first:]).strip()
