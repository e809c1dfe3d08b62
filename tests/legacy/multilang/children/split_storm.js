// With Storm's own storm.js.
const storm = require('./storm');
const BasicBolt = storm.BasicBolt;

function Split() {
  BasicBolt.call(this);
}
Split.prototype = Object.create(BasicBolt.prototype);
Split.prototype.constructor = Split;
Split.prototype.process = function (tup, done) {
  for (const word of tup.values[0].split(' ')) {
    this.emit({ tuple: [word], anchorTupleId: tup.id }, () => {});
  }
  done();
};

new Split().run();
