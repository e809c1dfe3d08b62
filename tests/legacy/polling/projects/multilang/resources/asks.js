// A spout with Storm's own storm.js that is done with each nextTuple when its time is up.
const fs = require('fs');
const path = require('path');
const storm = require('./storm');

class Asks extends storm.Spout {
  initialize(conf, context, done) {
    this.secs = conf['test.secs'];
    this.task = context.taskid;
    this.sent = path.join(conf['test.folder'], `sent-${this.task}.jsonl`);
    this.number = 0;
    done();
  }

  nextTuple(done) {
    setTimeout(() => {
      this.number += 1;
      fs.appendFileSync(this.sent, JSON.stringify({ number: this.number }) + '\n');
      this.emit({ tuple: [this.task, this.number, Date.now() / 1000], id: this.number }, () => done());
    }, this.secs * 1000);
  }

  ack(id, done) {
    done();
  }

  fail(id, done) {
    done();
  }
}

new Asks().run();
