// A bolt's child for Node without any library: emits the words of a sentence, anchored, waits for no task ids, and acks it.
const fs = require('fs');

const say = (message) => process.stdout.write(JSON.stringify(message) + '\nend\n');
let setup = null;
let text = '';

process.stdin.setEncoding('utf8');
process.stdin.on('end', () => process.exit(0));
process.stdin.on('data', (chunk) => {
  const parts = (text + chunk).split('\nend\n');
  text = parts.pop();
  parts.map((part) => JSON.parse(part)).forEach((message) => {
    if (setup === null) {
      setup = message;
      fs.closeSync(fs.openSync(`${setup.pidDir}/${process.pid}`, 'w'));
      say({ pid: process.pid });
    } else if (Array.isArray(message)) {
      // Task ids of an emit.
    } else if (message.stream === '__heartbeat') {
      say({ command: 'sync' });
    } else {
      for (const word of message.tuple[0].split(' ')) {
        say({ command: 'emit', anchors: [message.id], tuple: [word] });
      }
      say({ command: 'ack', id: message.id });
    }
  });
});
