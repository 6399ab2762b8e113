import threading

from demo.messages import Message
from demo.produce import interleave, play


def message(topic: str, partition: int, timestamp_ms: int, value: str) -> Message:
    return Message(topic, partition, timestamp_ms, None, value.encode())


def test_messages_are_interleaved_by_time_but_a_partition_keeps_its_order() -> None:
    a = [message("a", 0, 5, "1"), message("a", 0, 3, "2"), message("a", 0, 9, "3")]
    b = [message("b", 0, 4, "1"), message("b", 0, 6, "2")]
    c = [message("a", 1, 1, "1")]
    merged = list(interleave([*a, *c, *b]))
    assert [m for m in merged if (m.topic, m.partition) == ("a", 0)] == a
    assert [m for m in merged if m.topic == "b"] == b
    assert [(m.topic, m.partition, m.value) for m in merged] == [
        ("a", 1, b"1"),
        ("b", 0, b"1"),
        ("a", 0, b"1"),
        ("a", 0, b"2"),
        ("b", 0, b"2"),
        ("a", 0, b"3"),
    ]


def test_playing_sends_everything_in_order_in_several_steps() -> None:
    messages = [message("a", 0, i, str(i)) for i in range(100)]
    sent: list[list[Message]] = []
    play(messages, lambda ms: sent.append(list(ms)), 0.3, threading.Event())
    assert [m for step in sent for m in step] == messages
    assert len(sent) > 2


def test_playing_hurries_when_it_is_asked_to_stop() -> None:
    messages = [message("a", 0, i, str(i)) for i in range(100)]
    stop = threading.Event()
    stop.set()
    sent: list[Message] = []
    play(messages, sent.extend, 3600, stop)
    assert sent == messages
