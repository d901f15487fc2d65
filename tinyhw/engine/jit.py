"""tinygrad's name of `tinyhw.capture.jit`, for `from tinyhw.engine.jit import TinyJit`."""
from tinyhw.capture.jit import TinyJit as TinyJit
