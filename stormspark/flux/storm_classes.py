"""Lists the stand-ins for Storm's and Java's classes (K23). It has only names, so no stand-in is imported before its use."""

from __future__ import annotations

__all__ = ["NOT_PROVIDED", "OLD_KAFKA", "RENAMED", "STORM_CLASSES"]

#: The current names of packages, by their former names.
RENAMED = {
    "backtype.storm.": "org.apache.storm.",
    "storm.starter.": "org.apache.storm.starter.",
    "com.twitter.heron.": "org.apache.heron.",
    "storm.kafka.": "org.apache.storm.kafka.",
}

#: Packages of Storm whose classes have no stand-ins, and the purpose of each package (K12).
NOT_PROVIDED = {
    f"org.apache.storm.{package}.": what
    for package, what in {
        "cassandra": "Cassandra",
        "elasticsearch": "Elasticsearch",
        "eventhubs": "Event Hubs",
        "hbase": "HBase",
        "hive": "Hive",
        "jms": "JMS",
        "kinesis": "Kinesis",
        "mongodb": "MongoDB",
        "mqtt": "MQTT",
        "opentsdb": "OpenTSDB",
        "pmml": "PMML",
        "rocketmq": "RocketMQ",
        "solr": "Solr",
    }.items()
} | {
    "org.apache.storm.sql.": "Storm SQL",
    "org.apache.storm.kafka.trident.": "Trident's Kafka",
    "org.apache.storm.jdbc.trident.": "Trident's JDBC",
    "org.apache.storm.redis.trident.": "Trident's Redis",
}


#: The spout of Storm 1, which finds the brokers and keeps its offsets in ZooKeeper, and the classes that configure it.
OLD_KAFKA = frozenset(
    f"org.apache.storm.kafka.{name}"
    for name in "KafkaSpout SpoutConfig KafkaConfig ZkHosts StaticHosts BrokerHosts StringScheme StringKeyValueScheme "
    "KeyValueSchemeAsMultiScheme StringMultiSchemeWithTopic MessageMetadataSchemeAsMultiScheme".split()
)


def _in(package: str, module: str, names: str) -> dict[str, str]:
    """Map Java's names in ``package`` to names in ``module``. Each word of ``names`` is ``Name``, or ``Java$Name=name``."""
    pairs = (name.partition("=") for name in names.split())
    return {f"{package}.{java}": f"{module}:{python or java}" for java, _, python in pairs}


def _both(heron: str, storm: str, python: str) -> dict[str, str]:
    """Map two names to one stand-in: the class has one name in Heron's packages and another name in Storm's."""
    return {f"org.apache.heron.api.{heron}": python, f"org.apache.storm.{storm}": python}


_FLUX = "stormspark.flux"
#: The stand-in for each Java class, as ``module:name``. Constructors and setters of the stand-ins take Java's arguments.
STORM_CLASSES: dict[str, str] = {
    **_in("org.apache.storm.testing", f"{_FLUX}.storm_components", "TestWordSpout NGrouping"),
    **_in(
        "org.apache.storm.testing",
        "stormspark.testing",
        "TestWordCounter TestGlobalCount TestAggregatesCounter IdentityBolt TestPlannerSpout TestPlannerBolt",
    ),
    **_in("org.apache.storm.flux.wrappers.bolts", f"{_FLUX}.shell", "FluxShellBolt"),
    **_in("org.apache.storm.flux.wrappers.spouts", f"{_FLUX}.shell", "FluxShellSpout"),
    **_in("org.apache.storm.flux.wrappers.bolts", f"{_FLUX}.storm_components", "LogInfoBolt"),
    **_in(
        "org.apache.storm.flux.examples",
        f"{_FLUX}.samples",
        "WordCounter StatefulWordCounter TestPrintBolt TestWindowBolt OnlyValueRecordTranslator=only_value",
    ),
    **_in(
        "org.apache.storm.starter",
        f"{_FLUX}.samples",
        "spout.RandomSentenceSpout=RandomSentenceSpout WordCountTopology$SplitSentence=SplitSentence "
        "WordCountTopology$WordCount=WordCount bolt.PrinterBolt=TestPrintBolt",
    ),
    **_in("org.apache.storm.hooks", "stormspark.api", "BaseWorkerHook=WorkerHook"),
    **_in(
        "org.apache.storm.grouping",
        "stormspark.grouping",
        "PartialKeyGrouping ShuffleGrouping LoadAwareShuffleGrouping",
    ),
    **_both("bolt.BaseWindowedBolt$Count", "topology.base.BaseWindowedBolt$Count", "stormspark.api:Count"),
    **_both(
        "bolt.BaseWindowedBolt$Duration",
        "topology.base.BaseWindowedBolt$Duration",
        f"{_FLUX}.java_values:WindowDuration",
    ),
    **_both("tuple.Fields", "tuple.Fields", f"{_FLUX}.java_values:fields"),
    **_both("tuple.Values", "tuple.Values", f"{_FLUX}.java_values:values"),
    **_in("org.apache.storm", f"{_FLUX}.java_values", "Config=Map"),
    **_in(
        "java.util",
        f"{_FLUX}.java_values",
        "Properties=Map HashMap=Map LinkedHashMap=Map TreeMap=Map ArrayList=List LinkedList=List HashSet=Set "
        "LinkedHashSet=Set Arrays",
    ),
    **_in("java.util.regex", f"{_FLUX}.java_values", "Pattern"),
    **_in("java.util.concurrent", f"{_FLUX}.java_values", "TimeUnit"),
    **_in("java.time", f"{_FLUX}.java_values", "Duration"),
    **_in("java.io", "pathlib", "File=Path"),
    **_in(
        "java.lang",
        f"{_FLUX}.java_values",
        "String=Text Integer=Int Long=Int Short=Int Byte=Int Double=Float Float Boolean=Bool",
    ),
    **_in("java.lang", "builtins", "Object=object"),
    **_in("java.math", f"{_FLUX}.java_values", "BigInteger=Int BigDecimal=Decimal"),
    **_in(
        "org.apache.storm.kafka.spout",
        f"{_FLUX}.kafka",
        "KafkaSpoutConfig=kafka_spout_config KafkaSpoutConfig$Builder=KafkaSpoutConfigBuilder "
        "KafkaSpoutRetryExponentialBackoff=retry_exponential_backoff "
        "KafkaSpoutRetryExponentialBackoff$TimeInterval=TimeInterval",
    ),
    **_in(
        "org.apache.storm.kafka.spout",
        "stormspark.connectors.kafka",
        "KafkaSpout SimpleRecordTranslator ByTopicRecordTranslator "
        "DefaultRecordTranslator=translators.DefaultRecordTranslator",
    ),
    **_in(
        "org.apache.storm.kafka.bolt",
        "stormspark.connectors.kafka_bolt",
        "KafkaBolt mapper.FieldNameBasedTupleToKafkaMapper=FieldNameBasedTupleToKafkaMapper "
        "selector.FieldNameTopicSelector=FieldNameTopicSelector "
        "selector.FieldIndexTopicSelector=FieldIndexTopicSelector",
    ),
    # The stand-in is a string, because KafkaBolt.with_topic_selector takes a topic's name.
    **_in("org.apache.storm.kafka.bolt.selector", f"{_FLUX}.java_values", "DefaultTopicSelector=Text"),
    **_in(
        "org.apache.storm.hdfs.bolt",
        f"{_FLUX}.hdfs",
        "HdfsBolt rotation.TimedRotationPolicy=timed_rotation_policy "
        "format.DefaultFileNameFormat=DefaultFileNameFormat format.SimpleFileNameFormat=SimpleFileNameFormat "
        "format.DelimitedRecordFormat=DelimitedRecordFormat",
    ),
    **_in(
        "org.apache.storm.hdfs.bolt",
        "stormspark.connectors",
        "sync.CountSyncPolicy=CountSyncPolicy rotation.FileSizeRotationPolicy=FileSizeRotationPolicy "
        "rotation.NoRotationPolicy=NoRotationPolicy",
    ),
    **_in("org.apache.storm.hdfs.common.rotation", f"{_FLUX}.hdfs", "MoveFileAction"),
    **_in(
        "org.apache.storm.jdbc",
        "stormspark.connectors.jdbc_bolt",
        "bolt.JdbcInsertBolt=JdbcInsertBolt bolt.JdbcLookupBolt=JdbcLookupBolt "
        "mapper.SimpleJdbcLookupMapper=SimpleJdbcLookupMapper",
    ),
    **_in(
        "org.apache.storm.jdbc",
        f"{_FLUX}.jdbc",
        "common.HikariCPConnectionProvider=connection_provider common.Column=column mapper.SimpleJdbcMapper=SimpleJdbcMapper",
    ),
    **_in(
        "org.apache.storm.redis",
        "stormspark.connectors.redis_bolt",
        "bolt.RedisStoreBolt=RedisStoreBolt bolt.RedisLookupBolt=RedisLookupBolt bolt.RedisFilterBolt=RedisFilterBolt",
    ),
    **_in(
        "org.apache.storm.redis.common",
        f"{_FLUX}.redis",
        "config.JedisPoolConfig=pool_config config.JedisPoolConfig$Builder=JedisPoolConfigBuilder "
        "config.JedisClusterConfig=cluster_config mapper.RedisDataTypeDescription=data_type_description",
    ),
    **_in("java.net", f"{_FLUX}.redis", "InetSocketAddress=address"),
}
