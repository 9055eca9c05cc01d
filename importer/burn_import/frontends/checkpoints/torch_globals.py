"""PyTorch's functions that rebuild tensors, as views of storages.

Their arguments are those in ``torch/_utils.py`` and ``torch/_tensor.py``.
"""

from burn_import.frontends.checkpoints.element_types import ELEMENTS, Element
from burn_import.frontends.checkpoints.numpy_globals import NumpyArray
from burn_import.frontends.checkpoints.pickle_globals import Context, call, rebuilds
from burn_import.frontends.checkpoints.pickle_values import (
    Bytes,
    Global,
    Unread,
    Value,
    named,
)
from burn_import.frontends.checkpoints.tensors import (
    Quantization,
    Storage,
    Tensor,
    tensor_in,
)
from burn_ir import InvalidModel, UnsupportedModel


@rebuilds("torch._utils._rebuild_tensor", args=(4, 4))
def tensor(
    context: Context, storage: Value, offset: Value, size: Value, stride: Value
) -> Value:
    """Return a view of a storage; the format before 0.4."""
    return tensor_in(context.limits, storage, offset, size, stride)


@rebuilds("torch._utils._rebuild_tensor_v2", args=(6, 7))
def tensor_v2(
    context: Context,
    storage: Value,
    offset: Value,
    size: Value,
    stride: Value,
    requires_grad: Value,
    hooks: Value,
    metadata: Value = None,
) -> Value:
    """Return a view of a storage; ``metadata`` has lazy conjugation and negation."""
    marks = _marks(metadata)
    return tensor_in(context.limits, storage, offset, size, stride, None, **marks)


@rebuilds("torch._utils._rebuild_tensor_v3", args=(7, 8))
def tensor_v3(
    context: Context,
    storage: Value,
    offset: Value,
    size: Value,
    stride: Value,
    requires_grad: Value,
    hooks: Value,
    dtype: Value,
    metadata: Value = None,
) -> Value:
    """Return a view of a byte storage, for dtypes without a typed storage."""
    element, marks = _element(dtype), _marks(metadata)
    return tensor_in(context.limits, storage, offset, size, stride, element, **marks)


@rebuilds("torch._utils._rebuild_parameter", args=(3, 3))
def parameter(
    context: Context, data: Value, requires_grad: Value, hooks: Value
) -> Value:
    """Return the tensor of a parameter."""
    return _tensor(data)


@rebuilds("torch._utils._rebuild_parameter_with_state", args=(4, 4))
def parameter_with_state(
    context: Context, data: Value, requires_grad: Value, hooks: Value, state: Value
) -> Value:
    """Return the tensor of a parameter that has attributes."""
    return _tensor(data)


@rebuilds("torch._utils._rebuild_qtensor", args=(7, 7))
def quantized(
    context: Context,
    storage: Value,
    offset: Value,
    size: Value,
    stride: Value,
    parameters: Value,
    requires_grad: Value,
    hooks: Value,
) -> Value:
    """Return the integers of a quantized tensor, with its quantization."""
    scaling = _quantization(parameters)
    if scaling is None:
        return Unread("a tensor of an unknown quantization scheme")
    return tensor_in(
        context.limits, storage, offset, size, stride, quantization=scaling
    )


@rebuilds("torch._utils._rebuild_device_tensor_from_numpy", args=(4, 4))
def from_numpy(
    context: Context, data: Value, dtype: Value, device: Value, requires_grad: Value
) -> Value:
    """Return a tensor of a device whose tensors are saved as NumPy arrays."""
    tensor = data.value() if isinstance(data, NumpyArray) else _tensor(data)
    if isinstance(tensor, Tensor) and tensor.element is not _element(dtype):
        return Unread(f"a tensor of {dtype} saved as {tensor.element.name}")
    return tensor


@rebuilds("torch._utils._rebuild_device_tensor_from_cpu_tensor", args=(4, 4))
def from_cpu(
    context: Context, data: Value, dtype: Value, device: Value, requires_grad: Value
) -> Value:
    """Return a tensor of a device whose tensors are saved as CPU tensors."""
    return _tensor(data)


@rebuilds(
    "torch._tensor._rebuild_from_type",
    "torch._tensor._rebuild_from_type_v2",
    args=(4, 4),
)
def from_type(
    context: Context, function: Value, kind: Value, args: Value, state: Value
) -> Value:
    """Return a tensor of a user's subclass as a plain tensor."""
    if isinstance(function, Global) and "_rebuild_from_type" in function.name:
        raise UnsupportedModel(f"{function} nested in another one, which is refused")
    return call(context, function, args)


@rebuilds("torch.storage._load_from_bytes", args=(1, 1))
def from_bytes(context: Context, data: Value) -> Value:
    """Return the storage that ``pickle.dump`` of a tensor saves as bytes."""
    if context.nested is None:
        raise UnsupportedModel("a storage nested in another storage")
    if not isinstance(data, Bytes):
        raise InvalidModel(f"expected the bytes of a storage, got {named(data)}")
    view = memoryview(data)
    content = context.nested(view, context.within())
    if not isinstance(content, Storage | Tensor):
        raise InvalidModel(f"expected the bytes of a storage, got {named(content)}")
    return content


_NOT_READ = {
    "torch._utils._rebuild_sparse_tensor": "a sparse tensor",
    "torch._utils._rebuild_sparse_csr_tensor": "a sparse tensor",
    "torch._utils._rebuild_nested_tensor": "a nested tensor",
    "torch._utils._rebuild_meta_tensor_no_storage": "a meta tensor, without values",
    "torch._utils._rebuild_wrapper_subclass": "a tensor of a wrapper class",
}


def _not_read(name: str, reason: str) -> None:
    rebuilds(name, args=(0, 32))(lambda context, *args: Unread(reason))


for _name, _reason in _NOT_READ.items():
    _not_read(_name, _reason)


@rebuilds(
    *(
        f"torch.jit._pickle.build_{kind}list"
        for kind in ("int", "tensor", "double", "bool")
    ),
    args=(1, 1),
)
def typed_list(context: Context, values: Value) -> Value:
    """Return a list of TorchScript."""
    return values


@rebuilds("torch.jit._pickle.restore_type_tag", args=(2, 2))
def tagged(context: Context, value: Value, kind: Value) -> Value:
    """Return a list or dict of TorchScript without its type annotation."""
    return value


def _tensor(data: Value) -> Value:
    if isinstance(data, NumpyArray):
        return data.value()
    if not isinstance(data, Tensor | Unread):
        raise InvalidModel(f"expected the tensor of a parameter, got {named(data)}")
    return data


def _element(dtype: Value) -> Element:
    if isinstance(dtype, Global) and dtype.module == "torch":
        element = ELEMENTS.get(dtype.name)
        if element is not None:
            return element
    raise UnsupportedModel(f"expected a dtype of PyTorch, got {named(dtype)}")


def _marks(metadata: Value) -> dict[str, bool]:
    """Return the bits of a lazily conjugated or negated tensor."""
    if not isinstance(metadata, dict):
        return {}
    return {
        "conjugate": metadata.get("conj") is True,
        "negative": metadata.get("neg") is True,
    }


def _quantization(parameters: Value) -> Quantization | None:
    if not isinstance(parameters, tuple) or not parameters:
        raise InvalidModel(f"expected a quantizer, got {named(parameters)}")
    scheme, *values = parameters
    name = scheme.name if isinstance(scheme, Global) else ""
    if name in ("per_tensor_affine", "per_tensor_symmetric") and len(values) == 2:
        scale, zero = values
        if type(scale) is float and type(zero) is int:
            return Quantization(scale, zero)
    per_channel = ("per_channel_affine", "per_channel_affine_float_qparams")
    if name in per_channel and len(values) == 3:
        scale, zero, axis = values
        if isinstance(scale, Tensor) and isinstance(zero, Tensor) and type(axis) is int:
            return Quantization(scale, zero, axis)
    return None
