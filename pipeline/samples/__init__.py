"""Rows of a table as samples for training: the complete ones, each once, batch after batch, from a position on."""

from pipeline.samples.batches import SampleBatch
from pipeline.samples.position import Position, PositionExpiredError, Shard
from pipeline.samples.samples import Samples

__all__ = ["Position", "PositionExpiredError", "SampleBatch", "Samples", "Shard"]
