"""Training by several processes, each of which has a share of every batch.

``Communicator``  what processes exchange arrays through
``Mpi``           by MPI, started with ``mpiexec -n 4 python train.py``
``Nccl``          by NCCL, one process for each GPU, started by torchrun, Slurm or MPI
``find_launch``   the place of this process, from the variables of launchers
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
