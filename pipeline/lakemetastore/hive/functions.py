"""Functions that clients register (CREATE FUNCTION). They are kept in a log of the store, and nothing runs them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from lakemetastore.errors import AlreadyExistsError, NoSuchObjectError
from lakemetastore.log.fold import StructFold, VersionedChange
from lakemetastore.log.stores.base import LogStore
from lakemetastore.log.versioned import VersionedLog

LOG = "functions"


class Function(msgspec.Struct, frozen=True, omit_defaults=True):
    """A function. ``resources``: kind (HMS's ResourceType) and location of what it is loaded from."""

    database: str
    name: str
    class_name: str
    owner: str | None = None
    owner_type: int | None = None
    created: int = 0
    kind: int = 1
    resources: tuple[tuple[int, str], ...] = ()


class FunctionPut(msgspec.Struct, frozen=True, tag="function"):
    """A function is new or has another definition."""

    function: Function


class FunctionDrop(msgspec.Struct, frozen=True, tag="function-dropped"):
    """A function is gone."""

    database: str
    name: str


FunctionChange = FunctionPut | FunctionDrop
_State = dict[str, dict[str, Function]]


class Functions:
    """The functions of a store by database and name, in lower case. Thread safe."""

    def __init__(self, store: LogStore) -> None:
        fold: StructFold[_State, FunctionChange] = StructFold(FunctionChange, _State, dict, _apply)
        self._log: VersionedLog[_State, FunctionChange] = VersionedLog(store, LOG, fold)

    def all(self) -> list[Function]:
        """All functions, ascending by database and name."""
        state = self._log.state().state
        return [state[database][name] for database in sorted(state) for name in sorted(state[database])]

    def named(self, database: str, name: str) -> Function:
        """A function. Raises NoSuchObjectError."""
        return _known(self._log.state().state, database, name)

    def create(self, function: Function) -> None:
        """Register a function. Raises AlreadyExistsError."""

        def propose(state: _State) -> FunctionChange:
            if function.name in state.get(function.database, {}):
                raise AlreadyExistsError(f"Function {function.name} already exists", do_next="choose another name")
            return FunctionPut(function)

        self._log.commit(propose)

    def alter(self, database: str, name: str, new: Function) -> None:
        """Replace a function's definition; its name and its resources stay, as in HMS. Raises NoSuchObjectError."""

        def propose(state: _State) -> FunctionChange:
            before = _known(state, database, name)
            names = {"database": before.database, "name": before.name, "resources": before.resources}
            return FunctionPut(msgspec.structs.replace(new, **names))

        self._log.commit(propose)

    def drop(self, database: str, name: str) -> None:
        """Forget a function. Raises NoSuchObjectError."""

        def propose(state: _State) -> FunctionChange:
            if name.lower() not in state.get(database.lower(), {}):
                raise NoSuchObjectError(f"Function {name} does not exist", do_next="see SHOW FUNCTIONS")
            return FunctionDrop(database.lower(), name.lower())

        self._log.commit(propose)


def _known(state: Mapping[str, Mapping[str, Function]], database: str, name: str) -> Function:
    function = state.get(database.lower(), {}).get(name.lower())
    if function is None:
        raise NoSuchObjectError(
            f"Function {database}.{name} does not exist", do_next="see SHOW FUNCTIONS", function=f"{database}.{name}"
        )
    return function


def _apply(state: _State, changes: Sequence[VersionedChange[FunctionChange]]) -> _State:
    functions = {database: dict(named) for database, named in state.items()}
    for versioned in changes:
        change = versioned.change
        if isinstance(change, FunctionPut):
            functions.setdefault(change.function.database, {})[change.function.name] = change.function
        else:
            functions.get(change.database, {}).pop(change.name, None)
    return functions
