"""NCCL with one process on a GPU."""

import numpy as np
import pytest

from burn import Autodiff, data, loss, nn, optim, train
from burn.distributed import Communicator, Nccl
from tests.runtime.distributed import job

pytestmark = pytest.mark.cuda
pytest.importorskip("cupy")
pytest.importorskip("nccl.core", reason="could not import 'nccl.core'")


@pytest.fixture(scope="module")
def comm() -> Communicator:
    return Nccl()


def test_collectives_of_one_process(comm: Communicator) -> None:
    array = np.arange(5, dtype=np.float32)
    np.testing.assert_array_equal(comm.all_reduce(array), array)
    np.testing.assert_array_equal(comm.broadcast(array), array)
    np.testing.assert_array_equal(comm.all_gather(array), array[None])
    comm.barrier()


@pytest.mark.parametrize("bucket_mb", [25.0, 1e-4])
def test_one_process_trains_as_without(comm: Nccl, bucket_mb: float) -> None:
    def fit(communicator: Nccl | None) -> dict[str, np.ndarray]:
        nn.init.seed(0)
        model = job.Net().to(Autodiff(comm.device))
        opt = optim.AdamW(model, lr=0.02)
        step = train.step(model, opt, communicator=communicator, bucket_mb=bucket_mb)(
            lambda x, y: loss.cross_entropy(model(x), y)
        )
        loader = data.Loader(job.items(), batch=16, shuffle=1, backend=comm.device)
        for _ in range(job.EPOCHS):
            for batch in loader:
                step(*batch)
        assert not step.notes
        return {name: value.numpy() for name, value in model.state_dict().items()}

    expected = fit(None)
    for name, value in fit(comm).items():
        np.testing.assert_allclose(value, expected[name], rtol=0, atol=1e-5)
