"""Normalization layers."""

from math import prod

from burn import dtypes, ops
from burn.box import Buffer, Parameter
from burn.dtypes import DType
from burn.nn import init
from burn.nn.module import Module
from burn.ops.layer_norm import layer_norm, rms_norm
from burn.ops.norm import batch_norm, batch_norm_train, group_norm, instance_norm
from burn.tensor import Tensor

#: Burn's names of the two vectors.
_IN_BURN = {"weight": "gamma", "bias": "beta"}


def _parameter(
    wanted: bool, shape: tuple[int, ...], value: float, dtype: DType
) -> Parameter | None:
    return Parameter(init.constant(shape, value, dtype)) if wanted else None


class _BatchNorm(Module):
    names_in_burn = _IN_BURN
    rank = 0

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = True,
        dtype: DType = dtypes.float32,
    ) -> None:
        super().__init__()
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.weight = _parameter(affine, (num_features,), 1.0, dtype)
        self.bias = _parameter(affine, (num_features,), 0.0, dtype)
        self.running_mean = Buffer(init.constant((num_features,), 0.0, dtype))
        self.running_var = Buffer(init.constant((num_features,), 1.0, dtype))

    def __call__(self, x: Tensor) -> Tensor:
        if x.ndim != self.rank + 2 and (self.rank, x.ndim) != (1, 2):
            raise ValueError(f"expected rank {self.rank + 2}, got {list(x.shape)}")
        if self._is_trained:
            return self._train(x)
        return batch_norm(
            x,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            epsilon=self.eps,
        )

    @property
    def _is_trained(self) -> bool:
        """Whether statistics are those of the batch."""
        box = self.running_mean if self.weight is None else self.weight
        return box.backend.tracks_gradients

    def _train(self, x: Tensor) -> Tensor:
        """Return the result with batch statistics, and update the running ones."""
        count = prod(x.shape) // max(self.num_features, 1)
        if count < 2:
            raise ValueError(
                "expected more than one element a channel in training, "
                f"got {list(x.shape)}"
            )
        y, mean, var = batch_norm_train(x, self.weight, self.bias, epsilon=self.eps)
        self._follow(self.running_mean, mean.detach())
        self._follow(self.running_var, var.detach() * (count / (count - 1)))
        return y

    def _follow(self, running: Buffer, value: Tensor) -> None:
        new = running * (1.0 - self.momentum) + value * self.momentum
        running.set(new.cast(running.dtype))

    def describe(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, "
            f"affine={self.weight is not None}"
        )


class BatchNorm1d(_BatchNorm):
    """Normalizes the channels of [N, C] or [N, C, length] over the batch.

    In training, that is with parameters on an ``Autodiff`` backend, the statistics are
    those of the batch, and ``running_mean`` and ``running_var`` (unbiased) are updated
    with ``momentum``; in inference these are used. All four vectors have ``dtype``.

    Raises:
        ValueError: the rank differs, or a channel has only one element in training.
    """

    rank = 1


class BatchNorm2d(_BatchNorm):
    """:class:`BatchNorm1d` for [N, C, H, W]."""

    rank = 2


class BatchNorm3d(_BatchNorm):
    """:class:`BatchNorm1d` for [N, C, D, H, W]."""

    rank = 3


class LayerNorm(Module):
    """Normalizes the last axes, of shape ``normalized_shape``, to mean 0 and variance
    1.

    ``weight`` and ``bias`` have that shape.
    """

    names_in_burn = _IN_BURN

    def __init__(
        self,
        normalized_shape: int | tuple[int, ...],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        dtype: DType = dtypes.float32,
    ) -> None:
        super().__init__()
        self.normalized_shape = _shape(normalized_shape)
        self.eps = eps
        shape, has_bias = self.normalized_shape, elementwise_affine and bias
        self.weight = _parameter(elementwise_affine, shape, 1.0, dtype)
        self.bias = _parameter(has_bias, shape, 0.0, dtype)

    def __call__(self, x: Tensor) -> Tensor:
        axis = _last(self.normalized_shape, x)
        return layer_norm(x, self.weight, self.bias, axis=axis, epsilon=self.eps)

    def describe(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}"


class RMSNorm(Module):
    """Normalizes the last axes, of shape ``normalized_shape``, to root mean square 1.

    ``weight`` has that shape. The default ``eps`` is the machine epsilon of the input
    dtype.
    """

    names_in_burn = _IN_BURN

    def __init__(
        self,
        normalized_shape: int | tuple[int, ...],
        eps: float | None = None,
        elementwise_affine: bool = True,
        dtype: DType = dtypes.float32,
    ) -> None:
        super().__init__()
        self.normalized_shape = _shape(normalized_shape)
        self.eps = eps
        self.weight = _parameter(elementwise_affine, self.normalized_shape, 1.0, dtype)

    def __call__(self, x: Tensor) -> Tensor:
        axis, epsilon = _last(self.normalized_shape, x), self.eps
        if epsilon is None:
            epsilon = dtypes.step(x.dtype)
        return rms_norm(x, self.weight, axis=axis, epsilon=epsilon)

    def describe(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}"


class GroupNorm(Module):
    """Normalizes each group of channels of [N, C, ...], with all space.

    Raises:
        ValueError: the channels do not divide into the groups.
    """

    names_in_burn = _IN_BURN

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        dtype: DType = dtypes.float32,
    ) -> None:
        super().__init__()
        if num_channels % num_groups:
            raise ValueError(
                f"expected channels that are a multiple of {num_groups} groups, "
                f"got {num_channels}"
            )
        self.num_groups, self.num_channels, self.eps = num_groups, num_channels, eps
        self.weight = _parameter(affine, (num_channels,), 1.0, dtype)
        self.bias = _parameter(affine, (num_channels,), 0.0, dtype)

    def __call__(self, x: Tensor) -> Tensor:
        return group_norm(
            x, self.weight, self.bias, groups=self.num_groups, epsilon=self.eps
        )

    def describe(self) -> str:
        return f"{self.num_groups}, {self.num_channels}, eps={self.eps}"


class _InstanceNorm(Module):
    rank = 0

    names_in_burn = _IN_BURN

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        affine: bool = False,
        dtype: DType = dtypes.float32,
    ) -> None:
        super().__init__()
        self.num_features, self.eps = num_features, eps
        self.weight = _parameter(affine, (num_features,), 1.0, dtype)
        self.bias = _parameter(affine, (num_features,), 0.0, dtype)

    def __call__(self, x: Tensor) -> Tensor:
        if x.ndim != self.rank + 2:
            raise ValueError(f"expected rank {self.rank + 2}, got {list(x.shape)}")
        return instance_norm(x, self.weight, self.bias, epsilon=self.eps)

    def describe(self) -> str:
        affine = self.weight is not None
        return f"{self.num_features}, eps={self.eps}, affine={affine}"


class InstanceNorm1d(_InstanceNorm):
    """Normalizes each channel of [N, C, length] over space."""

    rank = 1


class InstanceNorm2d(_InstanceNorm):
    """Normalizes each channel of [N, C, H, W] over space."""

    rank = 2


class InstanceNorm3d(_InstanceNorm):
    """Normalizes each channel of [N, C, D, H, W] over space."""

    rank = 3


class LocalResponseNorm(Module):
    """Divides by a power of the mean square of ``size`` neighboring channels.

    An even ``size`` takes one more channel after than before, as ONNX defines it.
    """

    def __init__(
        self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
    ) -> None:
        super().__init__()
        self.size, self.alpha, self.beta, self.k = size, alpha, beta, k

    def __call__(self, x: Tensor) -> Tensor:
        return ops.lrn(x, size=self.size, alpha=self.alpha, beta=self.beta, bias=self.k)

    def describe(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


def _shape(normalized: int | tuple[int, ...]) -> tuple[int, ...]:
    return (normalized,) if isinstance(normalized, int) else tuple(normalized)


def _last(shape: tuple[int, ...], x: Tensor) -> int:
    """Return the first normalized axis, counted from the end."""
    if x.shape[-len(shape) :] != shape:
        raise ValueError(f"expected last extents {shape}, got {list(x.shape)}")
    return -len(shape)
