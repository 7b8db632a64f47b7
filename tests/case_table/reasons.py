# SPDX-License-Identifier: Apache-2.0
"""Ops without a row, each with the place where it is tested."""

from __future__ import annotations

_FUNCTIONS = "of function bodies only: src/graph/function_call_test.cc"
_TRANSFERS = "made by partitioning only: tests/session_test.cc runs graphs over several devices"
_LOOPS = "parts of loops: tests/function_test.cc, tests/session_stress_test.cc"
_CALLS = "has functions: tests/function_test.cc"
_CLIENTS = "calls the client: python/tests/test_py_func.py"
_FILES = "of files: tests/bad_inputs/file_cases.cc, python/tests/programs/images_and_strings.py"
_HASHES = "src/kernels/cpu/engine/string_hash_test.cc, with TensorFlow's buckets of texts of all lengths"
_VOLUMES = "python/tests/test_windows.py: values against loops, gradients against differences"
_OLDER_VOLUMES = "python/tests/test_windows.py: against the ops that took their place"
_OLD_FILES = "checkpoints of format V1: src/io/v1_writer_test.cc, python/tests/test_training.py"
_CELLS = "src/kernels/cpu/rnn/rnn_kernels_test.cc has its own oracle and differences"
_SOUNDS = "python/tests/test_audio.py: files byte by byte, spectra beside NumPy's"
_QUEUES = "wait for other steps: src/kernels/cpu/dataflow/queue_test.cc, tests/queue_test.cc, python/tests/test_queues.py"
_EXCHANGES = "wait for other steps: tests/exchange_test.cc, python/tests/test_staging.py, test_accumulators.py"
_TABLES = "tables outlive a step: src/kernels/cpu/state/lookup_test.cc, python/tests/test_lookup.py"
_MUTEXES = "wait for other steps: python/tests/test_session_tensors.py"
_SESSION_TENSORS = "outlive a step: python/tests/test_session_tensors.py"
_EVENT_FILES = "of event files: python/tests/test_summary_writers.py"
_BATCHES = "wait for other steps: python/tests/test_batches_of_steps.py"
_STATEFUL_RANDOM = "of variables: python/tests/test_stateful_random.py, with TensorFlow's numbers"
_READERS = "of files, by way of queues: src/kernels/cpu/data/reader_test.cc, python/tests/test_readers.py"
_KEPT_SPARSE = "keep their inputs from step to step: python/tests/test_input_pipelines.py"
_PIPELINES = "data sets and iterators: python/tests/test_data.py"
_PIPELINE_OPS = "data sets: python/tests/test_data_ops.py"
_GBDT = "sums, quantiles and trees outlive a step: python/tests/test_contrib_boosted_trees.py"
_FORESTS = "trees of forests outlive a step: src/kernels/cpu/trees/forest_stats_test.cc, python/tests/test_tensor_forest.py"
_TREES = "trees and quantile streams outlive a step: python/tests/test_boosted_trees.py"
_SERIAL = "strings whose bytes mean a tensor: python/tests/test_sparse_math.py takes them back"
_WITH_FUNCTIONS = """If StatelessIf While StatelessWhile Case StatelessCase For PartitionedCall StatefulPartitionedCall
    RemoteCall SymbolicGradient"""
_WITH_ITERATORS = """AnonymousIterator AnonymousIteratorV2 ExperimentalRandomDataset RandomDataset BatchDataset BatchDatasetV2 CacheDataset
    ConcatenateDataset DatasetToSingleElement DeleteIterator FilterDataset FixedLengthRecordDataset
    FixedLengthRecordDatasetV2 FlatMapDataset InterleaveDataset Iterator IteratorFromStringHandle
    IteratorFromStringHandleV2 IteratorGetNext IteratorGetNextSync IteratorToStringHandle IteratorV2
    MakeIterator MapDataset ModelDataset OneShotIterator OptimizeDataset PaddedBatchDataset
    PaddedBatchDatasetV2 ParallelInterleaveDatasetV2 ParallelMapDataset PrefetchDataset RangeDataset
    ReduceDataset RepeatDataset ShardDataset ShuffleAndRepeatDataset ShuffleDataset SkipDataset
    TFRecordDataset TakeDataset TensorDataset TensorSliceDataset TextLineDataset UnwrapDatasetVariant
    DirectedInterleaveDataset GroupByWindowDataset IgnoreErrorsDataset ScanDataset TakeWhileDataset UniqueDataset
    WindowDataset WrapDatasetVariant ZipDataset AnonymousMemoryCache AnonymousMultiDeviceIterator
    AnonymousRandomSeedGenerator CacheDatasetV2 DatasetToGraph DeleteMemoryCache DeleteMultiDeviceIterator
    DeleteRandomSeedGenerator DeserializeIterator FilterByLastComponentDataset GeneratorDataset
    IteratorGetNextAsOptional MapDefun RestoreIterator SaveIterator MultiDeviceIterator MultiDeviceIteratorFromStringHandle
    MultiDeviceIteratorGetNextFromShard MultiDeviceIteratorInit MultiDeviceIteratorToStringHandle SerializeIterator
    ShuffleDatasetV2 SparseTensorSliceDataset AssertCardinalityDataset FinalizeDataset OptionsDataset ParallelBatchDataset
    ParallelFilterDataset ParallelInterleaveDatasetV3 ParallelInterleaveDatasetV4 ParallelMapDatasetV2 RewriteDataset"""
# Data sets that have another name with "Experimental" before it, and those whose other name stands above.
_OF_TWO_NAMES = """AssertNext AutoShard Rebatch BytesProducedStats CSV SetStatsAggregator ChooseFastest DenseToSparseBatch GroupByReducer LMDB LatencyStats MapAndBatch
    MatchingFiles MaxIntraOpParallelism NonSerializable ParallelInterleave PrivateThreadPool Sleep SlidingWindow
    Sql ThreadPool Unbatch"""
_OF_A_SECOND_NAME = """DirectedInterleave GroupByWindow IgnoreErrors Map Scan TakeWhile Unique"""
_RECURRENT = """BlockLSTM BlockLSTMV2 BlockLSTMGrad BlockLSTMGradV2 LSTMBlockCell LSTMBlockCellGrad GRUBlockCell
    GRUBlockCellGrad"""


_WRITERS = """SummaryWriter CreateSummaryFileWriter CreateSummaryDbWriter FlushSummaryWriter CloseSummaryWriter
    WriteSummary WriteRawProtoSummary ImportEvent WriteScalarSummary WriteHistogramSummary WriteImageSummary
    WriteAudioSummary WriteGraphSummary"""
_RANDOM_STATES = """StatefulStandardNormal StatefulStandardNormalV2 StatefulUniform StatefulTruncatedNormal
    StatefulUniformInt StatefulUniformFullInt RngSkip RngReadAndSkip NonDeterministicInts"""
_QUANTIZED = """QuantizeV2 Dequantize QuantizeDownAndShrinkRange Requantize RequantizationRange RequantizePerChannel
    RequantizationRangePerChannel QuantizedAdd QuantizedMul QuantizedMatMul QuantizedBiasAdd QuantizedRelu QuantizedRelu6
    QuantizedReluX QuantizedBatchNormWithGlobalNormalization QuantizedInstanceNorm QuantizedConcat QuantizedReshape
    QuantizedConv2D QuantizedAvgPool QuantizedMaxPool"""


_TREE_OPS = """BoostedTreesEnsembleResourceHandleOp IsBoostedTreesEnsembleInitialized BoostedTreesCreateEnsemble
    BoostedTreesDeserializeEnsemble BoostedTreesSerializeEnsemble BoostedTreesGetEnsembleStates BoostedTreesUpdateEnsemble
    BoostedTreesUpdateEnsembleV2 BoostedTreesCenterBias BoostedTreesPredict BoostedTreesTrainingPredict
    BoostedTreesExampleDebugOutputs BoostedTreesQuantileStreamResourceHandleOp
    IsBoostedTreesQuantileStreamResourceInitialized BoostedTreesCreateQuantileStreamResource
    BoostedTreesQuantileStreamResourceAddSummaries BoostedTreesFlushQuantileSummaries
    BoostedTreesQuantileStreamResourceFlush BoostedTreesQuantileStreamResourceGetBucketBoundaries
    BoostedTreesQuantileStreamResourceDeserialize"""
_GBDT_OPS = """
    QuantileStreamResourceHandleOp QuantileAccumulatorIsInitialized CreateQuantileAccumulator
    QuantileAccumulatorAddSummaries QuantileAccumulatorGetBuckets QuantileAccumulatorFlush
    QuantileAccumulatorFlushSummary QuantileAccumulatorSerialize QuantileAccumulatorDeserialize
    MakeQuantileSummaries QuantileBuckets Quantiles BucketizeWithInputBoundaries BuildDenseInequalitySplits
    BuildSparseInequalitySplits BuildCategoricalEqualitySplits DecisionTreeEnsembleResourceHandleOp
    TreeEnsembleIsInitializedOp CreateTreeEnsembleVariable TreeEnsembleStampToken TreeEnsembleSerialize
    TreeEnsembleDeserialize TreeEnsembleUsedHandlers GradientTreesPrediction GradientTreesPredictionVerbose
    GradientTreesPartitionExamples CenterTreeEnsembleBias GrowTreeEnsemble TreeEnsembleStats
    StatsAccumulatorScalarResourceHandleOp StatsAccumulatorScalarIsInitialized StatsAccumulatorScalarAdd
    StatsAccumulatorScalarFlush StatsAccumulatorScalarSerialize StatsAccumulatorScalarDeserialize
    StatsAccumulatorScalarMakeSummary CreateStatsAccumulatorScalar StatsAccumulatorTensorResourceHandleOp
    StatsAccumulatorTensorIsInitialized StatsAccumulatorTensorAdd StatsAccumulatorTensorFlush
    StatsAccumulatorTensorSerialize StatsAccumulatorTensorDeserialize StatsAccumulatorTensorMakeSummary
    CreateStatsAccumulatorTensor"""
_FOREST_OPS = """DecisionTreeResourceHandleOp TreeIsInitializedOp CreateTreeVariable TreeDeserialize TreeSerialize TreeSize FeatureUsageCounts
    FertileStatsResourceHandleOp FertileStatsIsInitializedOp CreateFertileStatsVariable FertileStatsDeserialize FertileStatsSerialize
    TreePredictionsV4 TraverseTreeV4 UpdateModelV4 ProcessInputV4 GrowTreeV4 ReinterpretStringToFloat"""


def _both(names: str) -> list[str]:
    """The ops of references, and those of handles."""
    return [name + version for name in names.split() for version in ("", "V2")]


_QUEUE_OPS = _both("""FIFOQueue PaddingFIFOQueue RandomShuffleQueue PriorityQueue QueueEnqueue QueueEnqueueMany
    QueueDequeue QueueDequeueMany QueueDequeueUpTo QueueClose QueueIsClosed QueueSize""") + ["FakeQueue"]
_READER_OPS = _both("""WholeFileReader TextLineReader FixedLengthRecordReader TFRecordReader IdentityReader ReaderRead
    ReaderReadUpTo ReaderNumRecordsProduced ReaderNumWorkUnitsCompleted ReaderSerializeState ReaderRestoreState
    ReaderReset""") + ["LMDBReader"]
_TABLE_OPS = _both("""HashTable MutableHashTable MutableHashTableOfTensors MutableDenseHashTable InitializeTable
    InitializeTableFromTextFile LookupTableFind LookupTableInsert LookupTableSize LookupTableExport
    LookupTableImport""") + ["LookupTableRemoveV2"]
_BARRIERS = "Barrier BarrierInsertMany BarrierTakeMany BarrierClose BarrierReadySize BarrierIncompleteSize".split()
_STAGES = "Stage Unstage StagePeek StageSize StageClear".split() + [
    order + op for order in ("Map", "OrderedMap") for op in "Stage Peek Unstage UnstageNoKey Size IncompleteSize Clear".split()
]
_ACCUMULATORS = [
    kind + op
    for kind in ("", "Resource")
    for op in """ConditionalAccumulator AccumulatorApplyGradient AccumulatorNumAccumulated AccumulatorSetGlobalStep
    AccumulatorTakeGradient""".split()
] + "SparseConditionalAccumulator SparseAccumulatorApplyGradient SparseAccumulatorTakeGradient".split()

REASONS: dict[str, str] = {
    "_Arg": _FUNCTIONS,
    "_Retval": _FUNCTIONS,
    "_Send": _TRANSFERS,
    "_Recv": _TRANSFERS,
    "_HostSend": _TRANSFERS,
    "_HostRecv": _TRANSFERS,
    "_Loop": _LOOPS,
    "DeviceIndex": "it says where it runs: python/tests/test_ops_of_2.py",
    "_DeviceIndex": "made of remote calls only: python/tests/test_functional_calls.py",
    **dict.fromkeys("_HostCast _ListToArray _ArrayToList _CopyToHost _CopyFromHost".split(), "made by runtimes only; graphs of clients do not have it"),
    **dict.fromkeys("_FusedConv2D _FusedDepthwiseConv2dNative _FusedMatMul".split(), "made by the compiler: python/tests/test_fusion.py"),
    **dict.fromkeys("PyFunc PyFuncStateless EagerPyFunc".split(), _CLIENTS),
    **dict.fromkeys("StringToHashBucket StringToHashBucketFast StringToHashBucketStrong SdcaFprint".split(), _HASHES),
    **dict.fromkeys("Conv3DBackpropInput Conv3DBackpropFilter".split(), _OLDER_VOLUMES),
    "MaxPoolGradGradWithArgmax": _OLDER_VOLUMES,
    **dict.fromkeys("MaxPool3D MaxPool3DGrad MaxPool3DGradGrad AvgPool3D AvgPool3DGrad".split(), _VOLUMES),
    **dict.fromkeys("Save SaveSlices Restore RestoreSlice ShardedFilespec".split(), _OLD_FILES),
    **dict.fromkeys("ReadFile WriteFile MatchingFiles".split(), _FILES),
    **dict.fromkeys("GenerateVocabRemapping LoadAndRemapMatrix".split(), "of files: python/tests/test_answers_of_tensorflow.py"),
    **dict.fromkeys(
        "CollectiveReduce CollectiveGather CollectiveBcastSend CollectiveBcastRecv".split(), "of groups: python/tests/test_answers_of_tensorflow.py"
    ),
    **dict.fromkeys("CollectiveReduceV2 CollectiveGatherV2 CollectiveBcastSendV2 CollectiveBcastRecvV2".split(), "of groups: python/tests/test_collectives.py"),
    "FakeParam": "never runs: what a branch lacks, tests/function_test.cc",
    "TensorArrayGrad": "of the oldest arrays; src/kernels/cpu/dataflow/step_objects_test.cc",
    **dict.fromkeys("SerializeSparse SerializeManySparse DeserializeSparse DeserializeManySparse".split(), _SERIAL),
    "SparseFeatureCross": "python/tests/test_layers.py",
    "SparseFeatureCrossV2": "python/tests/test_layers.py",
    "SparseCross": "python/tests/test_sparse_math.py, with TensorFlow's fingerprints",
    **dict.fromkeys("Enter Exit NextIteration LoopCond RefEnter RefExit RefNextIteration".split(), _LOOPS),
    **dict.fromkeys(_WITH_FUNCTIONS.split(), _CALLS),
    **dict.fromkeys(_WITH_ITERATORS.split(), _PIPELINES),
    **{before + name + "Dataset": _PIPELINE_OPS for name in _OF_TWO_NAMES.split() for before in ("", "Experimental")},
    **{"Experimental" + name + "Dataset": _PIPELINE_OPS for name in _OF_A_SECOND_NAME.split()},
    **dict.fromkeys("RaggedTensorToVariant RaggedTensorFromVariant".split(), "variants: python/tests/test_data_components.py"),
    **{
        before + name: _PIPELINE_OPS
        for name in "ThreadPoolHandle StatsAggregatorHandle StatsAggregatorSummary DatasetToTFRecord DatasetCardinality IteratorGetDevice".split()
        for before in ("", "Experimental")
    },
    **dict.fromkeys("SamplingDataset SnapshotDataset ChooseFastestBranchDataset DatasetFromGraph".split(), _PIPELINE_OPS),
    **dict.fromkeys(_RECURRENT.split(), _CELLS),
    **dict.fromkeys("DecodeWav EncodeWav AudioSpectrogram Mfcc".split(), _SOUNDS),
    **dict.fromkeys(_QUEUE_OPS, _QUEUES),
    **dict.fromkeys(_BARRIERS + _STAGES + _ACCUMULATORS, _EXCHANGES),
    **dict.fromkeys(_TABLE_OPS, _TABLES),
    **dict.fromkeys(_TREE_OPS.split(), _TREES),
    **dict.fromkeys(_FOREST_OPS.split(), _FORESTS),
    **dict.fromkeys(_GBDT_OPS.split(), _GBDT),
    **dict.fromkeys(_READER_OPS, _READERS),
    **dict.fromkeys(_QUANTIZED.split(), "of quantized numbers, which the table does not have: python/tests/test_quantized.py"),
    **dict.fromkeys(_WRITERS.split(), _EVENT_FILES),
    **dict.fromkeys("Batch BatchFunction Unbatch UnbatchGrad".split(), _BATCHES),
    **dict.fromkeys(_RANDOM_STATES.split(), _STATEFUL_RANDOM),
    **dict.fromkeys("MutexV2 MutexLock ConsumeMutexLock".split(), _MUTEXES),
    **dict.fromkeys("GetSessionHandle GetSessionHandleV2 GetSessionTensor DeleteSessionTensor".split(), _SESSION_TENSORS),
    "StringFormat": "python/tests/test_strings.py: texts as TensorFlow prints them",
    "Timestamp": "the time of the day: python/tests/test_strings.py",
    **dict.fromkeys("KmeansPlusPlusInitialization KMC2ChainInitialization NearestNeighbors".split(), "python/tests/test_clustering.py, beside NumPy"),
    **dict.fromkeys("StatelessRandomBinomial StatefulRandomBinomial BatchMatMulV3".split(), "of two types: python/tests/test_ops_of_later_releases.py"),
    "HostConst": "Const under another name",
    **dict.fromkeys("ZeroInitializer ZeroVarInitializer".split(), "of variables: python/tests/test_small_contrib_modules.py"),
    "ImmutableConst": "of a file: python/tests/test_session_tensors.py",
    "DebugGradientRefIdentity": "RefIdentity under another name",
    "ResourceStridedSliceAssign": "of a variable: python/tests/test_session_tensors.py",
    "RecordInput": "of files: python/tests/test_readers.py",
    **dict.fromkeys("AddSparseToTensorsMap AddManySparseToTensorsMap TakeManySparseFromTensorsMap".split(), _KEPT_SPARSE),
}
