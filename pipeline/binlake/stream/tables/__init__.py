"""What a stream does for single tables besides its batches: requests, tables fetched anew, wide tables."""
