"""Data-parallel training: each process computes a shard of every batch.

``Communicator``  interface of collective operations
``Mpi``           MPI, started with ``mpiexec -n 4 python train.py``
``Nccl``          NCCL, one process per GPU, started by torchrun, Slurm or MPI
``find_launch``   rank and size of this process, from launcher variables
"""

from burn.distributed.communicator import Bucket as Bucket, Communicator as Communicator
from burn.distributed.gradients import (
    average as average,
    flatten as flatten,
    share_weights as share_weights,
)
from burn.distributed.launch import Launch as Launch, find_launch as find_launch
from burn.distributed.mpi import Mpi as Mpi
from burn.distributed.nccl import Nccl as Nccl
from burn.distributed.reducer import Reducer as Reducer
