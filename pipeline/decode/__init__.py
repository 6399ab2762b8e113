"""Bytes -> change batches: the form a connector writes, MySQL's types, schemas, quarantine. No Spark, no Kafka."""

from pipeline.decode.changes import ChangeBatch, Decoded, RawRecords, SourceTable, TableSchema
from pipeline.decode.formats import decode
from pipeline.decode.options import DecodeOptions
from pipeline.decode.schemas import DeclaredSchemas, LayeredSchemas, NoSchemas, SchemaHistory, SchemaSource

__all__ = [
    "ChangeBatch",
    "DeclaredSchemas",
    "DecodeOptions",
    "Decoded",
    "LayeredSchemas",
    "NoSchemas",
    "RawRecords",
    "SchemaHistory",
    "SchemaSource",
    "SourceTable",
    "TableSchema",
    "decode",
]
