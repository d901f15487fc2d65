"""What drivers of GPUs share: everything but how a kernel driver is spoken to, and what is in the packets.

| file | what it owns |
|---|---|
| queue.py | waits with a deadline, a timeline, rings, memory for what a submission needs |
| memory.py | what a kernel driver gives of memory, buffers in it, and how bytes get there |
| launch.py | kernels in the GPU's memory, arguments, recordings |
| order.py | which launches wait for which |
| device.py | one GPU: the order of what its queues do, what it holds, how it is lost |
| reports.py | what is told of a GPU that is lost |
| doctor.py | what keeps a GPU from being driven, as far as it is the same for all vendors |
| selftest/ | the steps that self-tests of all GPUs have; those that run kernels; memory and queues for them |

A vendor's driver (drivers/amd) subclasses `device.GpuDevice`, `launch.Kernel` and `launch.GpuRecording`.
"""
