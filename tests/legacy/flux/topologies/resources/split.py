"""A bolt: words on the default stream, their number on another one."""

from talk import hear, say, shake_hands  # type: ignore[import-not-found]

shake_hands()
while True:
    message = hear()
    if message["stream"] == "__heartbeat":
        say(command="sync")
        continue
    words = message["tuple"][0].split()
    for word in words:
        say(command="emit", tuple=[word], anchors=[message["id"]], need_task_ids=False)
    say(command="emit", tuple=[len(words)], stream="lengths", anchors=[message["id"]], need_task_ids=False)
    say(command="ack", id=message["id"])
