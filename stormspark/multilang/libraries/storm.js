// Licensed under the Apache License, Version 2.0, as the rest of stormspark is.
// The module `storm` for children in Node that have none of their own: Storm's classes Spout, BasicBolt and Tuple.
'use strict';

const fs = require('fs');
const path = require('path');
const { StringDecoder } = require('string_decoder');

const END = '\nend\n';

// These are functions and not classes, because projects inherit from them with `BasicBolt.call(this)`.
function Storm() {
  this.taskIdsCallbacks = [];
  this.isFirstMessage = true;
  this.messagePart = '';
}

Storm.prototype.sendMsgToParent = function (message) {
  process.stdout.write(JSON.stringify(message) + END);
};

Storm.prototype.sync = function () {
  this.sendMsgToParent({ command: 'sync' });
};

Storm.prototype.sendPid = function (folder) {
  fs.closeSync(fs.openSync(path.join(folder, String(process.pid)), 'w'));
  this.sendMsgToParent({ pid: process.pid });
};

['Trace', 'Debug', 'Info', 'Warn', 'Error'].forEach(function (name, level) {
  Storm.prototype['log' + name] = function () {
    const msg = Array.prototype.slice.call(arguments).join(' ');
    this.sendMsgToParent({ command: 'log', msg: msg, level: level });
  };
});
Storm.prototype.log = Storm.prototype.logInfo;

Storm.prototype.reportError = function (error) {
  this.sendMsgToParent({ command: 'error', msg: String((error && error.stack) || error) });
};

Storm.prototype.initialize = function (conf, context, done) {
  done();
};

Storm.prototype.handleNewChunk = function (chunk) {
  const parts = (this.messagePart + (chunk || '')).split(END);
  this.messagePart = parts.pop();
  return parts.filter(function (part) {
    return part.length > 0;
  });
};

Storm.prototype.handleNewMessage = function (text) {
  const message = JSON.parse(text);
  if (this.isFirstMessage) {
    this.isFirstMessage = false;
    this.initialize(message.conf, message.context, () => this.sendPid(message.pidDir));
  } else if (Array.isArray(message)) {
    this.taskIdsCallbacks.shift()(message);
  } else {
    this.handleNewCommand(message);
  }
};

Storm.prototype.emit = function (details, onTaskIds) {
  if (details.task) {
    throw new Error('to emit to a task, use emitDirect');
  }
  this.taskIdsCallbacks.push(onTaskIds || function () {});
  this.sendEmit(details);
};

Storm.prototype.emitDirect = function (details) {
  if (!details.task) {
    throw new Error('emitDirect needs a task');
  }
  this.sendEmit(details);
};

Storm.prototype.run = function () {
  const decoder = new StringDecoder('utf8');
  process.stdin.on('data', (chunk) => {
    this.handleNewChunk(decoder.write(chunk)).forEach((message) => this.handleNewMessage(message));
  });
};

function Tuple(id, component, stream, task, values) {
  Object.assign(this, { id, component, stream, task, values });
}

Tuple.prototype.isTickTuple = function () {
  return this.task === -1 && this.stream === '__tick';
};

Tuple.prototype.isHeartbeatTuple = function () {
  return this.task === -1 && this.stream === '__heartbeat';
};

function BasicBolt() {
  Storm.call(this);
}

BasicBolt.prototype = Object.create(Storm.prototype);
BasicBolt.prototype.constructor = BasicBolt;

BasicBolt.prototype.sendEmit = function (details) {
  const anchors = details.anchorTupleId === undefined ? [] : [].concat(details.anchorTupleId);
  this.sendMsgToParent({
    command: 'emit', tuple: details.tuple, stream: details.stream, task: details.task, anchors: anchors,
  });
};

BasicBolt.prototype.handleNewCommand = function (command) {
  const tuple = new Tuple(command.id, command.comp, command.stream, command.task, command.tuple);
  if (tuple.isHeartbeatTuple()) {
    this.sync();
    return;
  }
  this.process(tuple, (error) => (error ? this.fail(tuple, error) : this.ack(tuple)));
};

BasicBolt.prototype.process = function (tuple, done) {
  done();
};

BasicBolt.prototype.ack = function (tuple) {
  this.sendMsgToParent({ command: 'ack', id: tuple.id });
};

BasicBolt.prototype.fail = function (tuple) {
  this.sendMsgToParent({ command: 'fail', id: tuple.id });
};

function Spout() {
  Storm.call(this);
}

Spout.prototype = Object.create(Storm.prototype);
Spout.prototype.constructor = Spout;

Spout.prototype.sendEmit = function (details) {
  this.sendMsgToParent({
    command: 'emit', tuple: details.tuple, id: details.id, stream: details.stream, task: details.task,
  });
};

Spout.prototype.handleNewCommand = function (command) {
  const done = () => this.sync();
  switch (command.command) {
    case 'next':
      this.nextTuple(done);
      break;
    case 'ack':
    case 'fail':
      this[command.command](command.id, done);
      break;
    case 'activate':
    case 'deactivate':
      this[command.command](done);
      break;
    default:
      done();
  }
};

Spout.prototype.nextTuple = function (done) {
  done();
};
Spout.prototype.activate = Spout.prototype.deactivate = Spout.prototype.nextTuple;
Spout.prototype.ack = Spout.prototype.fail = function (id, done) {
  done();
};

module.exports = { Storm, BasicBolt, Spout, Tuple };
