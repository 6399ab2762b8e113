"""All tables of a stream at one moment, held against a replica of the source that stands at the same transaction."""
