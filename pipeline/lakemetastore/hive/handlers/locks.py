"""Locks, as PyIceberg and Spark's Iceberg take them around a commit. Transactions are not served: no table has any."""

from __future__ import annotations

from hive_metastore import ttypes

from lakemetastore.errors import NoSuchTransactionError
from lakemetastore.hive.context import Context
from lakemetastore.hive.generated import Struct
from lakemetastore.hive.lock_state import LockPart
from lakemetastore.hive.locks import Asked
from lakemetastore.hive.methods import Handler
from lakemetastore.hive.names import database_name


def lock(context: Context, args: Struct) -> Struct:
    """Ask for a lock on databases, tables or partitions."""
    request = args.rqst
    _no_transaction(request.txnid)
    parts = [_part(component) for component in request.component or ()]
    return _response(context.services.locks.take(parts, request.user or "", request.hostname or ""))


def check_lock(context: Context, args: Struct) -> Struct:
    """Whether a lock is held by now."""
    _no_transaction(args.rqst.txnid)
    return _response(context.services.locks.check(args.rqst.lockid))


def unlock(context: Context, args: Struct) -> None:
    """Release a lock."""
    context.services.locks.release(args.rqst.lockid)


def heartbeat(context: Context, args: Struct) -> None:
    """The client of a lock still lives."""
    _no_transaction(args.ids.txnid)
    if args.ids.lockid:
        context.services.locks.heartbeat(args.ids.lockid)


def show_locks(context: Context, args: Struct) -> Struct:
    """All locks, an element for each part."""
    wanted = args.rqst
    elements = [
        element
        for asked in context.services.locks.all()
        for element in _elements(asked)
        if (not wanted.dbname or element.dbname == database_name(wanted.dbname).lower())
        and (not wanted.tablename or element.tablename == wanted.tablename.lower())
        and (not wanted.partname or element.partname == wanted.partname)
    ]
    return ttypes.ShowLocksResponse(locks=elements)


def get_open_txns(context: Context, args: Struct) -> Struct:
    """The transactions that are open: none."""
    return ttypes.GetOpenTxnsResponse(txn_high_water_mark=0, open_txns=[], abortedBits=b"")


def get_open_txns_info(context: Context, args: Struct) -> Struct:
    """The transactions that are open: none."""
    return ttypes.GetOpenTxnsInfoResponse(txn_high_water_mark=0, open_txns=[])


def _no_transaction(number: int | None) -> None:
    if number:
        raise NoSuchTransactionError(f"No such transaction txnid:{number}", do_next="take locks without a transaction")


def _part(component: Struct) -> LockPart:
    return LockPart(
        kind=component.type,
        level=component.level,
        database=database_name(component.dbname).lower(),
        table=component.tablename.lower() if component.tablename else None,
        partition=component.partitionname,
    )


def _response(asked: Asked) -> Struct:
    return ttypes.LockResponse(lockid=asked.lock.id, state=_state(asked))


def _state(asked: Asked) -> int:
    state: int = ttypes.LockState.ACQUIRED if asked.waits_for is None else ttypes.LockState.WAITING
    return state


def _elements(asked: Asked) -> list[Struct]:
    lock = asked.lock
    return [
        ttypes.ShowLocksResponseElement(
            lockid=lock.id,
            dbname=part.database,
            tablename=part.table,
            partname=part.partition,
            state=_state(asked),
            type=part.kind,
            txnid=0,
            lastheartbeat=lock.heartbeat,
            acquiredat=lock.taken if asked.waits_for is None else None,
            user=lock.user,
            hostname=lock.host,
            blockedByExtId=asked.waits_for.id if asked.waits_for else None,
            lockIdInternal=number,
        )
        for number, part in enumerate(lock.parts, start=1)
    ]


CALLS: dict[str, Handler] = {
    "lock": lock,
    "check_lock": check_lock,
    "unlock": unlock,
    "heartbeat": heartbeat,
    "show_locks": show_locks,
    "get_open_txns": get_open_txns,
    "get_open_txns_req": get_open_txns,
    "get_open_txns_info": get_open_txns_info,
}
