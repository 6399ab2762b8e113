"""Rows of a table as samples for training: the complete ones, each once, batch after batch, from a position on."""

from hudilake.query.samples.batches import SampleBatch
from hudilake.query.samples.position import Position, PositionExpiredError, Shard
from hudilake.query.samples.samples import Samples

__all__ = ["Position", "PositionExpiredError", "SampleBatch", "Samples", "Shard"]
