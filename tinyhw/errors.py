"""The errors that tinyhw raises. Each message names the fault, its place, and the fix.

Every mistake of a user raises a class of this file. A broken invariant of tinyhw itself is an `assert`, and leaves the
engine as an InternalError. A class also derives from the fitting Python error, so `except ValueError` works. Errors
about a call (`names_line`) name the line outside of tinyhw that made the call.
"""
from __future__ import annotations

from tinyhw.trace import Location, caller

class TinyError(Exception):
  """The base of all of them.

  `message` is the text alone; `location` is (file, line, function) of the user's call, or None.
  """
  names_line = False

  def __init__(self, message: str = "", location: Location | None = None) -> None:
    super().__init__(message)
    self.message = message
    self.location: Location | None = location or (caller() if self.names_line else None)

  def __str__(self) -> str:
    if self.location is None: return self.message
    return f"{self.message} (at {self.location[0]}:{self.location[1]})"

class UserError(TinyError):
  """A call that cannot be carried out as written. Its message ends with the line of the call."""
  names_line = True

class ArgumentError(UserError, ValueError):
  """An argument has a value that the call does not take; no more special class fits."""

class ShapeError(UserError, ValueError):
  """Shapes that do not go together, or a reshape, expand, pad or reduce that the shape does not allow."""

class DTypeError(UserError, TypeError):
  """An unknown dtype, dtypes that do not go together, or an operation that the dtype does not have."""

class DeviceError(UserError, RuntimeError):
  """An unknown device, one that does not open here, or operands on different devices."""

class IndexRangeError(UserError, IndexError):
  """An index or an axis outside of its range."""

class IndexingError(UserError, IndexError):
  """An index of a kind that Tensor[...] does not take, or too many of them."""

class GradientError(UserError, RuntimeError):
  """backward() or gradient() where there is nothing to differentiate."""

class JitError(UserError, RuntimeError):
  """A function that TinyJit cannot capture, or a call that does not match the capture."""

class FunctionError(UserError, RuntimeError):
  """A function that @function cannot make a unit of: it reads values, uses Tensors that it was not given, or returns
  something else."""

class SymbolicError(UserError, ValueError):
  """A Variable without a value, bound twice to different values, or bound outside of its range."""

class UnknownValueError(UserError, TypeError):
  """Python asks for a value (a truth, a length, a number) that a Tensor or a symbolic expression only has once it is
  computed or bound."""

class InterchangeError(UserError, BufferError):
  """Memory that cannot be shared with another library as asked for (DLPack, buffers)."""

class ConfigError(UserError, ValueError):
  """An environment variable or a `Context` argument that is not known, or has a value that it does not take."""

class OutOfMemory(TinyError, MemoryError):
  """The device has not enough memory. Says how much was asked for and how much is held."""

class AllocationError(TinyError, RuntimeError):
  """The register allocator could not place the values of a kernel.

  An error in tinyhw; the message says which kernel.
  """

class DriverError(TinyError, RuntimeError):
  """The operating system or the hardware refused. The message has the file or call, the reason, and the remedy."""

class EncodeError(TinyError, ValueError):
  """An instruction that the machine does not have: operand, immediate or combination out of range."""

class DecodeError(TinyError, ValueError):
  """Bytes that are no instruction of the table."""

class ParseError(TinyError, ValueError):
  """Text (a UOp graph, a program, assembly) that does not parse. Says the line."""

class PatternError(TinyError, ValueError):
  """A rule or pattern that cannot be compiled, or rules that rewrite for ever."""

class CompileError(TinyError, RuntimeError):
  """A kernel that cannot be compiled for the device, or an external compiler that failed."""

class InternalError(TinyError, RuntimeError):
  """A fault of tinyhw while it scheduled, compiled or ran.

  Names the kernel and the line; please report it. The original is its `__cause__`.
  """
  names_line = True

class VerifyError(TinyError, AssertionError):
  """A verifier (SPEC, CHECK) found a graph, program or allocation that breaks the rules. An error in tinyhw."""

class MissingFileError(UserError, FileNotFoundError):
  """A file or folder that a call names is not there."""

class FetchError(TinyError, OSError):
  """A download that failed: no network, no such file, or a wrong checksum."""

class DatasetError(TinyError, RuntimeError):
  """A data set that is neither here nor to be had. Says where to put its files."""

class FileFormatError(TinyError, ValueError):
  """A file (safetensors, idx, tar, ...) that is damaged or of another format."""

class BudgetError(FileFormatError):
  """A file that would make far more memory than it has bytes. Says how much it may make, and how to allow more."""
