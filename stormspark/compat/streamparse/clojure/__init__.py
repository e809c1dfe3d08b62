"""Topologies of streamparse 1 and 2, which are written in Clojure (A30, A37).

    forms          reads a file into forms, with their lines, by the reader of the library basilisp
    evaluation     evaluates forms: special forms, and functions of the file
    core           the functions of clojure.core that topologies use
    specs          the functions of the DSL: ``python-spout-spec``, ``shell-bolt-spec`` and others
    namespaces     what a file takes from elsewhere: Java classes, and other files of the project
    topologies     finds the topologies in a file
    lowering       makes a topology of the Python DSL from one of them
    scripts        finds the scripts of commands, and the component in a script of streamparse

No Clojure runs here, and no Java. The evaluation is made for what topologies compute: strings, numbers, maps, options,
environment variables. Everything else becomes a value of type `Unknown`, which has the line and the reason. `stormspark.porting`
reads topologies with the same modules.
"""

from stormspark.compat.streamparse.clojure.specs import ClojureSpec
from stormspark.compat.streamparse.clojure.topologies import ClojureFile, ClojureTopology, read_clojure
from stormspark.compat.streamparse.clojure.values import JavaValue, Keyword, Unknown

__all__ = ["ClojureFile", "ClojureSpec", "ClojureTopology", "JavaValue", "Keyword", "Unknown", "read_clojure"]
