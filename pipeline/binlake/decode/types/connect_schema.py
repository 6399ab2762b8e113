"""Kafka Connect's JSON schemas (``schemas.enable=true``): the ``schema`` beside a ``payload``."""

from __future__ import annotations

from functools import lru_cache

import msgspec


class ConnectField(msgspec.Struct, frozen=True, eq=False):
    """One schema node: a Connect type, its logical name, and the fields when it is a struct. Compared by identity."""

    type: str
    name: str | None = None
    field: str = ""
    parameters: dict[str, str] = msgspec.field(default_factory=dict)
    fields: tuple[ConnectField, ...] = ()

    def child(self, name: str) -> ConnectField | None:
        """The struct's field of that name."""
        return next((f for f in self.fields if f.field == name), None)

    def row_fields(self, flat_prefix: str | None) -> tuple[ConnectField, ...]:
        """The columns: the fields of ``after`` in an envelope, else (flat) the fields without the prefix."""
        if flat_prefix is None:
            image = self.child("after")
            return image.fields if image is not None else ()
        return tuple(f for f in self.fields if not f.field.startswith(flat_prefix))


_DECODER = msgspec.json.Decoder(ConnectField)


@lru_cache(maxsize=512)
def parse_connect_schema(text: bytes) -> ConnectField:
    """The schema's JSON text -> its root. Raises msgspec.MsgspecError or RecursionError if it is not a schema."""
    return _DECODER.decode(text)
