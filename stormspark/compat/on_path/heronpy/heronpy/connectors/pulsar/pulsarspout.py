"""Raises ImportError: stormspark has no spout for Pulsar."""

msg = (
    "heronpy.connectors.pulsar is not supported: stormspark has no spout for Pulsar. Read the topic through Pulsar's Kafka "
    "protocol handler with stormspark.connectors.KafkaSpout, which TopologyBuilder.add_spout accepts unchanged, or write a Spout "
    "around the pulsar-client package"
)
raise ImportError(msg)
