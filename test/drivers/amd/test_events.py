"""Events: one page for the process, and the meaning of faults."""
import errno

import pytest
from amd.box import AMDBox

from tinyhw.drivers.amd import kfd, topology
from tinyhw.drivers.amd.events import Events, HardwareFault, MemoryFault
from tinyhw.drivers.linux import files

def connected(box: AMDBox) -> tuple[kfd.Kfd, list[topology.Gpu]]:
  made, gpus = kfd.Kfd(box), topology.gpus(box)
  for gpu in gpus: made.acquire(gpu)
  return made, gpus

def test_the_first_event_brings_the_page_and_other_gpus_see_it() -> None:
  box = AMDBox(count=2)
  made, (one, two) = connected(box)
  first, second = Events(made, one), Events(made, two)
  assert (box.held()["events"] == 6 and len(box.memory) == 1 and made.event_page is not None
          and made.event_page.seen_by == [1000, 1001])
  assert first.mailbox == made.event_page.address + 8 * first.number and second.number != first.number
  first.close()
  second.close()
  first.close()
  assert box.held()["events"] == 0
  made.close()
  assert len(box.memory) == 1 and box.held()["mappings"] == 0, "KFD frees the page itself, when the process ends"

@pytest.mark.parametrize("nth", (1, 2, 3))
def test_events_that_fail_leave_none(nth: int) -> None:
  box = AMDBox()
  made, (gpu,) = connected(box)
  box.fail("CreateEvent", nth, errno.ENOSPC)
  with pytest.raises(files.Refused, match="CreateEvent"): Events(made, gpu)
  assert box.held()["events"] == 0
  Events(made, gpu).close()
  made.close()

def test_a_wait_tells_of_faults_of_its_gpu() -> None:
  box = AMDBox()
  made, (gpu,) = connected(box)
  events = Events(made, gpu)
  assert events.wait(7) is None and box.calls[-1][1].timeout == 7 and box.calls[-1][1].num_events == 3
  box.fault = {"va": 0x7F0000001000, "gpu_id": 1000, "NotPresent": 1, "ErrorType": 0}
  assert events.wait(1) == MemoryFault(0x7F0000001000, True, False, False, False, 0)
  box.fault = {"va": 0x1000, "gpu_id": 999, "NotPresent": 1}
  assert events.wait(1) is None, "another GPU's"
  box.fault = {"reset_type": 0, "reset_cause": 1, "memory_lost": 1, "gpu_id": 1000}
  assert events.wait(1) == HardwareFault(whole=True, ecc=True, memory_lost=True)
  events.close()
  made.close()
