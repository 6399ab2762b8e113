"""Bytes: row packets cut into cells, cells laid out as canonical rows, their digests and the sums of digests."""
