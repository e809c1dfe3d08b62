"""`stormspark submit`: the command of spark-submit, what it ships, and what is refused before anything is sent."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from stormspark import spark
from stormspark.cli import main
from stormspark.hidden_secrets import without_secrets
from stormspark.working_folder import SHIPPED_PROJECT
from tests.unit.cli.topology_file import write_topology
from tests.waiting import PATIENCE_SECS, wait_for

SPARK_SUBMIT = """#!/bin/sh
for argument in "$@"; do echo "$argument"; done > "$ARGUMENTS"
exit 3
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Be in a project with a topology, a file that is no module, and what nobody would ship."""
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    write_topology(folder / "flow.py", "flow", {"topology.workers": 1, "spark.executor.memory": "2g"})
    for name in ("data/words.txt", ".git/config", "env/pyvenv.cfg", "env/module.py", "__pycache__/flow.pyc",
                 "kept/stormspark/control.json", "kept/spark/metadata", "run.log"):  # fmt: skip
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    (folder / "script.rb").write_text("#!/usr/bin/ruby")
    (folder / "script.rb").chmod(0o755)
    return folder


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A Spark whose spark-submit writes its arguments into a file, and ends with exit code 3."""
    program = tmp_path / "home" / "bin" / "spark-submit"
    program.parent.mkdir(parents=True)
    program.write_text(SPARK_SUBMIT)
    program.chmod(0o755)
    monkeypatch.setenv("SPARK_HOME", str(program.parents[1]))
    monkeypatch.setenv("ARGUMENTS", str(tmp_path / "arguments"))
    for name in ("SPARK_CONF_DIR", "SPARK_SUBMIT_OPTS", "SPARK_EXECUTOR_MEMORY", "SPARK_EXECUTOR_CORES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HADOOP_CONF_DIR", "/etc/hadoop/conf")
    monkeypatch.setattr(spark, "require_java", lambda: None)
    monkeypatch.setattr("socket.create_connection", lambda *_, **__: SimpleNamespace(close=lambda: None))
    return program.parents[1]


def submitted(*arguments: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(main, ["submit", *arguments], catch_exceptions=False)
    return done.exit_code, done.stdout.replace("\\\n", ""), " ".join(done.stderr.split())


OVERHEAD = "spark.executor.memoryOverhead"
KUBERNETES = ("--master", "k8s://https://host:6443", "--deploy-mode", "cluster", "--checkpoint", "s3a://flow",
              "-c", "spark.kubernetes.file.upload.path=s3a://submitted",
              "-c", "spark.kubernetes.container.image=flow:1")  # fmt: skip
YARN = ("--master", "yarn", "--deploy-mode", "cluster", "--checkpoint", "hdfs:///flow")


def test_the_command_for_a_cluster(project, home, tmp_path):
    staging = tmp_path / "staging"
    code, printed, said = submitted(
        "flow.py:build", *YARN, "--staging", str(staging), "--dry-run", "--workers", "4",
        "-c", "topology.debug=true", "-c", 'my.key="2"', "--seconds", "5", "--allow", "nothing-done",
        "--executor-memory", "4g", "--packages", "g:a:1", "--archives", "hdfs:///more.zip#more",
    )  # fmt: skip
    assert code == 0, said
    assert f"ships {project}: 3 files" in said
    assert shlex.split(printed) == [
        f"{home}/bin/spark-submit", "--master", "yarn", "--deploy-mode", "cluster", "--name", "flow",
        "--py-files", f"{staging}/modules.zip",
        "--archives", f"{staging}/project.zip#{SHIPPED_PROJECT},hdfs:///more.zip#more",
        "--conf", "spark.executor.memory=4g", "--conf", "spark.executor.memoryOverhead=1000m",
        "--conf", "spark.jars.packages=g:a:1",
        f"{staging}/stormspark_job.py", "run", "flow.py:build", "--workers", "4", "--seconds", "5.0",
        "--checkpoint", "hdfs:///flow", "--trigger", "continuous", "--allow", "nothing-done",
        "-c", "topology.debug=true", "-c", 'my.key="2"',
    ]  # fmt: skip
    assert (staging / "stormspark_job.py").read_text().endswith("\nrun_submitted()\n")
    with zipfile.ZipFile(staging / "project.zip") as archive:
        assert archive.namelist() == ["data/words.txt", "flow.py", "script.rb"]
        assert archive.getinfo("script.rb").external_attr >> 16 & 0o111, "scripts stay executable"
    assert zipfile.ZipFile(staging / "modules.zip").namelist() == ["flow.py"]


def test_the_driver_here_logs_warnings_unless_somebody_has_said_what_it_logs(project, home, monkeypatch):
    """On this terminal, where the topology's own lines are. The cluster's logs stay as they are."""
    here = ("flow.py", "--master", "spark://127.0.0.1:7077", "--dry-run")
    assert "--conf spark.log.level=WARN" in submitted(*here)[1]
    assert "spark.log.level" not in submitted("flow.py", *YARN, "--dry-run")[1]
    assert "--conf spark.log.level=DEBUG" in submitted(*here, "-c", "spark.log.level=DEBUG")[1]
    monkeypatch.setenv("SPARK_SUBMIT_OPTS", "-Dlog4j2.configurationFile=/etc/log4j2.properties")
    assert "spark.log.level" not in submitted(*here)[1]
    monkeypatch.delenv("SPARK_SUBMIT_OPTS")
    (home / "conf").mkdir()
    (home / "conf" / "log4j2.properties").touch()
    assert "spark.log.level" not in submitted(*here)[1]


def test_executors_get_room_for_their_workers(project, home):
    """Where nothing limits a container, nothing is added; what the user has set stays, with a warning if it is too little."""
    cluster = ("--workers", "4", "--dry-run", "--checkpoint", "hdfs:///flow")
    _, printed, said = submitted("flow.py", *YARN, *cluster, "--num-executors", "4")
    assert "spark.executor.memoryOverhead=800m" in printed
    assert "spark.executor.memoryOverhead" not in said
    _, printed, said = submitted("flow.py", *YARN, *cluster, "-c", "spark.executor.memoryOverhead=500m")
    assert "spark.executor.memoryOverhead=500m" in printed
    assert "but spark.executor.memoryOverhead is 500m: the cluster may kill it; set" in said
    assert "each executor has 2 workers, but spark.executor.cores is 1" in said
    _, printed, _ = submitted("flow.py", "--master", "spark://127.0.0.1:7077", "--workers", "4", "--dry-run")
    assert "memoryOverhead" not in printed


def overhead(home, *options: str, defaults: str = "", workers: str | None = "4") -> str:
    """The overhead in the command for Kubernetes, and what is said of it."""
    (home / "conf").mkdir(exist_ok=True)
    (home / "conf" / "spark-defaults.conf").write_text(defaults)
    options = (*options, *(() if workers is None else ("--workers", workers)))
    code, printed, said = submitted("flow.py", *KUBERNETES, *options, "--dry-run")
    assert code == 0, said
    found = [word.partition("=")[2] for word in shlex.split(printed) if word.startswith(f"{OVERHEAD}=")]
    return f"{' '.join(found) or 'unset'}; {'too little' if 'the cluster may kill it' in said else 'enough'}"


def test_without_a_number_of_workers_there_is_room_for_those_of_the_requested_executors(project, home):
    """The driver will plan with these cores. One of the two executors has as many workers as it runs tasks at once."""
    write_topology(project / "flow.py", "flow", {}, tasks=8)
    three = ("--num-executors", "2", "--executor-cores", "3")
    given = overhead(home, *three, workers="6")
    assert given == "1500m; enough"
    assert overhead(home, *three, workers=None) == given
    growing = ("-c", "spark.dynamicAllocation.enabled=true", "-c", "spark.dynamicAllocation.minExecutors=2")
    assert overhead(home, *growing, "--executor-cores", "3", workers=None) == given


@pytest.mark.parametrize(
    ("defaults", "found"),
    [
        ("", "1000m; enough"),
        ("spark.executor.memoryOverhead 2g\n", "unset; enough"),
        ("spark.executor.memoryOverhead=500m\n", "unset; too little"),
        ("spark.executor.memoryOverheadFactor 0.9\n", "unset; enough"),
        ("spark.executor.memoryOverheadFactor 0.1\n", "unset; too little"),
        ("spark.kubernetes.memoryOverheadFactor 0.1\n", "unset; too little"),
        ("spark.executor.minMemoryOverhead 3g\n", "unset; enough"),
        ("spark.executor.instances 1\n", "1450m; enough"),
        ("spark.executor.cores 2\n", "1150m; enough"),
    ],
)
def test_what_is_set_for_all_programs_counts(project, home, defaults, found):
    """The topology itself sets 2 GB for the heap, and there are 2 executors unless something else is said."""
    assert overhead(home, defaults=defaults) == found


def test_no_container_gets_smaller_than_spark_makes_it(project, home):
    """On Kubernetes, a driver that Spark starts there requests 0.4 of the heap, and a driver from here requests a tenth."""
    write_topology(project / "flow.py", "flow", {})
    assert overhead(home, defaults="spark.executor.memory 4g") == "unset; enough"
    assert overhead(home, "--executor-memory", "4g") == "unset; enough"
    assert overhead(home, "--executor-memory", "4g", "--deploy-mode", "client") == "1000m; enough"
    assert overhead(home, "--executor-memory", "40g", "--deploy-mode", "client") == "4700m; enough"


def test_what_is_shipped_for_all_programs_is_shipped_too(project, home):
    """spark-submit takes its options in place of these settings."""
    (home / "conf").mkdir()
    lines = "spark.submit.pyFiles hdfs:///all.zip\nspark.archives hdfs:///all.tgz#all\n"
    (home / "conf" / "spark-defaults.conf").write_text(
        f"{lines}spark.kubernetes.file.upload.path s3a://b/c\n"
    )
    code, printed, said = submitted("flow.py", *KUBERNETES[:6], *KUBERNETES[8:], "--dry-run")
    words = shlex.split(printed)
    assert code == 0, said
    assert words[words.index("--py-files") + 1].endswith("/modules.zip,hdfs:///all.zip")
    assert words[words.index("--archives") + 1].endswith(f"#{SHIPPED_PROJECT},hdfs:///all.tgz#all")


def test_the_same_project_is_the_same_archive(project, home, tmp_path):
    for name in ("one", "two"):
        submitted("flow.py", *YARN, "--staging", str(tmp_path / name), "--dry-run")
    assert (tmp_path / "one" / "project.zip").read_bytes() == (tmp_path / "two" / "project.zip").read_bytes()


def test_spark_submit_runs_and_its_exit_code_is_that_of_the_command(project, home, tmp_path):
    code, _, said = submitted("flow.py", "--master", "yarn")
    assert (code, "Warning" in said) == (3, False)
    arguments = (tmp_path / "arguments").read_text().split("\n")
    assert arguments[:4] == ["--master", "yarn", "--deploy-mode", "client"]
    archives = arguments[arguments.index("--archives") + 1]
    assert not Path(archives.partition("#")[0]).exists(), "the archives are removed at the end"


def test_a_streamparse_project_is_shipped_whole_with_both_folders_of_modules(home, tmp_path, monkeypatch):
    examples = Path(__file__).parents[3] / "examples" / "streamparse_project"
    monkeypatch.chdir(tmp_path)
    staging = tmp_path / "staging"
    code, printed, said = submitted(
        f"{examples}/topologies/web_requests.py", *YARN, "--staging", str(staging), "--dry-run"
    )
    assert code == 0, said
    assert "run topologies/web_requests.py" in printed
    assert "config.json" in zipfile.ZipFile(staging / "project.zip").namelist()
    assert {"bolts.py", "spouts.py"} < set(zipfile.ZipFile(staging / "modules.zip").namelist())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--master", "spark://host:7077", "--deploy-mode", "cluster"), "starts no drivers in Python"),
        (("--master", "local[2]", "--deploy-mode", "cluster"), "has no cluster to start the driver on"),
        (("--master", "yarn", "--deploy-mode", "cluster", "--checkpoint", "kept"), "give a URL that the cluster can write to"),
        ((*YARN, "--project", "data"), "is not in the project"),
        ((*KUBERNETES[:6], *KUBERNETES[8:]), "-c spark.kubernetes.file.upload.path="),
        (KUBERNETES[:8], "none is named: give -c spark.kubernetes.container.image=IMAGE"),
        ((*KUBERNETES[:8], "-c", "spark.kubernetes.driver.container.image=flow:1"), "none is named"),
        (("--master", "k8s://https://host:6443"), "none is named"),
        (("--master", "yran", "--dry-run"), "did you mean yarn?"),
        (("--deploy-mode", "cluster"), "Missing option '--master'"),
    ],
)  # fmt: skip
def test_what_a_cluster_would_refuse_is_told_before_anything_is_sent(project, home, tmp_path, options, words):
    code, _, said = submitted("flow.py", *options)
    assert code == 2 and words in said.replace("│", ""), said
    assert not (tmp_path / "arguments").exists()


def test_without_the_files_of_yarn_nothing_is_sent_to_it(project, home, monkeypatch, tmp_path):
    """The command may be printed for another host."""
    monkeypatch.delenv("HADOOP_CONF_DIR")
    monkeypatch.delenv("YARN_CONF_DIR", raising=False)
    code, _, said = submitted("flow.py", *YARN)
    assert code == 2 and "such as export HADOOP_CONF_DIR=/etc/hadoop/conf" in said, said
    assert not (tmp_path / "arguments").exists()
    assert submitted("flow.py", *YARN, "--dry-run")[0] == 0
    (home / "conf").mkdir()
    (home / "conf" / "spark-env.sh").touch()  # which may set the variable
    assert submitted("flow.py", *YARN)[0] == 3


def test_on_kubernetes_driver_and_executors_may_have_images_of_their_own(project, home):
    images = [f"-cspark.kubernetes.{side}.container.image=flow:1" for side in ("executor", "driver")]
    assert submitted("flow.py", *KUBERNETES[:-2], *images, "--dry-run")[0] == 0
    assert submitted("flow.py", "--master", "k8s://https://host:6443", images[0], "--dry-run")[0] == 0


def test_a_topology_that_cannot_run_is_told_before_anything_is_sent(project, home, tmp_path):
    (project / "flow.py").write_text("def build(): return None\n")
    code, _, said = submitted("flow.py", *YARN)
    assert code == 2 and "returns None" in said
    assert not (tmp_path / "arguments").exists()


def test_without_a_checkpoint_a_warning_says_what_a_restart_loses(project, home):
    said = submitted("flow.py", "--master", "yarn", "--deploy-mode", "cluster", "--dry-run")[2]
    assert "without --checkpoint, a topology that the cluster starts again begins from nothing" in said


def test_a_project_that_is_too_large_names_its_largest_files(project, home, monkeypatch):
    from stormspark.cli import project_files

    monkeypatch.setattr(project_files, "_MOST_BYTES", 100)
    code, _, said = submitted("flow.py", *YARN)
    assert code == 2 and "the largest are flow.py" in said and "(--project)" in said


def test_names_with_spaces_and_umlauts(project, home, tmp_path):
    """Spark would take a space in an archive's path for the end of all that it knows of URLs, and # for the end of a path."""
    (project / "Grüße").mkdir()
    (project / "Grüße" / "an alle, und.txt").touch()
    staging = tmp_path / "bühne, #1"
    code, printed, said = submitted("flow.py:build", *YARN, "--staging", str(staging), "--dry-run")
    assert code == 0, said
    words = shlex.split(printed)
    place = f"{tmp_path.as_uri()}/b%C3%BChne%2C%20%231"
    assert words[words.index("--archives") + 1] == f"{place}/project.zip#{SHIPPED_PROJECT}"
    assert words[words.index("--py-files") + 1] == f"{place}/modules.zip"
    assert words[words.index("run") - 1] == f"{place}/stormspark_job.py"
    with zipfile.ZipFile(staging / "project.zip") as archive:
        assert "Grüße/an alle, und.txt" in archive.namelist()


def test_secrets_are_not_printed_and_files_with_secrets_are_named(project, home, tmp_path):
    for name in (".env", "client.pem", "data/credentials.json", "secrets.py", "keys.txt"):
        (project / name).touch()
    secret = ("-c", "kafka.sasl.password=tops3cret", "-c", "spark.hadoop.fs.s3a.secret.key=tops3cret")
    _, printed, said = submitted("flow.py", "--master", "yarn", *secret)
    assert "tops3cret" not in printed + said and "kafka.sasl.password=***" in printed
    assert "tops3cret" in (tmp_path / "arguments").read_text()
    assert "every host gets client.pem, data/credentials.json, which may be secret" in said
    assert "Warning: secrets whose names begin with a dot are not shipped: .env " in f"{said} "
    assert "tops3cret" in submitted("flow.py", "--master", "yarn", *secret, "--dry-run")[1], (
        "to be run by hand"
    )


def test_folders_of_secrets_are_named_and_links_out_of_the_project_are_not_followed(project, home, tmp_path):
    """Nobody who ships a link means to send a file of /etc, or of somebody's home, to all hosts."""
    for name in ("secrets/db.txt", "secrets/mail/a.txt", "id_rsa.old", "prod.env", "client_secret_1.json", "a.key", "b.key",
                 ".aws/credentials", ".env", ".config/gcloud/credentials.db"):  # fmt: skip
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).touch()
    (tmp_path / "outside").write_text("mine alone")
    for name, target in (
        ("notes.txt", tmp_path / "outside"),
        ("mine.txt", project / ".env"),
        ("data.txt", project / ".config" / "gcloud" / "credentials.db"),
        ("flow.yaml", "flow.py"),
    ):
        (project / name).symlink_to(target)  # fmt: skip
    staging = tmp_path / "staging"
    code, _, said = submitted("flow.py", *YARN, "--staging", str(staging), "--dry-run")
    with zipfile.ZipFile(staging / "project.zip") as archive:
        names = archive.namelist()
    assert (
        code == 0 and "flow.yaml" in names and not {"notes.txt", "mine.txt", "data.txt", ".env"} & set(names)
    )
    assert (
        "every host gets a.key, b.key, client_secret_1.json, id_rsa.old, prod.env, ..., which may be" in said
    )
    assert "Warning: links that lead out of the project are not shipped: notes.txt" in said
    assert "secrets whose names begin with a dot are not shipped: .aws, .env, data.txt, mine.txt" in said


def test_a_submission_that_fails_leaves_no_folder(project, home, tmp_path, monkeypatch):
    """Also one that only prints the command, whose archives stay otherwise."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("stormspark.cli.project_files._MOST_BYTES", 1)
    for staging in ((), ("--staging", str(tmp_path / "new" / "staging"))):
        code, _, said = submitted("flow.py", *YARN, *staging, "--dry-run")
        assert code == 2 and "too much to send" in said
    assert not (tmp_path / "new").exists()
    assert list((tmp_path / "temporary").iterdir()) == []
    kept = tmp_path / "kept"
    kept.mkdir()
    submitted("flow.py", *YARN, "--staging", str(kept), "--dry-run")
    assert kept.exists(), "it was there before"


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("-c", "spark.hadoop.fs.azure.account.key.me.dfs.core.windows.net=PW"),
        ("-c", "spark.hadoop.fs.gs.auth.service.account.private.key=PW"),
        ("-c", "spark.hadoop.fs.azure.sas.box.me.blob.core.windows.net=PW"),
        ("-c", "spark.executor.extraJavaOptions=-Xss4m -Djavax.net.ssl.keyStorePassword=PW"),
        ("--driver-java-options", "-Djavax.net.ssl.keyStorePassword=PW"),
        ("--repositories", "https://me:PW@host/maven"),
        ("-c", 'kafka={"sasl.password": "PW"}'),
        ("-c", "db=jdbc:postgresql://host/db?user=me&password=PW"),
        ("-c", "input=wasbs://box@me.blob.core.windows.net/in?sv=1&sig=PW"),
        ("--py-files", "https://me:PW@host/all.zip"),
        ("--archives", "https://me:PW@host/all.zip#all"),
        ("--checkpoint", "ftp://me:PW@host/flow"),
    ],
)
def test_a_secret_is_known_by_its_name_or_by_its_value(option, value):
    printed = without_secrets(COMMANDS[option](option, value))
    assert "PW" not in "".join(printed), printed
    assert printed[-2:] == ["-c", "n=1"]


COMMANDS = {
    "-c": lambda _, value: ["spark-submit", "--conf", value, "-c", "n=1"],
    "--driver-java-options": lambda _, value: [
        "--conf",
        f"spark.driver.extraJavaOptions={value}",
        "-c",
        "n=1",
    ],
    "--repositories": lambda _, value: ["--conf", f"spark.jars.repositories={value}", "-c", "n=1"],
    "--py-files": lambda option, value: [option, f"/tmp/modules.zip,{value}", "-c", "n=1"],
    "--archives": lambda option, value: [option, f"/tmp/project.zip#project,{value}", "-c", "n=1"],
    "--checkpoint": lambda option, value: ["run", "flow.py", option, value, "-c", "n=1"],
}


def test_what_is_no_secret_is_printed():
    words = [
        "/opt/spark/bin/spark-submit", "--master", "k8s://https://host:6443", "--archives", "/home/me/token-app/project.zip#p",
        "--conf", "spark.executor.extraJavaOptions=-Dlog=a:b", "--conf", "spark.kubernetes.file.upload.path=s3a://bucket/up",
        "run", "flow.py:build", "--checkpoint", "abfss://box@me.dfs.core.windows.net/flow", "-c", 'keys.of="sasquatch"',
    ]  # fmt: skip
    assert without_secrets(words) == words


def test_only_the_user_reads_the_archives(project, home, tmp_path):
    staging = tmp_path / "staging"
    staging.mkdir()
    (staging / "project.zip").write_text("an older one")
    (staging / "project.zip").chmod(0o644)
    assert submitted("flow.py", *YARN, "--staging", str(staging), "--dry-run")[0] == 0
    assert {(staging / f"{name}.zip").stat().st_mode & 0o777 for name in ("project", "modules")} == {0o600}
    assert sorted(path.name for path in staging.iterdir()) == [
        "modules.zip",
        "project.zip",
        "stormspark_job.py",
    ]


def test_a_signal_while_the_project_is_packed_leaves_nothing(project, home, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("stormspark.cli.submit.pack", lambda *_: signal.raise_signal(signal.SIGTERM))
    assert submitted("flow.py", *YARN)[0] == 143
    assert list((tmp_path / "temporary").iterdir()) == []


def test_a_package_named_build_is_shipped_and_a_link_to_a_folder_is_not(project, home, tmp_path):
    for name in ("steps/build/__init__.py", "build/lib/flow.py", "dist/flow.whl"):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).touch()
    (project / "linked").symlink_to(tmp_path)
    staging = tmp_path / "staging"
    said = submitted("flow.py", *YARN, "--staging", str(staging), "--dry-run")[2]
    names = zipfile.ZipFile(staging / "project.zip").namelist()
    assert names == ["data/words.txt", "flow.py", "script.rb", "steps/build/__init__.py"]
    assert "folders that are links are not shipped: linked" in said


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_submission_ends_with_its_driver(home, tmp_path, number):
    """Ctrl-C goes to the group of processes, as from a terminal, and SIGTERM to the command alone. The JVM would end Spark."""
    ready = tmp_path / "ready"
    for_ever = "while :; do sleep 0.01; done"
    driver = f'trap "echo ends its batch; exit 5" INT TERM; echo $$ > $STORMSPARK_DRIVER_FILE; touch {ready}; {for_ever}'
    (home / "bin" / "spark-submit").write_text(
        f"#!/bin/sh\ntrap 'exit 9' INT TERM\nsh -c '{driver}'\nexit $?\n"
    )
    java = tmp_path / "java" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\necho 'openjdk version \"17.0.1\"' >&2\n")
    java.chmod(0o755)
    (tmp_path / "temporary").mkdir()
    write_topology(tmp_path / "flow.py", "flow", {})
    with subprocess.Popen(
        [sys.executable, "-m", "stormspark", "submit", "flow.py", "--master", "yarn"],
        cwd=tmp_path,
        env=os.environ | {"JAVA_HOME": str(tmp_path / "java"), "TMPDIR": str(tmp_path / "temporary")},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as command:
        try:
            wait_for(lambda: ready.exists() or command.poll() is not None)
            if number == signal.SIGINT:
                os.killpg(command.pid, number)
            else:
                command.send_signal(number)
            said, _ = command.communicate(timeout=PATIENCE_SECS)
        finally:
            command.kill()
    assert (command.returncode, said.splitlines()[-1:]) == (5, ["ends its batch"]), said
    assert list((tmp_path / "temporary").glob("stormspark-submit-*")) == []


def test_what_no_archive_can_have_and_what_nobody_can_read_is_told(project, home, tmp_path, monkeypatch):
    for name in ("data/bad\udcff.txt", "pgdata/base", "conda/conda-meta/history", "conda/flow.py"):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).touch()
    # Root may read all folders, so the modes say nothing to tests.
    closed = {project / "pgdata", project / "data" / "closed.txt"}
    (project / "data" / "closed.txt").touch()
    monkeypatch.setattr(
        "os.access", lambda path, mode, access=os.access: path not in closed and access(path, mode)
    )
    staging = tmp_path / "staging"
    code, _, said = submitted("flow.py", *YARN, "--staging", str(staging), "--dry-run")
    assert zipfile.ZipFile(staging / "project.zip").namelist() == ["data/words.txt", "flow.py", "script.rb"]
    assert code == 0 and "Warning: folders that this user can't read are not shipped: pgdata " in said
    assert "Warning: files that this user can't read are not shipped: data/closed.txt" in said
    assert "Warning: names that are not UTF-8 are not shipped: data/bad\\xff.txt" in said


def test_archives_do_not_go_into_the_project_itself(project, home):
    code, _, said = submitted("flow.py", *YARN, "--staging", ".", "--dry-run")
    assert code == 2 and "--staging . is the project" in said
    assert not list(project.glob("*.zip"))


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        (
            "spark.submit.deployMode=client",
            "-c spark.submit.deployMode=client contradicts --deploy-mode cluster: give --deploy-mode client alone",
        ),
        (
            "spark.master=local[2]",
            "-c spark.master=local[2] contradicts --master yarn: give --master local[2] alone",
        ),
    ],
)
def test_a_setting_that_contradicts_an_option_is_refused(project, home, setting, told):
    code, _, said = submitted("flow.py", *YARN, "-c", setting, "--dry-run")
    assert code == 2 and told in " ".join(said.split())
