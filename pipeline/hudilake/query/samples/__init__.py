"""Rows of a table as samples for training: the complete ones, each once, batch after batch, from a position on."""

from hudilake.query.samples.batches import SampleBatch
from hudilake.query.samples.position import PositionExpiredError, SamplePosition, Shard
from hudilake.query.samples.samples import Samples

__all__ = ["PositionExpiredError", "SampleBatch", "SamplePosition", "Samples", "Shard"]
