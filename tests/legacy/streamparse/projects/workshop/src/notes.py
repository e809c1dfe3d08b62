import json
import os


class Notes:
    """Lines of JSON in a file of each task."""

    def note(self, *values):
        path = os.path.join(self.storm_conf["test.folder"], f"{self.component_name}.jsonl")
        with open(path, "a") as file:
            file.write(json.dumps(values) + "\n")
