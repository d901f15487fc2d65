"""The code that drivers of GPUs share: all except the protocol of a kernel driver and the content of packets.

| file | content |
|---|---|
| polling.py | the pause between two polls of a device whose own wait has no deadline |
| signals.py | signals of the program wait during an operation that must not end halfway |
| queue.py | waits with a deadline, a timeline, rings, memory for a submission |
| memory.py | memory from a kernel driver, buffers in it, and transfers of bytes |
| launch.py | kernels in the GPU's memory, arguments, recordings |
| parameters.py | the check of launches, for drivers whose library takes arguments by calls |
| order.py | dependences between launches |
| device.py | one GPU: the order of its queues' work, its memory, its loss |
| forks.py | libraries that do not work in the child of a fork |
| reports.py | the report about a GPU that is lost |
| doctor.py | reasons why a GPU cannot be driven that are the same for all vendors |
| selftest/ | steps of the self-tests of all GPUs, the steps with kernels, memory and queues for them |

A vendor's driver (drivers/amd) subclasses `device.GpuDevice`, `launch.GpuProgram` and `launch.GpuRecording`.
"""
