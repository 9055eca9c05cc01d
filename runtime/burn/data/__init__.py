"""Data: datasets, transformations of datasets, and batch loaders.

``Memory``, ``ImageFolder``, ``Sqlite``, ...  datasets of arrays, files and tables
``Mapper``, ``Shuffled``, ``split``, ...      views of other datasets
``Loader``                                    tensor batches, with workers and resume
"""

from burn.data.augmentation import Augmented as Augmented
from burn.data.collate import (
    PaddedStack as PaddedStack,
    as_tensors as as_tensors,
    stack as stack,
)
from burn.data.dataset import Dataset as Dataset, Source as Source
from burn.data.epoch import current_epoch as current_epoch, random as random
from burn.data.folders import (
    Audio as Audio,
    ImageFolder as ImageFolder,
    Wav as Wav,
    WavFolder as WavFolder,
    channels_first as channels_first,
    read_wav as read_wav,
)
from burn.data.loader import Loader as Loader
from burn.data.memory import Memory as Memory, Zipped as Zipped
from burn.data.reading import ItemError as ItemError
from burn.data.sampler import Sampler as Sampler
from burn.data.sqlite import Sqlite as Sqlite, write_sqlite as write_sqlite
from burn.data.tables import Csv as Csv, HuggingFace as HuggingFace, Parquet as Parquet
from burn.data.views import (
    Composed as Composed,
    Mapper as Mapper,
    Partial as Partial,
    Selection as Selection,
    Shuffled as Shuffled,
    Windows as Windows,
    split as split,
)
