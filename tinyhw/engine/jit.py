"""tinygrad's name of `tinyhw.capture.jit`, so that `from tinyhw.engine.jit import TinyJit` works, and captures pickled
under that name load."""
from tinyhw.capture.jit import TinyJit as TinyJit
