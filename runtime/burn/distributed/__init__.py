"""Training by several processes, each of which has a share of every batch.

``Communicator``  what processes exchange arrays through
``Mpi``           by MPI, started with ``mpiexec -n 4 python train.py``
"""

from burn.distributed.communicator import Communicator as Communicator
from burn.distributed.gradients import (
    average as average,
    flatten as flatten,
    share_weights as share_weights,
)
from burn.distributed.mpi import Mpi as Mpi
