"""What stands for the Java classes that the examples of Storm's Flux and Heron's ECO bring along."""

from stormspark import flux

STORM = "SimpleTopology SimpleTopologySource SimpleTopologyWithConfigParam TestBolt TestBolt$TestClass OnlyValueRecordTranslator"
HERON = (
    "TestPropertyHolder TestFibonacciSpout EvenAndOddBolt TestIBasicPrintBolt TestPrintBolt TestNameSpout TestNameCounter "
    "LogInfoBolt TestWindowBolt StatefulNumberSpout StatefulWindowSumBolt StatefulRandomIntSpout StatefulConsumerBolt"
)
for package, names in (("org.apache.storm.flux.test", STORM), ("org.apache.heron.examples.eco", HERON)):
    for name in names.split():
        flux.register(f"{package}.{name}", f"stand_ins.{name.replace('TestBolt$', '')}")
