"""The worked example of seed document 004 (X67): XOR is zero only at the end."""

from collections.abc import Iterator

from stormspark.acker import ACKED, Ledger, SpoutAccount, Tree


def test_the_message_that_makes_0010_and_1011() -> None:
    """A message makes two tuples; bolts 1 and 2 turn each into another; bolt 3 acks both. Every task has its
    own worker.
    """
    ids: Iterator[int] = iter([0b1111, 0b0010, 0b1011, 0b0110, 0b0111])  # the root, then the edges in order
    home, bolt1, bolt2, bolt3 = (
        Ledger(worker, lambda n: [next(ids) for _ in range(n)], timeout=30) for worker in range(4)
    )
    account = SpoutAccount(task=1)

    message = Tree(account, "message", emitted_at=0.0)
    message.count = 2
    home.begin(message)
    to_bolt1, to_bolt2 = home.send({message: 1}), home.send({message: 1})
    assert message.value == 0b0010 ^ 0b1011

    values = []
    for bolt, edges in ((bolt1, to_bolt1), (bolt2, to_bolt2)):
        (part,) = bolt.receive(edges)
        part.count += 1  # the tuple that it emits, anchored
        onward = bolt.send({part: 1})
        (at_bolt3,) = bolt3.receive(onward)
        part.count -= 1  # the ack
        bolt.drained(part)
        home.take_parts(bolt.parts_to_send.pop(0))
        values.append(message.value)
        assert account.ended == []
    assert values == [0b0010 ^ 0b1011 ^ 0b0010 ^ 0b0110, 0b0110 ^ 0b0111]

    assert at_bolt3.count == 2
    at_bolt3.count -= 2  # bolt 3 acks both
    bolt3.drained(at_bolt3)
    home.take_parts(bolt3.parts_to_send.pop(0))
    assert message.value == 0
    assert account.ended == [message]
    assert message.verdict is ACKED
    for ledger in (home, bolt1, bolt2, bolt3):
        ledger.validate()
        assert ledger.statistics().parts == ledger.statistics().open == 0
