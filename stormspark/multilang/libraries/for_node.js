// Licensed under the Apache License, Version 2.0, as the rest of stormspark is.
// Node loads this before the child's script, so that `require('./storm')` finds storm.js if the project has none.
'use strict';

const Module = require('module');
const path = require('path');

const resolve = Module._resolveFilename;
Module._resolveFilename = function (request) {
  try {
    return resolve.apply(this, arguments);
  } catch (error) {
    if (/^(\.{1,2}\/)*storm(\.js)?$/.test(request)) {
      return path.join(__dirname, 'storm.js');
    }
    throw error;
  }
};
