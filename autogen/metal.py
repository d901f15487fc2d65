"""Metal's and Foundation's messages as the headers declare them, and numbers of the Metal API, by their names there.

Of each class and protocol that a driver for compute may need: the messages, the result and the arguments of each in
Objective-C's own letters, and whether the caller owns the result. `+` marks messages to the class itself.

Source: the headers of the macOS 14 SDK, and for newer messages metal-cpp of 2025 and Apple's reference; by hand.
drivers/metal has a table of its own, which tests compare with this one.
"""
from __future__ import annotations

# MTLGPUFamily
FAMILIES = {"apple7": 1007, "apple8": 1008, "apple9": 1009, "apple10": 1010, "mac2": 2002, "common3": 3003,
            "metal3": 5001, "metal4": 5002}
# MTLCommandBufferStatus
NOT_ENQUEUED, ENQUEUED, COMMITTED, SCHEDULED, COMPLETED, ERROR = range(6)
# MTLDispatchType, MTLBarrierScope, MTLMathMode, MTLMathFloatingPointFunctions
SERIAL, CONCURRENT = 0, 1
SCOPE_BUFFERS, SCOPE_TEXTURES = 1, 2
MATH_SAFE, MATH_RELAXED, MATH_FAST = 0, 1, 2
FUNCTIONS_FAST, FUNCTIONS_PRECISE = 0, 1
# MTLResourceOptions
STORAGE_SHARED, STORAGE_MANAGED, STORAGE_PRIVATE, STORAGE_MEMORYLESS = 0, 16, 32, 48
STORAGE_MASK, HAZARDS_UNTRACKED, HAZARDS_TRACKED = 0xF0, 0x100, 0x200
# MTLLanguageVersion: macOS 12, 13, 14, 15, 26
VERSIONS = {0x20004: "2.4", 0x30000: "3.0", 0x30001: "3.1", 0x30002: "3.2", 0x40000: "4.0"}
# MTLCommandBufferErrorDomain, MTLLibraryErrorDomain
TIMEOUT, PAGE_FAULT, OUT_OF_MEMORY, INVALID_RESOURCE = 2, 3, 8, 9
COMPILE_FAILURE = 3

# class or protocol -> messages: selector, result, arguments; a result that the caller owns is marked with "owned"
MESSAGES: dict[str, str] = {
  "MTLArchitecture": """
    name @""",
  "MTLBinaryArchive": """
    addComputePipelineFunctionsWithDescriptor:error: B @ ^@
    serializeToURL:error: B @ ^@""",
  "MTLBinaryArchiveDescriptor": """
    +alloc @ owned
    +new @ owned
    init @ owned
    setUrl: v @""",
  "MTLBlitCommandEncoder": """
    copyFromBuffer:sourceOffset:toBuffer:destinationOffset:size: v @ Q @ Q Q
    copyIndirectCommandBuffer:sourceRange:destination:destinationIndex: v @ {_NSRange=QQ} @ Q
    fillBuffer:range:value: v @ {_NSRange=QQ} C
    optimizeIndirectCommandBuffer:withRange: v @ {_NSRange=QQ}
    resetCommandsInBuffer:withRange: v @ {_NSRange=QQ}
    resolveCounters:inRange:destinationBuffer:destinationOffset: v @ {_NSRange=QQ} @ Q
    sampleCountersInBuffer:atSampleIndex:withBarrier: v @ Q B
    synchronizeResource: v @
    updateFence: v @
    waitForFence: v @""",
  "MTLBuffer": """
    addDebugMarker:range: v @ {_NSRange=QQ}
    contents ^v
    didModifyRange: v {_NSRange=QQ}
    gpuAddress Q
    length Q
    remoteStorageBuffer @
    removeAllDebugMarkers v""",
  "MTLCaptureDescriptor": """
    +alloc @ owned
    +new @ owned
    init @ owned""",
  "MTLCaptureManager": """
    +sharedCaptureManager @
    startCaptureWithDescriptor:error: B @ ^@
    stopCapture v
    supportsDestination: B q""",
  "MTLCommandBuffer": """
    GPUEndTime d
    GPUStartTime d
    addCompletedHandler: v @?
    addScheduledHandler: v @?
    blitCommandEncoder @
    blitCommandEncoderWithDescriptor: @ @
    commandQueue @
    commit v
    computeCommandEncoder @
    computeCommandEncoderWithDescriptor: @ @
    computeCommandEncoderWithDispatchType: @ Q
    device @
    encodeSignalEvent:value: v @ Q
    encodeWaitForEvent:value: v @ Q
    enqueue v
    error @
    errorOptions Q
    kernelEndTime d
    kernelStartTime d
    label @
    logs @
    popDebugGroup v
    pushDebugGroup: v @
    renderCommandEncoderWithDescriptor: @ @
    retainedReferences B
    setLabel: v @
    status Q
    useResidencySet: v @
    waitUntilCompleted v
    waitUntilScheduled v""",
  "MTLCommandBufferDescriptor": """
    +alloc @ owned
    +new @ owned
    errorOptions Q
    init @ owned
    retainedReferences B
    setErrorOptions: v Q
    setRetainedReferences: v B""",
  "MTLCommandEncoder": """
    device @
    endEncoding v
    insertDebugSignpost: v @
    label @
    popDebugGroup v
    pushDebugGroup: v @
    setLabel: v @""",
  "MTLCommandQueue": """
    addResidencySet: v @
    addResidencySets:count: v ^@ Q
    commandBuffer @
    commandBufferWithDescriptor: @ @
    commandBufferWithUnretainedReferences @
    device @
    insertDebugCaptureBoundary v
    label @
    removeResidencySet: v @
    setLabel: v @""",
  "MTLCompileOptions": """
    +alloc @ owned
    +new @ owned
    allowReferencingUndefinedSymbols B
    compileSymbolVisibility q
    fastMathEnabled B
    init @ owned
    installName @
    languageVersion Q
    libraryType q
    mathFloatingPointFunctions q
    mathMode q
    maxTotalThreadsPerThreadgroup Q
    optimizationLevel q
    preserveInvariance B
    setAllowReferencingUndefinedSymbols: v B
    setCompileSymbolVisibility: v q
    setEnableLogging: v B
    setFastMathEnabled: v B
    setInstallName: v @
    setLanguageVersion: v Q
    setLibraryType: v q
    setMathFloatingPointFunctions: v q
    setMathMode: v q
    setMaxTotalThreadsPerThreadgroup: v Q
    setOptimizationLevel: v q
    setPreprocessorMacros: v @
    setPreserveInvariance: v B
    setRequiredThreadsPerThreadgroup: v {MTLSize=QQQ}""",
  "MTLComputeCommandEncoder": """
    dispatchThreadgroups:threadsPerThreadgroup: v {MTLSize=QQQ} {MTLSize=QQQ}
    dispatchThreadgroupsWithIndirectBuffer:indirectBufferOffset:threadsPerThreadgroup: v @ Q {MTLSize=QQQ}
    dispatchThreads:threadsPerThreadgroup: v {MTLSize=QQQ} {MTLSize=QQQ}
    dispatchType Q
    executeCommandsInBuffer:indirectBuffer:indirectBufferOffset: v @ @ Q
    executeCommandsInBuffer:withRange: v @ {_NSRange=QQ}
    memoryBarrierWithResources:count: v ^@ Q
    memoryBarrierWithScope: v Q
    sampleCountersInBuffer:atSampleIndex:withBarrier: v @ Q B
    setBuffer:offset:atIndex: v @ Q Q
    setBufferOffset:atIndex: v Q Q
    setBuffers:offsets:withRange: v ^@ ^Q {_NSRange=QQ}
    setBytes:length:atIndex: v ^v Q Q
    setComputePipelineState: v @
    setThreadgroupMemoryLength:atIndex: v Q Q
    updateFence: v @
    useHeap: v @
    useHeaps:count: v ^@ Q
    useResource:usage: v @ Q
    useResources:count:usage: v ^@ Q Q
    waitForFence: v @""",
  "MTLComputePassDescriptor": """
    +computePassDescriptor @
    dispatchType Q
    sampleBufferAttachments @
    setDispatchType: v Q""",
  "MTLComputePipelineDescriptor": """
    +alloc @ owned
    +new @ owned
    buffers @
    computeFunction @
    init @ owned
    label @
    linkedFunctions @
    maxCallStackDepth Q
    maxTotalThreadsPerThreadgroup Q
    reset v
    setBinaryArchives: v @
    setComputeFunction: v @
    setLabel: v @
    setLinkedFunctions: v @
    setMaxCallStackDepth: v Q
    setMaxTotalThreadsPerThreadgroup: v Q
    setSupportAddingBinaryFunctions: v B
    setSupportIndirectCommandBuffers: v B
    setThreadGroupSizeIsMultipleOfThreadExecutionWidth: v B
    stageInputDescriptor @
    supportAddingBinaryFunctions B
    supportIndirectCommandBuffers B
    threadGroupSizeIsMultipleOfThreadExecutionWidth B""",
  "MTLComputePipelineState": """
    device @
    functionHandleWithFunction: @ @
    gpuResourceID {MTLResourceID=Q}
    label @
    maxTotalThreadsPerThreadgroup Q
    staticThreadgroupMemoryLength Q
    supportIndirectCommandBuffers B
    threadExecutionWidth Q""",
  "MTLCounterSampleBuffer": """
    device @
    label @
    resolveCounterRange: @ {_NSRange=QQ}
    sampleCount Q""",
  "MTLCounterSampleBufferDescriptor": """
    +alloc @ owned
    +new @ owned
    init @ owned""",
  "MTLDevice": """
    architecture @
    argumentBuffersSupport Q
    currentAllocatedSize Q
    hasUnifiedMemory B
    heapBufferSizeAndAlignWithLength:options: {MTLSizeAndAlign=QQ} Q Q
    isHeadless B
    isLowPower B
    isRemovable B
    location Q
    locationNumber Q
    maxBufferLength Q
    maxThreadgroupMemoryLength Q
    maxThreadsPerThreadgroup {MTLSize=QQQ}
    maxTransferRate Q
    maximumConcurrentCompilationTaskCount Q
    name @
    newArgumentEncoderWithBufferBinding: @ @ owned
    newBinaryArchiveWithDescriptor:error: @ @ ^@ owned
    newBufferWithBytes:length:options: @ ^v Q Q owned
    newBufferWithBytesNoCopy:length:options:deallocator: @ ^v Q Q @? owned
    newBufferWithLength:options: @ Q Q owned
    newCommandQueue @ owned
    newCommandQueueWithMaxCommandBufferCount: @ Q owned
    newComputePipelineStateWithDescriptor:options:reflection:error: @ @ Q ^@ ^@ owned
    newComputePipelineStateWithFunction:error: @ @ ^@ owned
    newComputePipelineStateWithFunction:options:reflection:error: @ @ Q ^@ ^@ owned
    newCounterSampleBufferWithDescriptor:error: @ @ ^@ owned
    newDefaultLibrary @ owned
    newDefaultLibraryWithBundle:error: @ @ ^@ owned
    newDynamicLibrary:error: @ @ ^@ owned
    newDynamicLibraryWithURL:error: @ @ ^@ owned
    newEvent @ owned
    newFence @ owned
    newHeapWithDescriptor: @ @ owned
    newIndirectCommandBufferWithDescriptor:maxCommandCount:options: @ @ Q Q owned
    newLibraryWithData:error: @ @ ^@ owned
    newLibraryWithFile:error: @ @ ^@ owned
    newLibraryWithSource:options:error: @ @ @ ^@ owned
    newLibraryWithStitchedDescriptor:error: @ @ ^@ owned
    newLibraryWithURL:error: @ @ ^@ owned
    newResidencySetWithDescriptor:error: @ @ ^@ owned
    newSharedEvent @ owned
    newSharedEventWithHandle: @ @ owned
    peerCount I
    peerGroupID Q
    peerIndex I
    recommendedMaxWorkingSetSize Q
    registryID Q
    sampleTimestamps:gpuTimestamp: v ^Q ^Q
    setShouldMaximizeConcurrentCompilation: v B
    shouldMaximizeConcurrentCompilation B
    supportsCounterSampling: B Q
    supportsDynamicLibraries B
    supportsFamily: B q""",
  "MTLFence": """
    device @
    label @
    setLabel: v @""",
  "MTLFunction": """
    device @
    functionType Q
    label @
    name @
    newArgumentEncoderWithBufferIndex: @ Q owned
    newArgumentEncoderWithBufferIndex:reflection: @ Q ^@ owned
    options Q
    setLabel: v @""",
  "MTLFunctionConstantValues": """
    +alloc @ owned
    +new @ owned
    init @ owned
    reset v
    setConstantValue:type:atIndex: v ^v Q Q
    setConstantValue:type:withName: v ^v Q @
    setConstantValues:type:withRange: v ^v Q {_NSRange=QQ}""",
  "MTLHeap": """
    currentAllocatedSize Q
    hazardTrackingMode Q
    maxAvailableSizeWithAlignment: Q Q
    newBufferWithLength:options: @ Q Q owned
    newBufferWithLength:options:offset: @ Q Q Q owned
    size Q
    usedSize Q""",
  "MTLHeapDescriptor": """
    +alloc @ owned
    +new @ owned
    init @ owned
    setHazardTrackingMode: v q
    setResourceOptions: v Q
    setSize: v Q
    setStorageMode: v Q
    setType: v q""",
  "MTLIndirectCommandBuffer": """
    gpuResourceID {MTLResourceID=Q}
    indirectComputeCommandAtIndex: @ Q
    resetWithRange: v {_NSRange=QQ}
    size Q""",
  "MTLIndirectCommandBufferDescriptor": """
    +alloc @ owned
    +new @ owned
    commandTypes Q
    inheritBuffers B
    inheritPipelineState B
    init @ owned
    maxFragmentBufferBindCount Q
    maxKernelBufferBindCount Q
    maxKernelThreadgroupMemoryBindCount Q
    maxMeshBufferBindCount Q
    maxObjectBufferBindCount Q
    maxObjectThreadgroupMemoryBindCount Q
    setCommandTypes: v Q
    setInheritBuffers: v B
    setInheritPipelineState: v B
    setMaxFragmentBufferBindCount: v Q
    setMaxKernelBufferBindCount: v Q
    setMaxKernelThreadgroupMemoryBindCount: v Q
    setMaxMeshBufferBindCount: v Q
    setMaxObjectBufferBindCount: v Q
    setMaxObjectThreadgroupMemoryBindCount: v Q
    setSupportDynamicAttributeStride: v B
    setSupportRayTracing: v B
    supportDynamicAttributeStride B
    supportRayTracing B""",
  "MTLIndirectComputeCommand": """
    clearBarrier v
    concurrentDispatchThreadgroups:threadsPerThreadgroup: v {MTLSize=QQQ} {MTLSize=QQQ}
    concurrentDispatchThreads:threadsPerThreadgroup: v {MTLSize=QQQ} {MTLSize=QQQ}
    reset v
    setBarrier v
    setComputePipelineState: v @
    setKernelBuffer:offset:atIndex: v @ Q Q
    setThreadgroupMemoryLength:atIndex: v Q Q""",
  "MTLLibrary": """
    device @
    installName @
    label @
    newFunctionWithDescriptor:error: @ @ ^@ owned
    newFunctionWithName: @ @ owned
    newFunctionWithName:constantValues:error: @ @ @ ^@ owned
    setLabel: v @
    type q""",
  "MTLResidencySet": """
    addAllocation: v @
    addAllocations:count: v ^@ Q
    allocatedSize Q
    allocationCount Q
    commit v
    containsAllocation: B @
    endResidency v
    removeAllAllocations v
    removeAllocation: v @
    removeAllocations:count: v ^@ Q
    requestResidency v""",
  "MTLResidencySetDescriptor": """
    +alloc @ owned
    +new @ owned
    init @ owned
    setInitialCapacity: v Q
    setLabel: v @""",
  "MTLResource": """
    allocatedSize Q
    cpuCacheMode Q
    device @
    hazardTrackingMode Q
    heap @
    heapOffset Q
    isAliasable B
    label @
    makeAliasable v
    resourceOptions Q
    setLabel: v @
    setOwnerWithIdentity: i I
    setPurgeableState: Q Q
    storageMode Q""",
  "MTLSharedEvent": """
    notifyListener:atValue:block: v @ Q @?
    setSignaledValue: v Q
    signaledValue Q
    waitUntilSignaledValue:timeoutMS: B Q Q""",
  "NSArray": """
    count Q
    objectAtIndex: @ Q""",
  "NSError": """
    code q
    domain @
    helpAnchor @
    localizedDescription @
    localizedFailureReason @
    localizedRecoverySuggestion @
    recoveryAttempter @""",
  "NSObject": """
    +alloc @ owned
    +new @ owned
    autorelease @
    description @
    hash Q
    init @ owned
    isKindOfClass: B #
    release v
    respondsToSelector: B :
    retain @
    retainCount Q""",
  "NSString": """
    +stringWithUTF8String: @ *
    UTF8String *
    init @
    initWithBytes:length:encoding: @ ^v Q Q owned
    length Q""",
}
