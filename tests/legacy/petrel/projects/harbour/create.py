import cargo
import ledger
import ships


def create(builder):
    builder.setSpout("ships", ships.Ships(), 1)
    builder.setBolt("unload", cargo.Unload(), 2).shuffleGrouping("ships")
    builder.addOutputStream("unload", "empty", ["name"])
    tally = builder.setBolt("tally", ledger.Tally("create makes another one"))
    tally.fieldsGrouping("unload", ["good"]).globalGrouping("unload", streamId="empty")


def create_small(builder):
    builder.setSpout("ships", ships.Ships(), 1)
