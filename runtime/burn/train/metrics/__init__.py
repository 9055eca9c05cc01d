"""Metrics of batches and epochs: ``update`` for each batch, ``compute`` at the end."""

from burn.train.metrics.classification import (
    Accuracy as Accuracy,
    FBeta as FBeta,
    MeanIoU as MeanIoU,
    Precision as Precision,
    Recall as Recall,
    TopK as TopK,
)
from burn.train.metrics.metric import (
    Array as Array,
    Batch as Batch,
    GradientNorm as GradientNorm,
    LearningRate as LearningRate,
    Loss as Loss,
    Metric as Metric,
    Perplexity as Perplexity,
    Throughput as Throughput,
)
from burn.train.metrics.ranking import AUROC as AUROC
from burn.train.metrics.regression import (
    MeanAbsoluteError as MeanAbsoluteError,
    MeanSquaredError as MeanSquaredError,
)
from burn.train.metrics.system import (
    CpuUse as CpuUse,
    GpuMemoryUse as GpuMemoryUse,
    GpuUse as GpuUse,
    MemoryUse as MemoryUse,
)
from burn.train.metrics.text import (
    CharErrorRate as CharErrorRate,
    WordErrorRate as WordErrorRate,
)
