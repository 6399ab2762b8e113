"""The order of a commit's base files, as the commit's extra metadata says it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from pydantic import ValidationError

from hudilake.errors import CorruptDataError
from hudilake.format.layout.order import Order
from hudilake.policies import OrderPolicy

#: The key of the extra metadata of a replacecommit or of a commit of a compaction that put rows into an order.
ORDER_KEY: Final = "binlake.order"


def order_extra(order: Order | None) -> dict[str, str]:
    """The extra metadata of a commit whose base files have that order; none for None."""
    if order is None:
        return {}
    return {ORDER_KEY: json.dumps({"order_by": order.policy.model_dump(mode="json"), "seed": order.seed})}


def recorded_order(extra: Mapping[str, str]) -> Order | None:
    """The order that a commit's extra metadata names, or None. Raises CorruptDataError."""
    text = extra.get(ORDER_KEY)
    if text is None:
        return None
    try:
        record = json.loads(text)
        return Order(OrderPolicy.model_validate(record["order_by"]), int(record["seed"]))
    except (ValueError, KeyError, TypeError, ValidationError) as error:
        raise CorruptDataError(
            f"a commit's extra metadata {ORDER_KEY} names no order: {text[:200]}",
            do_next="run binlake fsck; rows are read without it",
        ) from error
