// A spout that emits each of three sentences once, and counts what comes back.
const storm = require('./storm');

function Sentences() {
  storm.Spout.call(this);
  this.left = ['the wind blows', 'the rain falls', 'sun shines'];
}
Sentences.prototype = Object.create(storm.Spout.prototype);
Sentences.prototype.constructor = Sentences;
Sentences.prototype.initialize = function (conf, context, done) {
  done();
};
Sentences.prototype.nextTuple = function (done) {
  const sentence = this.left.pop();
  if (sentence !== undefined) {
    this.emit({ tuple: [sentence], id: sentence }, (tasks) => this.log(sentence + ' went to ' + tasks));
  }
  done();
};
Sentences.prototype.ack = function (id, done) {
  this.log('acked ' + id);
  done();
};
Sentences.prototype.fail = Sentences.prototype.ack;

new Sentences().run();
