"""Where each name of PyTorch's is computed: one table, by namespace and module.

A row is `module: names`. `name=ours` names the function there; a name alone is its own. `@unary` and `@same` are
methods of Tensor with one operand. Names of NOT_METHODS are functions only; all other names of torch itself are methods
of the tensor class, too.
"""
from __future__ import annotations
from collections.abc import Callable
import functools
import importlib
import math
from typing import Any

from tinyhw.compat.torch.dress import dressed
from tinyhw.compat.torch.types.kinds import of_kinds
from tinyhw.compat.torch.types.narrowing import casting
from tinyhw.compat.torch.types.widening import widened
from tinyhw.dtype import DType, dtypes
from tinyhw.errors import ArgumentError
from tinyhw.tensor import Tensor

_CREATION, _CONVERSION = "tinyhw.compat.torch.creation", "tinyhw.compat.torch.conversion"
_COMPLEX = "tinyhw.compat.torch.complexes"
_F, _NN, _SPECIAL, _LINALG = "tinyhw.functional", "tinyhw.functional.nn", "tinyhw.special", "tinyhw.linalg"

_TORCH = {
  "@unary": """sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh exp exp2 log log2 log10 sqrt rsqrt erf
    reciprocal sigmoid arcsin=asin arccos=acos arctan=atan arcsinh=asinh arccosh=acosh arctanh=atanh""",
  "@same": """abs absolute=abs neg negative=neg floor ceil trunc fix=trunc square isnan isfinite logical_not
    bitwise_not""",
  f"{_F}.arithmetic": """add sub subtract=sub rsub mul multiply=mul div divide=div true_divide=div floor_divide
    remainder
    fmod pow float_power maximum minimum fmax fmin addcmul addcdiv frac round frexp ldexp nextafter hypot gcd lcm
    deg2rad
    rad2deg expm1 log1p atan2 arctan2=atan2 sign positive sinc logaddexp logaddexp2 copysign lerp diff
    trapezoid trapz cumulative_trapezoid gradient clamp_min clamp_max clamp clip nan_to_num""",
  f"{_F}.logic": """eq ne lt le gt ge less=lt less_equal=le greater=gt greater_equal=ge not_equal=ne equal isclose
    allclose logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_xor bitwise_left_shift
    bitwise_right_shift isinf isposinf isneginf signbit heaviside isin where masked_fill all any count_nonzero
    argwhere nonzero nonzero_static masked_select is_nonzero""",
  f"{_F}.reductions": """sum prod mean nansum nanmean logsumexp var std var_mean std_mean max min amax amin aminmax
    argmax argmin sort argsort msort topk kthvalue cumsum cumprod cummax cummin logcumsumexp softmax=torch_softmax
    log_softmax=torch_log_softmax dist trace""",
  f"{_F}.statistics": """quantile nanquantile median nanmedian mode bincount histc histogram histogramdd cov corrcoef
    unique unique_consecutive searchsorted bucketize""",
  f"{_F}.indexing": """index_select index_fill index_copy index_add index_reduce gather take_along_dim take put
    index_put scatter scatter_add scatter_reduce select_scatter slice_scatter diagonal_scatter masked_scatter
    unravel_index segment_reduce _segment_reduce=segment_reduce _unsafe_masked_index=masked_index
    _unsafe_masked_index_put_accumulate=masked_index_put_accumulate""",
  f"{_F}.shapes": """narrow select slice=slice_of movedim moveaxis transpose swapaxes swapdims t permute flip
    fliplr flipud rot90 roll squeeze unsqueeze ravel flatten unflatten broadcast_to broadcast_tensors broadcast_shapes
    reshape tile repeat_interleave unbind split split_with_sizes chunk unsafe_chunk=chunk unsafe_split=split
    unsafe_split_with_sizes=split_with_sizes tensor_split hsplit vsplit dsplit cat concat concatenate stack atleast_1d
    atleast_2d atleast_3d hstack vstack row_stack dstack column_stack block_diag cartesian_prod combinations meshgrid
    diagonal diag_embed diag diagflat tril triu tril_indices triu_indices vander as_strided as_strided_scatter
    permute_copy=permute expand_copy=expand view_copy=view squeeze_copy=squeeze unsqueeze_copy=unsqueeze
    transpose_copy=transpose t_copy=t narrow_copy=narrow unbind_copy=unbind unfold_copy=unfold
    diagonal_copy=diagonal as_strided_copy=as_strided split_with_sizes_copy=split_with_sizes""",
  f"{_F}.products": """matmul mm bmm mv dot addmm addmv addr addbmm baddbmm outer ger inner tensordot kron
    chain_matmul cross cdist pdist renorm einsum cosine_similarity pairwise_distance bilinear""",
  f"{_NN}.activations": """relu logit prelu celu selu rrelu threshold dropout alpha_dropout feature_alpha_dropout
    _softmax_backward_data=softmax_backward native_dropout_backward hardshrink""",
  f"{_NN}.normalizations": """native_batch_norm native_group_norm native_layer_norm batch_norm instance_norm
    group_norm layer_norm=layer_norm rms_norm _native_batch_norm_legit=native_batch_norm_legit
    _batch_norm_with_update=batch_norm_with_update""",
  f"{_NN}.convolutions": """conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d constant_pad_nd
    pixel_shuffle pixel_unshuffle channel_shuffle native_channel_shuffle""",
  f"{_NN}.pooling": "max_pool1d max_pool2d max_pool3d max_pool2d_with_indices_backward adaptive_avg_pool1d avg_pool1d",
  f"{_NN}.resampling": """grid_sampler grid_sampler_2d grid_sampler_3d
    _upsample_bilinear2d_aa=upsample_bilinear2d_aa""",
  f"{_NN}.attention": "",
  f"{_SPECIAL}.gamma": "lgamma digamma polygamma mvlgamma igamma igammac",
  f"{_SPECIAL}.errors": "erfc erfinv",
  f"{_SPECIAL}.entropy": "xlogy",
  f"{_SPECIAL}.bessel": "i0",
  f"{_LINALG}.factors": """cholesky cholesky_inverse cholesky_solve lu_unpack lu_solve triangular_solve geqrf ormqr
    orgqr=householder_product lu=torch_lu""",
  f"{_LINALG}.solving": "inverse=inv det logdet slogdet matrix_power",
  f"{_LINALG}.spectra": "svd qr=torch_qr pinverse svd_lowrank pca_lowrank",
  f"{_LINALG}.norms": "norm matrix_exp",
  _CREATION: """tensor as_tensor asarray from_numpy scalar_tensor full zeros ones empty empty_strided empty_permuted
    full_like zeros_like ones_like empty_like arange linspace logspace eye rand randn randint randperm
    rand_like randn_like randint_like normal bernoulli multinomial fill""",
  _CONVERSION: """clone frombuffer detach resolve_conj=itself resolve_neg=itself
    alias_copy=copied detach_copy=copied numel is_tensor is_floating_point can_cast promote_types
    result_type=result_type_of _chunk_cat=chunk_cat""",
  _COMPLEX: """conj conj_physical=conj real imag angle sgn isreal is_complex polar complex=complex_ view_as_real
    view_as_complex vdot adjoint""",
  "tinyhw.fft.short_time": "stft istft",
  f"{_F}.windows": "hann_window hamming_window blackman_window bartlett_window kaiser_window",
}
# Methods of the tensor class that are no functions of torch.
_METHODS = {
  f"{_F}.shapes": "expand expand_as view view_as reshape_as repeat unfold",
  f"{_NN}.attention": "",
  _CREATION: """new_full new_zeros new_ones new_empty new_empty_strided new_tensor uniform exponential geometric cauchy
    normal=normal_into log_normal zero resize resize_as""",
  _CONVERSION: """cpu cuda nelement=numel to bfloat16 half double byte char short int=int_ long float=float_ bool=bool_
    type_as contiguous item size dim sum_to_size positive=itself""",
  _COMPLEX: "cfloat cdouble",
}
NOT_METHODS = frozenset("""frombuffer
  tensor as_tensor asarray from_numpy scalar_tensor full zeros ones empty empty_strided
  empty_permuted arange linspace logspace eye rand randn randint randperm normal hann_window
  hamming_window blackman_window bartlett_window kaiser_window cat concat concatenate
  stack hstack vstack row_stack dstack column_stack block_diag cartesian_prod meshgrid broadcast_tensors
  broadcast_shapes
  einsum tril_indices triu_indices chain_matmul is_tensor can_cast promote_types result_type _chunk_cat where
  full_like zeros_like ones_like empty_like rand_like randn_like randint_like real imag polar complex view_as_complex
  """.split())

_FUNCTIONAL = {
  f"{_NN}.activations": """relu relu6 leaky_relu elu celu selu silu mish hardswish hardsigmoid hardtanh threshold rrelu
    gumbel_softmax
    gelu softplus hardshrink softshrink tanhshrink softsign logsigmoid glu prelu dropout dropout1d dropout2d dropout3d
    alpha_dropout feature_alpha_dropout one_hot""",
  f"{_F}.reductions": "softmax softmin log_softmax",
  "@unary": "tanh sigmoid",
  f"{_NN}.losses": """mse_loss l1_loss smooth_l1_loss huber_loss binary_cross_entropy binary_cross_entropy_with_logits
    nll_loss cross_entropy linear_cross_entropy kl_div poisson_nll_loss gaussian_nll_loss hinge_embedding_loss
    margin_ranking_loss soft_margin_loss multi_margin_loss multilabel_margin_loss multilabel_soft_margin_loss
    cosine_embedding_loss triplet_margin_loss triplet_margin_with_distance_loss ctc_loss""",
  f"{_NN}.pooling": """max_pool1d max_pool2d max_pool3d avg_pool1d avg_pool2d avg_pool3d lp_pool1d lp_pool2d lp_pool3d
    adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d
    adaptive_max_pool3d fractional_max_pool2d fractional_max_pool3d max_unpool1d max_unpool2d max_unpool3d""",
  f"{_NN}.convolutions": """conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d unfold fold
    pixel_shuffle pixel_unshuffle channel_shuffle pad""",
  f"{_NN}.normalizations": "batch_norm instance_norm group_norm layer_norm rms_norm local_response_norm normalize",
  f"{_NN}.resampling": "interpolate upsample upsample_nearest upsample_bilinear grid_sample affine_grid",
  f"{_NN}.attention": "scaled_dot_product_attention multi_head_attention_forward embedding embedding_bag",
  f"{_F}.products": "linear bilinear cosine_similarity pairwise_distance pdist",
}
_SPECIALS = {
  "@unary": "exp2 expit=sigmoid erf",
  f"{_F}.arithmetic": "expm1 log1p sinc round",
  f"{_F}.reductions": "logsumexp softmax=torch_softmax log_softmax=torch_log_softmax",
  f"{_NN}.activations": "logit",
  f"{_SPECIAL}.gamma": """gammaln=lgamma digamma psi=digamma polygamma multigammaln=mvlgamma gammainc=igamma
    gammaincc=igammac zeta""",
  f"{_SPECIAL}.errors": "erfc erfinv erfcx ndtr ndtri log_ndtr",
  f"{_SPECIAL}.entropy": "xlogy xlog1py entr",
  f"{_SPECIAL}.bessel": """i0 i0e i1 i1e bessel_j0 bessel_j1 bessel_y0 bessel_y1 modified_bessel_i0=i0
    modified_bessel_i1=i1 modified_bessel_k0 modified_bessel_k1 scaled_modified_bessel_k0 scaled_modified_bessel_k1
    spherical_bessel_j0 airy_ai""",
  f"{_SPECIAL}.polynomials": """chebyshev_polynomial_t chebyshev_polynomial_u chebyshev_polynomial_v
    chebyshev_polynomial_w shifted_chebyshev_polynomial_t shifted_chebyshev_polynomial_u shifted_chebyshev_polynomial_v
    shifted_chebyshev_polynomial_w hermite_polynomial_h hermite_polynomial_he laguerre_polynomial_l
    legendre_polynomial_p""",
}
_LINEAR = {
  f"{_F}.products": "cross=linalg_cross multi_dot vecdot matmul",
  f"{_F}.shapes": "diagonal=linalg_diagonal vander=linalg_vander",
  f"{_LINALG}.factors": """cholesky=linalg_cholesky cholesky_ex lu lu_factor lu_factor_ex lu_solve=linalg_lu_solve
    qr=linalg_qr householder_product solve_triangular""",
  f"{_LINALG}.solving": """solve solve_ex inv inv_ex det slogdet matrix_power tensorinv tensorsolve
    lstsq""",
  f"{_LINALG}.spectra": "eigh eigvalsh svd=linalg_svd svdvals pinv matrix_rank cond",
  f"{_LINALG}.eigen": "eig eigvals",
  f"{_LINALG}.norms": "norm=linalg_norm vector_norm matrix_norm matrix_exp",
}
_FFT = {"tinyhw.fft.transforms": """fft ifft rfft irfft hfft ihfft fft2 ifft2 rfft2 irfft2 hfft2 ihfft2 fftn ifftn rfftn
  irfftn hfftn ihfftn fftshift ifftshift fftfreq rfftfreq"""}
_MODULES = "tinyhw.compat.torch.modules"
_LAYERS = {
  f"{_MODULES}.module": "Module Parameter Buffer=ModuleBuffer",
  f"{_MODULES}.containers": "Sequential ModuleList ModuleDict ParameterList ParameterDict DataParallel",
  f"{_MODULES}.rows": """Identity Flatten Unflatten Softmax2d ReLU ReLU6 LeakyReLU ELU CELU SELU SiLU Mish GELU GLU
    Hardswish
    Hardsigmoid Hardtanh Hardshrink Softshrink Softplus Softsign Tanh Tanhshrink Sigmoid LogSigmoid Threshold RReLU
    Softmax Softmin LogSoftmax Dropout Dropout1d Dropout2d Dropout3d AlphaDropout FeatureAlphaDropout MaxPool1d
    MaxPool2d MaxPool3d AvgPool1d AvgPool2d AvgPool3d LPPool1d LPPool2d LPPool3d FractionalMaxPool2d
    FractionalMaxPool3d AdaptiveAvgPool1d AdaptiveAvgPool2d
    AdaptiveAvgPool3d AdaptiveMaxPool1d AdaptiveMaxPool2d AdaptiveMaxPool3d MaxUnpool1d MaxUnpool2d MaxUnpool3d Fold
    Unfold PixelShuffle PixelUnshuffle ChannelShuffle LocalResponseNorm CosineSimilarity PairwiseDistance Upsample
    UpsamplingNearest2d UpsamplingBilinear2d
    L1Loss MSELoss SmoothL1Loss HuberLoss BCELoss BCEWithLogitsLoss NLLLoss CrossEntropyLoss KLDivLoss PoissonNLLLoss
    GaussianNLLLoss HingeEmbeddingLoss MarginRankingLoss SoftMarginLoss MultiMarginLoss MultiLabelMarginLoss
    MultiLabelSoftMarginLoss CosineEmbeddingLoss TripletMarginLoss TripletMarginWithDistanceLoss CTCLoss ZeroPad1d
    ZeroPad2d ZeroPad3d ConstantPad1d ConstantPad2d ConstantPad3d ReflectionPad1d ReflectionPad2d ReflectionPad3d
    ReplicationPad1d ReplicationPad2d ReplicationPad3d CircularPad1d CircularPad2d CircularPad3d""",
  f"{_MODULES}.parametric": """Linear Bilinear Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d
    BatchNorm1d BatchNorm2d BatchNorm3d InstanceNorm1d InstanceNorm2d InstanceNorm3d GroupNorm LayerNorm RMSNorm PReLU
    Embedding EmbeddingBag SyncBatchNorm""",
  f"{_MODULES}.losses": "LinearCrossEntropyLoss AdaptiveLogSoftmaxWithLoss",
  f"{_MODULES}.lazy": """LazyLinear LazyConv1d LazyConv2d LazyConv3d LazyConvTranspose1d LazyConvTranspose2d
    LazyConvTranspose3d LazyBatchNorm1d LazyBatchNorm2d LazyBatchNorm3d LazyInstanceNorm1d LazyInstanceNorm2d
    LazyInstanceNorm3d""",
  f"{_MODULES}.recurrent": """RNN LSTM GRU RNNCell LSTMCell GRUCell MultiheadAttention RNNBase=Recurrent
    RNNCellBase=RecurrentCell""",
  f"{_MODULES}.transformer": """Transformer=EncoderDecoder TransformerEncoder TransformerDecoder TransformerEncoderLayer
    TransformerDecoderLayer""",
}
_COMPAT = "tinyhw.compat.torch"
_MACHINE = f"{_COMPAT}.machine"
_OPTIM = f"{_COMPAT}.optimizers"
_OPTIMIZERS = {
  f"{_OPTIM}.optimizer": "Optimizer=TorchOptimizer",
  f"{_OPTIM}.algorithms": """SGD Adam AdamW RMSprop Adagrad Adadelta Adamax NAdam RAdam ASGD Rprop Adafactor Muon
    SparseAdam""",
  f"{_OPTIM}.lbfgs": "LBFGS",
}
_SCHEDULES = {
  "tinyhw.nn.optim.schedules": """LRScheduler LambdaLR MultiplicativeLR StepLR MultiStepLR ConstantLR LinearLR
    ExponentialLR PolynomialLR CosineAnnealingLR SequentialLR ChainedScheduler _LRScheduler=LRScheduler""",
  "tinyhw.nn.optim.cycles": "CosineAnnealingWarmRestarts OneCycleLR CyclicLR ReduceLROnPlateau",
}
_CLIPPING = "tinyhw.nn.optim.clipping"
_UTILS = {
  _CLIPPING: """clip_grad_norm_ clip_grad_norm=clip_grad_norm_ clip_grad_value_ clip_grads_with_norm_ get_total_norm
    parameters_to_vector vector_to_parameters""",
  f"{_MODULES}.weight_hooks": "weight_norm spectral_norm remove_weight_norm remove_spectral_norm",
}
_INITIAL = {f"{_COMPAT}.initial": """uniform_ normal_ trunc_normal_ constant_ ones_ zeros_ eye_ dirac_ xavier_uniform_
  xavier_normal_ kaiming_uniform_ kaiming_normal_ orthogonal_ sparse_ calculate_gain
  _calculate_fan_in_and_fan_out=fans"""}
_SEQUENCES = {f"{_MODULES}.sequences": """PackedSequence pack_padded_sequence pad_packed_sequence pad_sequence
  unpad_sequence pack_sequence unpack_sequence invert_permutation"""}
_PARAMETRIZE = {f"{_MODULES}.parametrize": """register_parametrization remove_parametrizations is_parametrized cached
  ParametrizationList"""}
_PARAMETRIZATIONS = {f"{_MODULES}.parametrize": "weight_norm spectral_norm orthogonal"}
_AVERAGES = {f"{_OPTIM}.averages": """AveragedModel SWALR update_bn get_ema_avg_fn get_ema_multi_avg_fn get_swa_avg_fn
  get_swa_multi_avg_fn"""}
_AMP = {f"{_OPTIM}.scaling": "GradScaler", f"{_COMPAT}.types.narrowing": "autocast",
        f"{_COMPAT}.differentiation.functions": "custom_fwd custom_bwd"}
_AUTOGRAD = {
  f"{_COMPAT}.differentiation.gradients": "grad backward Variable",
  f"{_COMPAT}.differentiation.checking": "gradcheck gradgradcheck",
  f"{_COMPAT}.differentiation.functions": "Function=AutogradFunction",
  f"{_COMPAT}.differentiation.modes": """no_grad enable_grad set_grad_enabled inference_mode
    set_detect_anomaly=Unneeded detect_anomaly=Unneeded""",
}
_AUTOGRAD_GRAPH = {f"{_COMPAT}.differentiation.modes": "save_on_cpu=Unneeded saved_tensors_hooks=Unneeded"}
_TESTING = {f"{_COMPAT}.tools.comparison": "assert_close"}
_DIFFERENTIATION = f"{_COMPAT}.differentiation"
_FUNC = {f"{_DIFFERENTIATION}.transforms": """grad grad_and_value vjp jvp jacrev jacfwd hessian functional_call
  stack_module_state""", f"{_DIFFERENTIATION}.vectorized": "vmap"}
_AUTOGRAD_FUNCTIONAL = {f"{_DIFFERENTIATION}.functional": "jacobian hessian vjp jvp hvp vhp"}
_PRUNE = {f"{_MODULES}.pruning": """is_pruned custom_from_mask remove identity l1_unstructured random_unstructured
  ln_structured random_structured global_unstructured L1Unstructured RandomUnstructured"""}
_FUSION = {f"{_MODULES}.fusion": """fuse_conv_bn_eval fuse_conv_bn_weights fuse_linear_bn_eval
  fuse_linear_bn_weights"""}
_ATTENTION = {_MACHINE: "SDPBackend=AttentionBackend", f"{_DIFFERENTIATION}.modes": "sdpa_kernel=Unneeded"}
_STATELESS = {f"{_DIFFERENTIATION}.transforms": "functional_call"}
_AUTOGRAD_FUNCTION = {
  f"{_COMPAT}.differentiation.functions": """Function=AutogradFunction FunctionCtx=FunctionContext
    once_differentiable"""}
_CHECKPOINT = {f"{_COMPAT}.differentiation.gradients": "checkpoint checkpoint_sequential"}
# Names of modules within torch.nn.modules.
_WITHIN_NN = {
  f"{_MODULES}.rows": "_Loss=LossModule _WeightedLoss=WeightedLossModule",
  f"{_MODULES}.parametric": """_ConvNd=ConvolutionModule _ConvTransposeNd=TransposedConvolution _BatchNorm=BatchNorm
    _InstanceNorm=InstanceNorm _NormBase=NormBase""",
  f"{_MODULES}.module": """register_module_forward_hook register_module_forward_pre_hook
  register_module_full_backward_hook register_module_backward_hook=register_module_full_backward_hook""",
}
_CUDA = {f"{_COMPAT}.no_gpu": """is_available device_count current_device manual_seed manual_seed_all empty_cache
  synchronize reset_peak_memory_stats set_device init memory_allocated max_memory_allocated=memory_allocated
  memory_reserved=memory_allocated max_memory_reserved=memory_allocated is_bf16_supported is_initialized
  get_device_name get_device_capability get_device_properties mem_get_info reset_max_memory_allocated ipc_collect"""}
_JIT = {_MACHINE: "script trace ignore unused export is_scripting=no is_tracing=no"}
_COMPILER = {_MACHINE: "disable is_compiling=no is_exporting=no"}
_DISTRIBUTED = {_MACHINE: "is_available=no is_initialized=no get_rank=rank_of_one get_world_size=size_of_one"}
_VERSION = {_MACHINE: "cuda=cuda_version hip=cuda_version"}
_RANDOM = {f"{_COMPAT}.generators": """manual_seed seed initial_seed get_rng_state set_rng_state fork_rng
  default_generator"""}
_LOADING = "tinyhw.nn.loading"
_DATA = {
  f"{_LOADING}.sets": """Dataset IterableDataset TensorDataset StackDataset ConcatDataset ChainDataset Subset
    random_split""",
  f"{_LOADING}.samplers": """Sampler SequentialSampler RandomSampler SubsetRandomSampler WeightedRandomSampler
    BatchSampler DistributedSampler""",
  f"{_LOADING}.workers": "get_worker_info",
  f"{_COMPAT}.loading": """DataLoader=TorchDataLoader default_collate=torch_collate default_convert=torch_convert""",
}
_DISTRIBUTIONS = {
  f"{_COMPAT}.distributions_of": """Distribution Gamma Chi2 InverseGamma Dirichlet Beta StudentT FisherSnedecor Normal
    Laplace Cauchy Gumbel Uniform Exponential LogNormal HalfNormal HalfCauchy Pareto Weibull Kumaraswamy VonMises
    Bernoulli Geometric Binomial NegativeBinomial Poisson Categorical OneHotCategorical
    OneHotCategoricalStraightThrough Multinomial Independent TransformedDistribution LogisticNormal RelaxedBernoulli
    RelaxedOneHotCategorical MixtureSameFamily MultivariateNormal Transform ExpTransform PowerTransform
    SigmoidTransform TanhTransform SoftplusTransform AbsTransform AffineTransform SoftmaxTransform
    StickBreakingTransform ReshapeTransform IndependentTransform ComposeTransform GeneralizedPareto
    ContinuousBernoulli LowRankMultivariateNormal Wishart LKJCholesky CorrCholeskyTransform LowerCholeskyTransform
    PositiveDefiniteTransform CumulativeDistributionTransform CatTransform StackTransform biject_to transform_to
    identity_transform""",
  "tinyhw.distributions.divergence": "kl_divergence register_kl",
}
_TRANSFORMS = {f"{_COMPAT}.distributions_of": """Transform ExpTransform PowerTransform SigmoidTransform TanhTransform
  SoftplusTransform AbsTransform AffineTransform SoftmaxTransform StickBreakingTransform ReshapeTransform
  IndependentTransform ComposeTransform CorrCholeskyTransform LowerCholeskyTransform PositiveDefiniteTransform
  CumulativeDistributionTransform CatTransform StackTransform identity_transform"""}
_CONSTRAINTS = {"tinyhw.distributions.constraints": """Constraint real positive nonnegative unit_interval boolean
  nonnegative_integer positive_integer real_vector simplex one_hot lower_cholesky positive_definite greater_than
  greater_than_eq less_than interval half_open_interval integer_interval independent cat stack multinomial
  corr_cholesky lower_triangular positive_semidefinite square symmetric"""}
# Names of torch that are taken as they are.
_AS_THEY_ARE = {
  f"{_COMPAT}.saving": "save load",
  f"{_COMPAT}.types.narrowing": "autocast is_autocast_enabled get_autocast_dtype",
  _MACHINE: """device=TorchDevice mps xpu backends finfo iinfo get_default_dtype set_default_dtype
    get_num_threads set_num_threads compile set_float32_matmul_precision get_float32_matmul_precision
    use_deterministic_algorithms are_deterministic_algorithms_enabled set_num_interop_threads
    set_default_device get_default_device set_default_tensor_type typename""",
  f"{_DIFFERENTIATION}.vectorized": "vmap",
  f"{_COMPAT}.tools.printing": "set_printoptions",
  f"{_COMPAT}.generators": "manual_seed seed initial_seed get_rng_state set_rng_state Generator=TorchGenerator",
  f"{_COMPAT}.differentiation.modes": """no_grad enable_grad set_grad_enabled inference_mode is_grad_enabled
    is_inference_mode_enabled""",
}
_MASKED = {f"{_F}.masked": """sum prod cumsum cumprod amax amin argmax argmin mean median norm var std softmax
  log_softmax softmin normalize logsumexp logaddexp"""}
_WINDOWS = {f"{_F}.windows": """general_cosine general_hamming hamming hann blackman nuttall bartlett cosine exponential
  gaussian kaiser"""}

# Operands that PyTorch wants as tensors: all of the first two, the first, or one of the two at least.
OPERANDS = {name: kind for kind, names in {
  "all": "atan2 arctan2 ldexp logaddexp igamma igammac hypot gammainc gammaincc",
  "first": "clamp_min clamp_max eq ne lt le gt ge copysign fmod rsub less less_equal greater greater_equal not_equal",
  "one": """remainder pow float_power xlogy xlog1py zeta add sub mul div floor_divide true_divide chebyshev_polynomial_t
    chebyshev_polynomial_u chebyshev_polynomial_v chebyshev_polynomial_w shifted_chebyshev_polynomial_t
    shifted_chebyshev_polynomial_u shifted_chebyshev_polynomial_v shifted_chebyshev_polynomial_w hermite_polynomial_h
    hermite_polynomial_he laguerre_polynomial_l legendre_polynomial_p""",
}.items() for name in names.split()}

def _read(rows: dict[str, str]) -> dict[str, tuple[str, str]]:
  """Return {name: (module, the function there)}."""
  found = {}
  for module, names in rows.items():
    for word in names.split():
      name, _, ours = word.partition("=")
      found[name] = module, ours or name
  return found

TABLE: dict[str, dict[str, tuple[str, str]]] = {namespace: _read(rows) for namespace, rows in {
  "": _TORCH, "methods": _METHODS, "nn.functional": _FUNCTIONAL, "special": _SPECIALS, "linalg": _LINEAR,
  "masked": _MASKED, "signal.windows": _WINDOWS, "nn": _LAYERS, "signal": {}, "fft": _FFT,
  "optim": _OPTIMIZERS, "optim.lr_scheduler": _SCHEDULES,
  "optim.swa_utils": _AVERAGES, "nn.init": _INITIAL, "nn.utils": _UTILS, "nn.utils.rnn": _SEQUENCES,
  "nn.utils.parametrize": _PARAMETRIZE, "nn.utils.parametrizations": _PARAMETRIZATIONS, "amp": _AMP,
  "cuda": _CUDA, "cuda.amp": _AMP, "utils": {},
  "autograd": _AUTOGRAD, "autograd.function": _AUTOGRAD_FUNCTION, "utils.checkpoint": _CHECKPOINT, "nn.parameter": {
    f"{_MODULES}.module": "Parameter", f"{_MODULES}.lazy": "UninitializedParameter"},
  "utils.data": _DATA, "distributions": _DISTRIBUTIONS, "distributions.transforms": _TRANSFORMS,
  "distributions.constraints": _CONSTRAINTS, "distributions.kl": {"tinyhw.distributions.divergence":
                                                                  "kl_divergence register_kl"},
  "random": _RANDOM, "jit": _JIT, "compiler": _COMPILER, "distributed": _DISTRIBUTED, "version": _VERSION,
  "testing": _TESTING, "autograd.graph": _AUTOGRAD_GRAPH, "func": _FUNC,
  "autograd.functional": _AUTOGRAD_FUNCTIONAL, "nn.utils.prune": _PRUNE, "nn.utils.fusion": _FUSION,
  "nn.attention": _ATTENTION,
  "nn.utils.stateless": _STATELESS, "nn.modules": _WITHIN_NN,
  "@": _AS_THEY_ARE, "ops.aten": {f"{_F}.reductions": "_safe_softmax=safe_softmax"}}.items()}

TABLE["nn.modules"] |= TABLE["nn"]

# Namespaces of classes, which are taken as they are.
CLASSES = frozenset("""nn optim optim.lr_scheduler optim.swa_utils nn.init nn.utils nn.utils.rnn nn.utils.parametrize
  nn.utils.parametrizations amp random utils
  utils.data distributions distributions.transforms distributions.constraints distributions.kl autograd
  autograd.function utils.checkpoint nn.parameter cuda cuda.amp jit compiler distributed version testing
  autograd.graph nn.modules func nn.utils.stateless autograd.functional
  nn.utils.prune nn.utils.fusion nn.attention""".split())

def names(namespace: str) -> list[str]:
  """Return the names of a namespace."""
  return [*TABLE[namespace], *([*_constants(), *TABLE["@"]] if not namespace else ())]

def find(namespace: str, name: str) -> Any:
  """Return what a name of a namespace stands for. Raises AttributeError."""
  if not namespace and name in _constants(): return _constants()[name]
  rows = TABLE[namespace]
  if not namespace and name in TABLE["@"]: namespace, rows = "@", TABLE["@"]
  if namespace in ("@", *CLASSES) and name in rows:
    return getattr(importlib.import_module(rows[name][0]), rows[name][1])
  if name in rows: return _function(namespace, name)
  if namespace == "nn.functional" and name.endswith("_") and name[:-1] in rows:
    return lambda input, *args, **keywords: input._put(_function(namespace, name[:-1])(input, *args, **keywords))
  if not namespace and name.startswith("_foreach_"): return _foreach(name.removeprefix("_foreach_"))
  if not namespace and name.endswith("_") and name[:-1] in rows:
    return lambda input, *args, **keywords: getattr(input, name)(*args, **keywords)
  raise AttributeError(f"torch{'.' * bool(namespace)}{namespace} has no {name!r} here; docs/guide/from-pytorch.md says "
                       f"what is left out")

def text_of(tensor: Any) -> str:
  """Return the text of a tensor; what writes it is loaded when it is asked for."""
  return importlib.import_module(f"{_COMPAT}.tools.printing").text_of(tensor)  # type: ignore[no-any-return]

def _foreach(name: str) -> Callable[..., Any]:
  def in_place(x: Any, *args: Any, **keywords: Any) -> Any: return getattr(x, name)(*args, **keywords)
  foreach: Any = getattr(importlib.import_module(_CONVERSION), "foreach")
  return foreach(in_place if name.endswith("_") else find("", name))  # type: ignore[no-any-return]

@functools.lru_cache(None)
def _function(namespace: str, name: str) -> Callable[..., Any]:
  module, ours = TABLE[namespace][name]
  if module.startswith("@"): plain = getattr(importlib.import_module(_CONVERSION), module[1:])(ours)
  else: plain = getattr(importlib.import_module(module), ours)
  plain = of_kinds(widened(plain, namespace, name), namespace, name)
  kind = OPERANDS.get(name)
  found = dressed(plain if kind is None else _of_tensors(plain, name, kind), f"{namespace}.{name}".lstrip("."))
  return casting(found, name) if namespace in ("", "nn.functional") else found

def _of_tensors(function: Callable[..., Any], name: str, kind: str) -> Callable[..., Any]:
  """Let a function refuse numbers where PyTorch wants tensors."""
  @functools.wraps(function)
  def called(*args: Any, **keywords: Any) -> Any:
    operands = [*args, *[keywords[k] for k in ("input", "other", "exponent", "min", "max") if k in keywords]][:2]
    are = [isinstance(x, Tensor) for x in operands]
    if not {"all": all(are), "first": are[:1] == [True], "one": any(are)}[kind]:
      wanted = {"all": "tensors", "first": "a tensor first", "one": "a tensor"}[kind]
      raise ArgumentError(f"{name} wants {wanted}, not {operands!r}; make one with torch.tensor(...)")
    return function(*args, **keywords)
  return called

def methods() -> dict[str, Callable[..., Any]]:
  """Return the functions that are methods of the tensor class, each loaded when it is called."""
  listed = [("", name) for name in TABLE[""] if name not in NOT_METHODS] + [("methods", n) for n in TABLE["methods"]]
  return {name: _late(namespace, name) for namespace, name in listed}

def _late(namespace: str, name: str) -> Callable[..., Any]:
  def method(self: Any, *args: Any, **keywords: Any) -> Any:
    return _function(namespace, name)(self, *args, **keywords)
  method.__name__ = name
  return method

@functools.lru_cache(None)
def _constants() -> dict[str, Any]:
  """Names of torch that are no functions of tensors."""
  kinds = {k: getattr(dtypes, k) for k in ("bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32",
                                           "uint64", "float16", "bfloat16", "float32", "float64", "complex64",
                                           "complex128")}
  aliases = {"half": "float16", "float": "float32", "double": "float64", "short": "int16", "int": "int32",
             "long": "int64", "cfloat": "complex64", "cdouble": "complex128"}
  formats = {k: k for k in ("contiguous_format", "preserve_format", "channels_last", "channels_last_3d", "strided")}
  kind = importlib.import_module("tinyhw.compat.torch.tensors").TorchTensor
  attributes = importlib.import_module("tinyhw.compat.torch.attributes")
  return {**kinds, **{k: kinds[v] for k, v in aliases.items()}, **formats, "Tensor": kind, "Size": attributes.TorchSize,
          **attributes.LEGACY,
          "dtype": DType, "inf": math.inf, "nan": math.nan, "pi": math.pi, "e": math.e,
          "ops": importlib.import_module("types").SimpleNamespace(aten=_Overloads())}

class _Overloads:
  """torch.ops.aten: each function has its overloads as attributes."""
  def __getattr__(self, name: str) -> Any:
    if name not in TABLE["ops.aten"]: raise AttributeError(f"torch.ops.aten has no {name!r} here")
    return importlib.import_module("types").SimpleNamespace(default=_function("ops.aten", name))

