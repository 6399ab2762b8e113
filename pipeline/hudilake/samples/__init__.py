"""Rows of a table as samples for training: the complete ones, each once, batch after batch, from a position on."""

from hudilake.samples.batches import SampleBatch
from hudilake.samples.position import Position, PositionExpiredError, Shard
from hudilake.samples.samples import Samples

__all__ = ["Position", "PositionExpiredError", "SampleBatch", "Samples", "Shard"]
