r"""A streamparse project as a Spark application.

    (cd examples/streamparse_project/src && zip -r ../../../modules.zip .)
    spark-submit --py-files modules.zip jobs/streamparse_project.py examples/streamparse_project/topologies/web_requests.py \
        [--checkpoint FOLDER] [--environment NAME] [-c key=value ...]

`modules.zip` has the folder `src`, because streamparse puts that on the module path. If components open files of the project, add
`--archives project.zip#project -c stormspark.working.dir=project`, with a zip of the folder in which they expect to run.
On a cluster that starts the driver itself (`--deploy-mode cluster`), `stormspark submit` does all of this.
The arguments, and the exit code, are those of `stormspark run`.
"""

import sys

from stormspark.cli import main

main(["run", *sys.argv[1:]])
