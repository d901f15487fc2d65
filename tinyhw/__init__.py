"""tinyhw: a deep learning framework in pure Python that talks to hardware directly."""
import os as _os
# In a clone `drivers/` and `autogen/` lie beside this folder; installed, they are already inside it.
if not _os.path.isdir(_os.path.join(__path__[0], "drivers")): __path__.append(_os.path.dirname(__path__[0]))
