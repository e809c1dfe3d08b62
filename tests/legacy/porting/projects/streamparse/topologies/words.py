from components.words import Count, Words
from streamparse import Grouping, Topology


class WordsAndCounts(Topology):
    words = Words.spec()
    count = Count.spec(inputs={words: Grouping.fields("word")}, par=2)
