LINES = [
    "one fish two fish",
    "red fish blue fish",
    "this one has a little star",
    "this one has a little car",
    "say what a lot of fish there are",
]
