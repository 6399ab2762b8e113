"""The walker finds the end of every struct of the service, and every name in it, however its bytes come."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hive_metastore.ttypes import Partition
from thrift.Thrift import TType

from lakemetastore.hive.generated import arguments_class, result_class
from lakemetastore.hive.message import encode
from lakemetastore.router.methods import METHODS
from lakemetastore.router.name_fields import (
    CATALOG,
    DATABASE,
    FULL_NAME,
    NameFields,
    argument_names,
    result_names,
)
from lakemetastore.router.walker import MalformedAnswerError, Walk, names_in
from tests.hypothesis_profile import scaled

_TEXTS = ("", "a", "sales", "größe", "x" * 300)


def value(wire_type: int, argument: Any, chance: random.Random, depth: int) -> Any:  # noqa: ANN401 - generated
    """A random value of a type of the generated classes."""
    if wire_type == TType.STRING:
        text = chance.choice(_TEXTS)
        return text.encode() if argument == "BINARY" else text
    if wire_type == TType.STRUCT:
        return filled(argument[0], chance, depth + 1)
    if wire_type in (TType.LIST, TType.SET):
        count = 0 if depth > 6 else chance.randrange(4)
        values = [value(argument[0], argument[1], chance, depth) for _ in range(count)]
        return values if wire_type == TType.LIST else {v for v in values if not isinstance(v, list)}
    if wire_type == TType.MAP:
        count = 0 if depth > 6 else chance.randrange(3)
        if argument[0] not in (TType.STRING, TType.I32, TType.I64):
            count = 0  # keys that are lists cannot be in a dict
        return {
            value(argument[0], argument[1], chance, depth): value(argument[2], argument[3], chance, depth)
            for _ in range(count)
        }
    if wire_type == TType.DOUBLE:
        return 1.5
    return bool(chance.getrandbits(1)) if wire_type == TType.BOOL else chance.randrange(100)


def filled(kind: type, chance: random.Random, depth: int = 0) -> Any:  # noqa: ANN401 - generated
    """A struct some of whose fields are set."""
    specs = [spec for spec in kind.thrift_spec or () if spec]  # type: ignore[attr-defined]
    chosen = [spec for spec in specs if depth == 0 or chance.random() < (0.7 if depth < 5 else 0.1)]
    return kind(**{spec[2]: value(spec[1], spec[3], chance, depth) for spec in chosen})


def structs(chance: random.Random) -> list[Any]:
    kinds = [arguments_class(method) for method in METHODS]
    kinds += [kind for method in METHODS if (kind := result_class(method)) is not None]
    return [filled(kind, chance) for kind in kinds]


@pytest.mark.parametrize("seed", range(scaled(20, least=2)))
def test_the_end_of_every_struct_is_found_in_pieces_of_any_size(seed: int) -> None:
    chance = random.Random(seed)
    for struct in structs(chance):
        data = encode(struct)
        stream = data + b"the next message"
        walk, at = Walk(), 0
        while not walk.done:
            piece = stream[at : at + chance.choice((1, 3, 17, 1000, 100_000))]
            assert piece, f"{type(struct).__name__} has no end"
            at += walk.take(piece)
        assert at == len(data), type(struct).__name__


def expected_names(struct: Any, fields: NameFields, number: int = 0) -> list[str]:  # noqa: ANN401 - generated
    """The names in a struct, by its fields as objects, in the order of the bytes."""
    found = []
    for spec in filter(None, type(struct).thrift_spec or ()):
        part = getattr(struct, spec[2])
        child = int(fields.children[number, spec[0]])
        if part is None or child == -1:
            continue
        for item in _leaves(part):
            if child in (DATABASE, CATALOG, FULL_NAME):
                found.append(item)
            else:
                found += expected_names(item, fields, child)
    return found


def _leaves(part: Any) -> list[Any]:  # noqa: ANN401 - generated
    if isinstance(part, (list, set)):
        return [leaf for item in part for leaf in _leaves(item)]
    if isinstance(part, dict):
        return [leaf for item in part.values() for leaf in _leaves(item)]
    return [part]


@pytest.mark.parametrize("seed", range(scaled(20, least=2)))
def test_the_names_are_those_of_the_decoded_structs(seed: int) -> None:
    chance = random.Random(seed)
    names = 0
    for method in METHODS:
        for kind, fields in (
            (arguments_class(method), argument_names(method)),
            (result_class(method), result_names(method)),
        ):
            if kind is None or fields is None:
                continue
            struct = filled(kind, chance)
            data = encode(struct)
            found = [data[at : at + length].decode() for at, length, _ in names_in(data, fields)]
            assert found == expected_names(struct, fields), kind.__name__
            names += len(found)
    assert names > 100


def test_more_names_than_there_is_room_for_at_first() -> None:
    arguments = arguments_class("add_partitions")(new_parts=[Partition(dbName=f"db{i}") for i in range(1000)])
    data = encode(arguments)
    found = names_in(data, argument_names("add_partitions"))
    assert [data[at : at + length] for at, length, _ in found] == [b"db%d" % i for i in range(1000)]


@pytest.mark.parametrize(
    "data",
    [b"\x63\x00\x01\x00", b"\x0b\x00\x01\xff\xff\xff\xff", b"\x0f\x00\x01\x0b\x80\x00\x00\x00", b"\x0c\x00\x01" * 200],
)
def test_bytes_that_are_no_struct_are_told(data: bytes) -> None:
    with pytest.raises(MalformedAnswerError, match="no struct of Thrift's binary protocol"):
        Walk().take(data)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(scaled(20, least=2)))
def test_damaged_bytes_end_the_walk_or_want_more_bytes(seed: int) -> None:
    chance = random.Random(seed)
    methods = list(METHODS)
    for _ in range(300):
        method = chance.choice(methods)
        data = bytearray(encode(filled(arguments_class(method), chance)))
        for _ in range(chance.randrange(1, 6)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        if chance.random() < 0.3:
            data = data[: chance.randrange(1, len(data) + 1)]
        whole, pieces = Walk(argument_names(method)), Walk()
        ends = []
        for walk, size in ((whole, len(data)), (pieces, chance.choice((1, 2, 9)))):
            at = 0
            try:
                while at < len(data) and not walk.done:
                    at += walk.take(bytes(data[at : at + size]))
                ends.append((walk.done, at))
            except MalformedAnswerError:
                ends.append((False, -1))
        assert ends[0] == ends[1], "the same end, however the bytes come"
        assert all(at <= len(data) for _, at in ends)
