"""The limited-memory BFGS method."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from burn import ops
from burn.optim.groups import Parameters, tracked
from burn.optim.line_search import Point, strong_wolfe
from burn.tensor import Tensor, innermost

Loss = Callable[[], Tensor]


class LBFGS:
    """L-BFGS (D. Liu and J. Nocedal, 1989), as in PyTorch.

    ``step`` evaluates a closure several times; it reads scalars on the host, so it
    cannot be compiled (the closure may be).

    Args:
        parameters: a module, or parameters by path.
        lr: the step length, in units of the quasi-Newton direction.
        max_iter: the maximum number of iterations of one ``step``.
        max_eval: the maximum number of evaluations; ``5/4 * max_iter`` if None.
        tolerance_grad: stop when no element of the gradient is larger.
        tolerance_change: stop when no element of the change is larger.
        history_size: the number of stored updates.
        line_search_fn: ``"strong_wolfe"`` searches the length of each step, from
            ``lr``; None takes it as it is.

    Raises:
        ValueError: a parameter is on a backend that tracks no gradients, or
            ``line_search_fn`` is unknown.
    """

    def __init__(
        self,
        parameters: Parameters,
        lr: float = 1.0,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        if line_search_fn not in (None, "strong_wolfe"):
            raise ValueError(
                "expected line_search_fn 'strong_wolfe' or None, got "
                f"{line_search_fn!r}"
            )
        self._parameters = tracked(parameters)
        self.lr, self.max_iter = lr, max_iter
        self.max_eval = max_iter * 5 // 4 if max_eval is None else max_eval
        self.tolerance_grad, self.tolerance_change = tolerance_grad, tolerance_change
        self.history_size, self.line_search_fn = history_size, line_search_fn
        #: Changes of the gradient and of the parameters, the oldest first.
        self._history: list[tuple[Tensor, Tensor]] = []
        #: The last gradient and the last change.
        self._last: tuple[Tensor, Tensor] | None = None

    def step(self, closure: Loss) -> Tensor:
        """Return the loss before the step; ``closure`` returns a loss with its
        history.
        """
        first, grad = self._evaluate(closure)
        evaluations, value = 1, float(first)
        if _largest(grad) <= self.tolerance_grad:
            return first
        for iteration in range(1, self.max_iter + 1):
            direction, length = self._direction(grad)
            start = Point(0.0, value, float(_dot(grad, direction)), grad)
            if start.slope > -self.tolerance_change:
                break
            is_last = iteration == self.max_iter
            limit = self.max_eval - evaluations if self.line_search_fn else not is_last
            end, count = self._advance(closure, start, direction, length, int(limit))
            change = direction * end.length
            self._last = (grad, change)
            grad, value = end.gradient, end.loss
            evaluations += count
            if (
                is_last
                or evaluations >= self.max_eval
                or _largest(grad) <= self.tolerance_grad
                or _largest(change) <= self.tolerance_change
                or abs(value - start.loss) < self.tolerance_change
            ):
                break
        return first

    def _advance(
        self, closure: Loss, start: Point, direction: Tensor, length: float, limit: int
    ) -> tuple[Point, int]:
        """Move the parameters; return the point, and the number of evaluations.

        Without a line search there are at most ``limit`` of them, and the point without
        any has the loss of ``start``. A line search makes one more.
        """
        origin = [innermost(box.value) for box in self._parameters.values()]

        def evaluate(length: float) -> Point:
            self._move(origin, direction * length)
            loss, gradient = self._evaluate(closure)
            slope = float(_dot(gradient, direction))
            return Point(length, float(loss), slope, gradient)

        if self.line_search_fn is None:
            if limit:
                return evaluate(length), 1
            point, count = start._replace(length=length), 0
        else:
            shortest = self.tolerance_change / _largest(direction)
            point, count = strong_wolfe(
                evaluate, start, length, shortest=shortest, limit=limit
            )
        self._move(origin, direction * point.length)
        return point, count

    def _direction(self, grad: Tensor) -> tuple[Tensor, float]:
        """Return the descent direction, and the step length."""
        if self._last is None:
            return -grad, min(1.0, 1.0 / float(ops.sum(ops.abs(grad)))) * self.lr
        before, change = self._last
        difference = grad - before
        if float(_dot(difference, change)) > 1e-10:
            self._history.append((difference, change))
            del self._history[: -self.history_size]
        return self._newton(-grad), self.lr

    def _newton(self, q: Tensor) -> Tensor:
        """Return ``q`` times the inverse Hessian, by the two-loop recursion."""
        shares = []
        for difference, change in reversed(self._history):
            share = _dot(change, q) / _dot(difference, change)
            shares.append(share)
            q = q - difference * share
        if self._history:
            difference, change = self._history[-1]
            q = q * (_dot(difference, change) / _dot(difference, difference))
        pairs = zip(self._history, reversed(shares), strict=True)
        for (difference, change), share in pairs:
            q = q + change * (share - _dot(difference, q) / _dot(difference, change))
        return q

    def _evaluate(self, closure: Loss) -> tuple[Tensor, Tensor]:
        """Return the loss, and all gradients in one vector."""
        loss = closure()
        if not isinstance(loss, Tensor):
            kind = type(loss).__name__
            raise TypeError(f"expected a closure that returns the loss, got {kind}")
        gradients = loss.backward()
        parts = [
            (
                innermost(gradients[box]).reshape(-1)
                if box in gradients
                else innermost(box.value.detach()).reshape(-1) * 0.0
            )
            for box in self._parameters.values()
        ]
        return innermost(loss), ops.concat(parts, 0)

    def _move(self, origin: list[Tensor], change: Tensor) -> None:
        start = 0
        for box, value in zip(self._parameters.values(), origin, strict=True):
            size = int(np.prod(box.shape, dtype=np.int64))
            part = change[start : start + size].reshape(box.shape)
            box.set(value + part)
            start += size

    def state_dict(self) -> dict[str, Tensor]:
        """Return ``differences`` and ``changes`` [pairs, N], ``grad`` and ``change``
        [N].

        N is the number of elements of all parameters. Empty before the first step.
        """
        if self._last is None:
            return {}
        state = {"grad": self._last[0], "change": self._last[1]}
        if self._history:
            state["differences"] = ops.stack([pair[0] for pair in self._history], 0)
            state["changes"] = ops.stack([pair[1] for pair in self._history], 0)
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Set the history from :meth:`state_dict`, tensors or arrays by key."""
        device = next(iter(self._parameters.values())).held()
        like = innermost(device).backend
        values = {
            key: Tensor(like.from_numpy(np.array(v)), like) for key, v in state.items()
        }
        self._last = (values["grad"], values["change"]) if values else None
        pairs = (values.get("differences", ()), values.get("changes", ()))
        self._history = list(zip(*pairs, strict=True))


def _dot(x: Tensor, y: Tensor) -> Tensor:
    return ops.sum(x * y)


def _largest(x: Tensor) -> float:
    return float(ops.max(ops.abs(x)))
