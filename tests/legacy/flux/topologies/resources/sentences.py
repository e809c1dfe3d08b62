"""A spout: three sentences, so many times as its configuration says; what fails is said again."""

from talk import hear, say, shake_hands  # type: ignore[import-not-found]

SENTENCES = ["the wind blows", "the rain falls", "the sun shines again"]
todo = list(enumerate(SENTENCES * shake_hands()["sentences.times"]))
open_ones = {}
while True:
    message = hear()
    if message["command"] == "next" and todo:
        number, sentence = todo.pop(0)
        open_ones[number] = sentence
        say(command="emit", id=number, tuple=[sentence], need_task_ids=False)
    elif message["command"] == "ack":
        open_ones.pop(message["id"], None)
    elif message["command"] == "fail":
        todo.append((message["id"], open_ones.pop(message["id"])))
    say(command="sync")
