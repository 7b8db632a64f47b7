# SPDX-License-Identifier: Apache-2.0
"""The nodes that functions make, and the seeds of random operations, which count those before them: both are facts of TensorFlow 1.15.5."""

import pytest

import millrace as tf
from millrace.ops import gen_ops

# A program; what it makes beside placeholders and initial values: "type name", "= name" for a type that the name ends in (Add stands for AddV2 too).
NODES = {
    "sxent": (
        "x=tf.placeholder(tf.float32,[None,8])\nl=tf.placeholder(tf.float32,[None,8])\ntf.nn.softmax_cross_entropy_with_logits(labels=l,logits=x)",
        "StopGradient softmax_cross_entropy_with_logits_sg/labels_stop_gradient Const softmax_cross_entropy_with_logits_sg/Rank = "
        "softmax_cross_entropy_with_logits_sg/Shape Const softmax_cross_entropy_with_logits_sg/Rank_1 Shape "
        "softmax_cross_entropy_with_logits_sg/Shape_1 Const softmax_cross_entropy_with_logits_sg/Sub/y = softmax_cross_entropy_with_logits_sg/Sub "
        "Pack softmax_cross_entropy_with_logits_sg/Slice/begin Const softmax_cross_entropy_with_logits_sg/Slice/size = "
        "softmax_cross_entropy_with_logits_sg/Slice Const softmax_cross_entropy_with_logits_sg/concat/values_0 Const "
        "softmax_cross_entropy_with_logits_sg/concat/axis ConcatV2 softmax_cross_entropy_with_logits_sg/concat = "
        "softmax_cross_entropy_with_logits_sg/Reshape Const softmax_cross_entropy_with_logits_sg/Rank_2 Shape "
        "softmax_cross_entropy_with_logits_sg/Shape_2 Const softmax_cross_entropy_with_logits_sg/Sub_1/y Sub "
        "softmax_cross_entropy_with_logits_sg/Sub_1 Pack softmax_cross_entropy_with_logits_sg/Slice_1/begin Const "
        "softmax_cross_entropy_with_logits_sg/Slice_1/size Slice softmax_cross_entropy_with_logits_sg/Slice_1 Const "
        "softmax_cross_entropy_with_logits_sg/concat_1/values_0 Const softmax_cross_entropy_with_logits_sg/concat_1/axis ConcatV2 "
        "softmax_cross_entropy_with_logits_sg/concat_1 Reshape softmax_cross_entropy_with_logits_sg/Reshape_1 SoftmaxCrossEntropyWithLogits "
        "softmax_cross_entropy_with_logits_sg Const softmax_cross_entropy_with_logits_sg/Sub_2/y Sub softmax_cross_entropy_with_logits_sg/Sub_2 "
        "Const softmax_cross_entropy_with_logits_sg/Slice_2/begin Pack softmax_cross_entropy_with_logits_sg/Slice_2/size Slice "
        "softmax_cross_entropy_with_logits_sg/Slice_2 Reshape softmax_cross_entropy_with_logits_sg/Reshape_2",
    ),
    "spxent_half": (
        "x=tf.placeholder(tf.float16,[None,8])\nl=tf.placeholder(tf.int32,[None])\ntf.nn.sparse_softmax_cross_entropy_with_logits(labels=l,logits=x)",
        "= SparseSoftmaxCrossEntropyWithLogits/Cast = SparseSoftmaxCrossEntropyWithLogits/Shape = "
        "SparseSoftmaxCrossEntropyWithLogits/SparseSoftmaxCrossEntropyWithLogits Cast SparseSoftmaxCrossEntropyWithLogits/Cast_1",
    ),
    "ones_of_sizes": (
        "x=tf.placeholder(tf.int32,[])\ntf.ones((3,x,x,2))",
        "Const ones/mul/x Mul ones/mul Mul ones/mul_1 Const ones/mul_2/y Mul ones/mul_2 Const ones/Less/y = ones/Less Const ones/packed/0 Const "
        "ones/packed/3 Pack ones/packed = ones/Const Fill ones",
    ),
    "zeros_of_a_size": ("x=tf.placeholder(tf.int64,[])\ntf.zeros([x],tf.int32,name='z')", "Const z/Less/y = z/Less = z/Cast Pack z/packed = z/Const Fill z"),
    "zeros_of_a_number": ("tf.zeros(5)", "Const zeros/shape_as_tensor = zeros/Const Fill zeros"),
    "dropout_keep_dyn": (
        "x=tf.placeholder(tf.float32,[None,8])\ntf.nn.dropout(x,0.5)",
        "Const dropout/rate = dropout/Shape Const dropout/random_uniform/min Const dropout/random_uniform/max = "
        "dropout/random_uniform/RandomUniform Sub dropout/random_uniform/sub Mul dropout/random_uniform/mul Add dropout/random_uniform Const "
        "dropout/sub/x Sub dropout/sub Const dropout/truediv/x RealDiv dropout/truediv = dropout/GreaterEqual Mul dropout/mul = dropout/Cast Mul "
        "dropout/mul_1",
    ),
    "dropout_tensor": (
        "x=tf.placeholder(tf.float32,[None,8])\nk=tf.placeholder(tf.float32,[])\ntf.nn.dropout(x,k)",
        "Const sub/x Sub sub = dropout/Shape Const dropout/random_uniform/min Const dropout/random_uniform/max = "
        "dropout/random_uniform/RandomUniform Sub dropout/random_uniform/sub Mul dropout/random_uniform/mul Add dropout/random_uniform Const "
        "dropout/sub/x Sub dropout/sub Const dropout/truediv/x RealDiv dropout/truediv = dropout/GreaterEqual Mul dropout/mul = dropout/Cast Mul "
        "dropout/mul_1",
    ),
    "dropout_noise_mixed": (
        "x=tf.placeholder(tf.float32,[None,8])\ntf.nn.dropout(x,0.5,noise_shape=[tf.shape(x)[0],1])",
        "= Shape Const strided_slice/stack Const strided_slice/stack_1 Const strided_slice/stack_2 StridedSlice strided_slice Const dropout/rate "
        "Const dropout/random_uniform/shape/1 Pack dropout/random_uniform/shape Const dropout/random_uniform/min Const dropout/random_uniform/max "
        "= dropout/random_uniform/RandomUniform Sub dropout/random_uniform/sub Mul dropout/random_uniform/mul Add dropout/random_uniform Const "
        "dropout/sub/x Sub dropout/sub Const dropout/truediv/x RealDiv dropout/truediv = dropout/GreaterEqual Mul dropout/mul = dropout/Cast Mul "
        "dropout/mul_1",
    ),
    "layers_dropout_noise": (
        "x=tf.placeholder(tf.float32,[None,5,8])\ntf.layers.dropout(x,0.4,noise_shape=[None,1,8],training=True)",
        "= dropout/Shape Const dropout/strided_slice/stack Const dropout/strided_slice/stack_1 Const dropout/strided_slice/stack_2 StridedSlice "
        "dropout/strided_slice Const dropout/packed/1 Const dropout/packed/2 Pack dropout/packed Const dropout/dropout/rate Const "
        "dropout/dropout/random_uniform/min Const dropout/dropout/random_uniform/max = dropout/dropout/random_uniform/RandomUniform Sub "
        "dropout/dropout/random_uniform/sub Mul dropout/dropout/random_uniform/mul Add dropout/dropout/random_uniform Const dropout/dropout/sub/x "
        "Sub dropout/dropout/sub Const dropout/dropout/truediv/x RealDiv dropout/dropout/truediv = dropout/dropout/GreaterEqual Mul "
        "dropout/dropout/mul = dropout/dropout/Cast Mul dropout/dropout/mul_1",
    ),
    "keras_spatial1": (
        "x=tf.placeholder(tf.float32,[None,5,8])\ntf.keras.layers.SpatialDropout1D(0.4)(x,training=True)",
        "= spatial_dropout1d/Shape Const spatial_dropout1d/strided_slice/stack Const spatial_dropout1d/strided_slice/stack_1 Const "
        "spatial_dropout1d/strided_slice/stack_2 StridedSlice spatial_dropout1d/strided_slice Const spatial_dropout1d/strided_slice_1/stack Const "
        "spatial_dropout1d/strided_slice_1/stack_1 Const spatial_dropout1d/strided_slice_1/stack_2 StridedSlice spatial_dropout1d/strided_slice_1 "
        "Const spatial_dropout1d/dropout/rate Const spatial_dropout1d/dropout/random_uniform/shape/1 Pack "
        "spatial_dropout1d/dropout/random_uniform/shape Const spatial_dropout1d/dropout/random_uniform/min Const "
        "spatial_dropout1d/dropout/random_uniform/max = spatial_dropout1d/dropout/random_uniform/RandomUniform Sub "
        "spatial_dropout1d/dropout/random_uniform/sub Mul spatial_dropout1d/dropout/random_uniform/mul Add "
        "spatial_dropout1d/dropout/random_uniform Const spatial_dropout1d/dropout/sub/x Sub spatial_dropout1d/dropout/sub Const "
        "spatial_dropout1d/dropout/truediv/x RealDiv spatial_dropout1d/dropout/truediv = spatial_dropout1d/dropout/GreaterEqual Mul "
        "spatial_dropout1d/dropout/mul = spatial_dropout1d/dropout/Cast Mul spatial_dropout1d/dropout/mul_1",
    ),
    "conv1": (
        "x=tf.placeholder(tf.float32,[None,5,8])\ntf.layers.conv1d(x,4,3)",
        "VariableV2 conv1d/kernel = conv1d/kernel/Assign Identity conv1d/kernel/read VariableV2 conv1d/bias = conv1d/bias/Assign Identity "
        "conv1d/bias/read Const conv1d/dilation_rate Const conv1d/conv1d/ExpandDims/dim = conv1d/conv1d/ExpandDims Const "
        "conv1d/conv1d/ExpandDims_1/dim ExpandDims conv1d/conv1d/ExpandDims_1 Conv2D conv1d/conv1d = conv1d/conv1d/Squeeze = conv1d/BiasAdd",
    ),
    "conv2_dil": (
        "x=tf.placeholder(tf.float32,[None,12,12,3])\ntf.layers.conv2d(x,4,3,dilation_rate=2)",
        "VariableV2 conv2d/kernel = conv2d/kernel/Assign Identity conv2d/kernel/read VariableV2 conv2d/bias = conv2d/bias/Assign Identity "
        "conv2d/bias/read Const conv2d/dilation_rate Const conv2d/required_space_to_batch_paddings/input_shape Const "
        "conv2d/required_space_to_batch_paddings/base_paddings Const conv2d/required_space_to_batch_paddings/paddings Const "
        "conv2d/required_space_to_batch_paddings/crops Const conv2d/SpaceToBatchND/block_shape Const conv2d/SpaceToBatchND/paddings = "
        "conv2d/SpaceToBatchND = conv2d/Conv2D Const conv2d/BatchToSpaceND/block_shape Const conv2d/BatchToSpaceND/crops = conv2d/BatchToSpaceND = "
        "conv2d/BiasAdd",
    ),
    "conv2_dil_same": (
        "x=tf.placeholder(tf.float32,[None,12,12,3])\ntf.layers.conv2d(x,4,3,dilation_rate=2,padding='same')",
        "VariableV2 conv2d/kernel = conv2d/kernel/Assign Identity conv2d/kernel/read VariableV2 conv2d/bias = conv2d/bias/Assign Identity "
        "conv2d/bias/read Const conv2d/dilation_rate Const conv2d/filter_shape Const conv2d/stack Const "
        "conv2d/required_space_to_batch_paddings/input_shape Const conv2d/required_space_to_batch_paddings/paddings Const "
        "conv2d/required_space_to_batch_paddings/crops Const conv2d/SpaceToBatchND/block_shape Const conv2d/SpaceToBatchND/paddings = "
        "conv2d/SpaceToBatchND = conv2d/Conv2D Const conv2d/BatchToSpaceND/block_shape Const conv2d/BatchToSpaceND/crops = conv2d/BatchToSpaceND = "
        "conv2d/BiasAdd",
    ),
    "conv2t": (
        "x=tf.placeholder(tf.float32,[None,12,12,3])\ntf.layers.conv2d_transpose(x,4,3,strides=2)",
        "VariableV2 conv2d_transpose/kernel = conv2d_transpose/kernel/Assign Identity conv2d_transpose/kernel/read VariableV2 "
        "conv2d_transpose/bias = conv2d_transpose/bias/Assign Identity conv2d_transpose/bias/read = conv2d_transpose/Shape Const "
        "conv2d_transpose/strided_slice/stack Const conv2d_transpose/strided_slice/stack_1 Const conv2d_transpose/strided_slice/stack_2 "
        "StridedSlice conv2d_transpose/strided_slice Const conv2d_transpose/strided_slice_1/stack Const conv2d_transpose/strided_slice_1/stack_1 "
        "Const conv2d_transpose/strided_slice_1/stack_2 StridedSlice conv2d_transpose/strided_slice_1 Const conv2d_transpose/strided_slice_2/stack "
        "Const conv2d_transpose/strided_slice_2/stack_1 Const conv2d_transpose/strided_slice_2/stack_2 StridedSlice "
        "conv2d_transpose/strided_slice_2 Const conv2d_transpose/mul/y Mul conv2d_transpose/mul Const conv2d_transpose/add/y Add "
        "conv2d_transpose/add Const conv2d_transpose/mul_1/y Mul conv2d_transpose/mul_1 Const conv2d_transpose/add_1/y Add conv2d_transpose/add_1 "
        "Const conv2d_transpose/stack/3 Pack conv2d_transpose/stack Const conv2d_transpose/strided_slice_3/stack Const "
        "conv2d_transpose/strided_slice_3/stack_1 Const conv2d_transpose/strided_slice_3/stack_2 StridedSlice conv2d_transpose/strided_slice_3 "
        "Conv2DBackpropInput conv2d_transpose/conv2d_transpose = conv2d_transpose/BiasAdd",
    ),
    "sep2": (
        "x=tf.placeholder(tf.float32,[None,12,12,3])\ntf.layers.separable_conv2d(x,4,3)",
        "VariableV2 separable_conv2d/depthwise_kernel = separable_conv2d/depthwise_kernel/Assign Identity separable_conv2d/depthwise_kernel/read "
        "VariableV2 separable_conv2d/pointwise_kernel = separable_conv2d/pointwise_kernel/Assign Identity separable_conv2d/pointwise_kernel/read "
        "VariableV2 separable_conv2d/bias = separable_conv2d/bias/Assign Identity separable_conv2d/bias/read Const "
        "separable_conv2d/separable_conv2d/Shape Const separable_conv2d/separable_conv2d/dilation_rate DepthwiseConv2dNative "
        "separable_conv2d/separable_conv2d/depthwise Conv2D separable_conv2d/separable_conv2d = separable_conv2d/BiasAdd",
    ),
    "flatten_dyn": (
        "x=tf.placeholder(tf.float32,[None,3,2])\ntf.layers.flatten(x)",
        "= flatten/Shape Const flatten/strided_slice/stack Const flatten/strided_slice/stack_1 Const flatten/strided_slice/stack_2 StridedSlice "
        "flatten/strided_slice Const flatten/Reshape/shape/1 Pack flatten/Reshape/shape = flatten/Reshape",
    ),
    "dense_3": (
        "x=tf.placeholder(tf.float32,[None,5,8])\ntf.layers.dense(x,4)",
        "VariableV2 dense/kernel = dense/kernel/Assign Identity dense/kernel/read VariableV2 dense/bias = dense/bias/Assign Identity "
        "dense/bias/read Const dense/Tensordot/axes Const dense/Tensordot/free = dense/Tensordot/Shape Const dense/Tensordot/GatherV2/axis = "
        "dense/Tensordot/GatherV2 Const dense/Tensordot/GatherV2_1/axis GatherV2 dense/Tensordot/GatherV2_1 = dense/Tensordot/Const = "
        "dense/Tensordot/Prod Const dense/Tensordot/Const_1 Prod dense/Tensordot/Prod_1 Const dense/Tensordot/concat/axis ConcatV2 "
        "dense/Tensordot/concat Pack dense/Tensordot/stack Transpose dense/Tensordot/transpose = dense/Tensordot/Reshape Const "
        "dense/Tensordot/transpose_1/perm Transpose dense/Tensordot/transpose_1 Const dense/Tensordot/Reshape_1/shape Reshape "
        "dense/Tensordot/Reshape_1 = dense/Tensordot/MatMul Const dense/Tensordot/Const_2 Const dense/Tensordot/concat_1/axis ConcatV2 "
        "dense/Tensordot/concat_1 Reshape dense/Tensordot = dense/BiasAdd",
    ),
    "dense_3s": (
        "x=tf.placeholder(tf.float32,[2,5,8])\ntf.layers.dense(x,4)",
        "VariableV2 dense/kernel = dense/kernel/Assign Identity dense/kernel/read VariableV2 dense/bias = dense/bias/Assign Identity "
        "dense/bias/read Const dense/Tensordot/transpose/perm Transpose dense/Tensordot/transpose Const dense/Tensordot/Reshape/shape = "
        "dense/Tensordot/Reshape Const dense/Tensordot/transpose_1/perm Transpose dense/Tensordot/transpose_1 Const "
        "dense/Tensordot/Reshape_1/shape Reshape dense/Tensordot/Reshape_1 = dense/Tensordot/MatMul Const dense/Tensordot/shape Reshape "
        "dense/Tensordot = dense/BiasAdd",
    ),
    "bn2_F": (
        "x=tf.placeholder(tf.float32,[None,8])\ntf.layers.batch_normalization(x,training=False)",
        "VariableV2 batch_normalization/gamma = batch_normalization/gamma/Assign Identity batch_normalization/gamma/read VariableV2 "
        "batch_normalization/beta = batch_normalization/beta/Assign Identity batch_normalization/beta/read VariableV2 "
        "batch_normalization/moving_mean = batch_normalization/moving_mean/Assign Identity batch_normalization/moving_mean/read VariableV2 "
        "batch_normalization/moving_variance = batch_normalization/moving_variance/Assign Identity batch_normalization/moving_variance/read Const "
        "batch_normalization/batchnorm/add/y Add batch_normalization/batchnorm/add = batch_normalization/batchnorm/Rsqrt Mul "
        "batch_normalization/batchnorm/mul Mul batch_normalization/batchnorm/mul_1 Mul batch_normalization/batchnorm/mul_2 Sub "
        "batch_normalization/batchnorm/sub Add batch_normalization/batchnorm/add_1",
    ),
    "rand_crop": (
        "tf.random_crop(tf.zeros([8,8,3]),[4,4,3])",
        "Const zeros Const random_crop/size Const random_crop/Shape = random_crop/GreaterEqual = random_crop/Const = random_crop/All = "
        "random_crop/Assert/Const Const random_crop/Assert/Assert/data_0 = random_crop/Assert/Assert Identity random_crop/control_dependency Sub "
        "random_crop/sub Const random_crop/add/y Add random_crop/add Const random_crop/Shape_1 Const random_crop/random_uniform/min Const "
        "random_crop/random_uniform/max RandomUniformInt random_crop/random_uniform FloorMod random_crop/mod Slice random_crop",
    ),
    "zero_dyn": (
        "b=tf.placeholder(tf.int32,[])\nc=tf.nn.rnn_cell.BasicLSTMCell(6)\nc.zero_state(b,tf.float32)",
        "Const BasicLSTMCellZeroState/ExpandDims/dim = BasicLSTMCellZeroState/ExpandDims = BasicLSTMCellZeroState/Const Const "
        "BasicLSTMCellZeroState/concat/axis ConcatV2 BasicLSTMCellZeroState/concat = BasicLSTMCellZeroState/zeros/Const Fill "
        "BasicLSTMCellZeroState/zeros Const BasicLSTMCellZeroState/ExpandDims_1/dim ExpandDims BasicLSTMCellZeroState/ExpandDims_1 Const "
        "BasicLSTMCellZeroState/Const_1 Const BasicLSTMCellZeroState/ExpandDims_2/dim ExpandDims BasicLSTMCellZeroState/ExpandDims_2 Const "
        "BasicLSTMCellZeroState/Const_2 Const BasicLSTMCellZeroState/concat_1/axis ConcatV2 BasicLSTMCellZeroState/concat_1 = "
        "BasicLSTMCellZeroState/zeros_1/Const Fill BasicLSTMCellZeroState/zeros_1 Const BasicLSTMCellZeroState/ExpandDims_3/dim ExpandDims "
        "BasicLSTMCellZeroState/ExpandDims_3 Const BasicLSTMCellZeroState/Const_3",
    ),
    "zero_blstm": (
        "c=tf.nn.rnn_cell.BasicLSTMCell(6)\nc.zero_state(4,tf.float32)",
        "= BasicLSTMCellZeroState/Const Const BasicLSTMCellZeroState/Const_1 Const BasicLSTMCellZeroState/concat/axis ConcatV2 "
        "BasicLSTMCellZeroState/concat = BasicLSTMCellZeroState/zeros/Const Fill BasicLSTMCellZeroState/zeros Const BasicLSTMCellZeroState/Const_2 "
        "Const BasicLSTMCellZeroState/Const_3 Const BasicLSTMCellZeroState/Const_4 Const BasicLSTMCellZeroState/Const_5 Const "
        "BasicLSTMCellZeroState/concat_1/axis ConcatV2 BasicLSTMCellZeroState/concat_1 = BasicLSTMCellZeroState/zeros_1/Const Fill "
        "BasicLSTMCellZeroState/zeros_1 Const BasicLSTMCellZeroState/Const_6 Const BasicLSTMCellZeroState/Const_7",
    ),
}
# A program; how many nodes it makes, and the seeds of its random operations where that of the graph is 7.
SEEDS = {
    "sxent_dim0": (
        "x=tf.placeholder(tf.float32,[None,8])\nl=tf.placeholder(tf.float32,[None,8])\ntf.nn.softmax_cross_entropy_with_logits_v2(labels=l,logits=x,axis=0)",
        55,
        [],
    ),
    "spxent_3": (
        "x=tf.placeholder(tf.float32,[None,5,8])\nl=tf.placeholder(tf.int32,[None,5])\ntf.nn.sparse_softmax_cross_entropy_with_logits(labels=l,logits=x)",
        36,
        [],
    ),
    "embsw_mean": (
        "e=tf.get_variable('e',[10,4])\ni=tf.sparse_placeholder(tf.int32,[4,3])\nw=tf.sparse_placeholder(tf.float32,[4,3])\ntf.nn.embedding_lookup_sparse(e,i,w,combiner='mean')",
        42,
        [3],
    ),
    "kreg": (
        "x=tf.placeholder(tf.float32,[None,8])\ntf.keras.layers.Dense(4,kernel_regularizer=tf.keras.regularizers.l2(0.1))(x)\ntf.keras.layers.Dense(4,kernel_regularizer=tf.keras.regularizers.l1_l2(0.1,.1))(x)",
        41,
        [4, 24],
    ),
    "image_flr": ("x=tf.placeholder(tf.float32,[12,12,3])\ntf.image.random_flip_left_right(x)", 20, [5]),
    "bn4_T": ("x=tf.placeholder(tf.float32,[None,12,12,3])\ntf.layers.batch_normalization(x,training=True)", 31, []),
    "cell_multi": (
        "x=tf.placeholder(tf.float32,[None,8])\nc=tf.nn.rnn_cell.MultiRNNCell([tf.nn.rnn_cell.BasicLSTMCell(6) for _ in range(2)])\nc(x,c.zero_state(4,tf.float32))",
        97,
        [36, 68],
    ),
    "cell_dyn_multi": (
        "x=tf.placeholder(tf.float32,[None,8])\nc=tf.nn.rnn_cell.MultiRNNCell([tf.nn.rnn_cell.BasicLSTMCell(6) for _ in range(2)])\nc(x,c.zero_state(tf.shape(x)[0],tf.float32))",
        110,
        [49, 81],
    ),
    "drnn_blstm": ("x=tf.placeholder(tf.float32,[None,5,8])\nc=tf.nn.rnn_cell.BasicLSTMCell(6)\ntf.nn.dynamic_rnn(c,x,dtype=tf.float32)", 160, [101]),
    "drnn_len": (
        "x=tf.placeholder(tf.float32,[None,5,8])\nn=tf.placeholder(tf.int32,[None])\ntf.nn.dynamic_rnn(tf.nn.rnn_cell.GRUCell(6),x,sequence_length=n,dtype=tf.float32)",
        183,
        [106, 120],
    ),
    "drnn_static": ("x=tf.placeholder(tf.float32,[4,5,8])\nc=tf.nn.rnn_cell.BasicLSTMCell(6)\ntf.nn.dynamic_rnn(c,x,dtype=tf.float32)", 146, [86]),
    "drnn_multi": (
        "x=tf.placeholder(tf.float32,[None,5,8])\nc=tf.nn.rnn_cell.MultiRNNCell([tf.nn.rnn_cell.BasicLSTMCell(6) for _ in range(2)])\ntf.nn.dynamic_rnn(c,x,dtype=tf.float32)",
        226,
        [129, 163],
    ),
    "drnn_drop": (
        "x=tf.placeholder(tf.float32,[None,5,8])\nc=tf.nn.rnn_cell.DropoutWrapper(tf.nn.rnn_cell.BasicLSTMCell(6),output_keep_prob=0.5)\ntf.nn.dynamic_rnn(c,x,dtype=tf.float32)",
        179,
        [104, 139],
    ),
    "drnn_dropvar": (
        "x=tf.placeholder(tf.float32,[None,5,8])\nc=tf.nn.rnn_cell.DropoutWrapper(tf.nn.rnn_cell.GRUCell(6),input_keep_prob=0.5,output_keep_prob=0.5,state_keep_prob=.5,variational_recurrent=True,input_size=8,dtype=tf.float32)\ntf.nn.dynamic_rnn(c,x,dtype=tf.float32)",
        215,
        [10, 20, 30, 127, 141],
    ),
    "srnn_multi": (
        "x=tf.placeholder(tf.float32,[None,5,8])\nc=tf.nn.rnn_cell.MultiRNNCell([tf.nn.rnn_cell.BasicLSTMCell(6) for _ in range(2)])\ntf.nn.static_rnn(c,tf.unstack(x,axis=1),dtype=tf.float32)",
        255,
        [50, 82],
    ),
    "bidir_len": (
        "x=tf.placeholder(tf.float32,[None,5,8])\nn=tf.placeholder(tf.int32,[None])\ntf.nn.bidirectional_dynamic_rnn(tf.nn.rnn_cell.GRUCell(6),tf.nn.rnn_cell.GRUCell(6),x,sequence_length=n,dtype=tf.float32)",
        366,
        [106, 120, 288, 302],
    ),
    "cl_slim": (
        "x=tf.placeholder(tf.float32,[None,12,12,3])\nslim=tf.contrib.slim\nn=slim.conv2d(x,4,[3,3])\nn=slim.max_pool2d(n,[2,2])\nn=slim.flatten(n)\nn=slim.fully_connected(n,10)\nn=slim.dropout(n,0.5)\nslim.fully_connected(n,4)",
        78,
        [4, 31, 49, 64],
    ),
    "layers_dropout_tensor": ("x=tf.placeholder(tf.float32,[None,8])\nt=tf.placeholder(tf.bool,[])\ntf.layers.dropout(x,0.4,training=t)", 26, [11]),
    "keras_dropout": ("x=tf.placeholder(tf.float32,[None,8])\ntf.keras.layers.Dropout(0.4)(x)", 27, [12]),
}


def _made(program):
    tf.keras.backend.clear_session()
    with tf.Graph().as_default() as graph:
        tf.set_random_seed(7)
        exec(program, {"tf": tf})
        return graph.get_operations()


@pytest.mark.parametrize("name", NODES)
def test_nodes(name):
    program, wanted = NODES[name]
    made = [(op.type.replace("AddV2", "Add"), op.name) for op in _made(program) if op.type != "Placeholder" and "Initializer/" not in op.name]
    told = ["%s %s" % ("=" if kind == name.split("/")[-1] else kind, name) for kind, name in made]
    words = wanted.split()
    assert told == [" ".join(pair) for pair in zip(words[::2], words[1::2])]


@pytest.mark.parametrize("name", SEEDS)
def test_seeds(name):
    program, count, seeds = SEEDS[name]
    made = _made(program)
    assert [op.get_attr("seed2") for op in made if "seed2" in op.node_def.attr] == seeds
    assert len(made) == count


def test_the_composite_of_dropout_makes_the_same_nodes():
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [None, 8])
        tf.nn.dropout(x, 0.5, name="a")
        gen_ops.dropout(x, rate=0.5, name="b")
        both = [[(op.type, op.name[2:]) for op in graph.get_operations() if op.name.startswith(part)] for part in ("a/", "b/")]
    assert both[0] == both[1] and len(both[0]) == 16
