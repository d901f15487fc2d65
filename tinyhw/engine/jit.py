"""tinygrad's name of `tinyhw.capture.jit`.

`from tinyhw.engine.jit import TinyJit` works, and captures that were pickled under that name load.
"""
from tinyhw.capture.jit import TinyJit as TinyJit
