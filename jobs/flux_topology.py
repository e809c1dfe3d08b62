r"""A Flux file as a Spark application.

    (cd my_project && zip -r ../modules.zip . -i '*.py')
    spark-submit --py-files modules.zip --files my_project/values.properties jobs/flux_topology.py my_project/topology.yaml \
        [--filter values.properties] [--env-filter] [--checkpoint FOLDER] [-c key=value ...]

`modules.zip` has the classes that the file names in Python. Components in other languages, such as FluxShellBolt, are scripts
that each executor needs in its working directory: `--archives resources.zip#resources`, and `resources/script.rb` in the file.
The arguments, and the exit code, are those of `stormspark run`.
"""

import sys

from stormspark.cli import main

main(["run", *sys.argv[1:]])
