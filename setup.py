"""The parts of a package that are computed: its folders, and the extras for its tests and its comparison with others.

The rest stands in pyproject.toml. test/run.py reads the extras here, by any Python; one of 3.10 reads no TOML.
"""
from pathlib import Path

from setuptools import setup

# In the repository drivers/ and autogen/ lie beside tinyhw/, and the digits lie with the examples; installed, all of
# them are inside the package.
ROOTS = {"tinyhw": "tinyhw", "tinyhw.drivers": "drivers", "tinyhw.autogen": "autogen"}
DIGITS = {"tinyhw.nn.data": "examples/data"}

def packages() -> "list[str]":
  """Every folder below the roots that has an __init__.py, by the name that it is imported as."""
  found = []
  for name, root in ROOTS.items():
    folders = sorted(path.parent for path in Path(root).rglob("__init__.py"))
    found += [".".join((name, *folder.relative_to(root).parts)) for folder in folders]
  return found

setup(
  packages=[*packages(), *DIGITS],
  package_dir={**ROOTS, **DIGITS},
  package_data={"tinyhw": ["py.typed"], "tinyhw.viz": ["page.html"], "tinyhw.nn.data": ["digits.gz", "README.md"]},
  extras_require={
    "test": ["pytest>=9", "pytest-xdist>=3.5", "hypothesis>=6.100", "numpy>=2", "ruff>=0.6", "mypy>=1.11"],
    # other projects' own test data: test/oracles
    "oracles": ["torch", "scipy", "expecttest", "mpmath", "onnx", "ml_dtypes"],
    "bench": ["torch", "numpy>=2", "tinygrad"],
    # clang's assembler for AMD (411 MB), NVIDIA's disassembler (690 MB)
    "oracle": ["ziglang>=0.17", "triton>=3.7; sys_platform == 'linux'"],
    # the library of DEV=WEBGPU, of the version that the driver knows
    "webgpu": ["wgpu>=0.32,<0.33; python_version < '3.15'"],
  },
)
