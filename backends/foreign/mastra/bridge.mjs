// The bridge's other side for Node: reads requests from stdin, calls the adapter, writes answers to stdout.
//
// An adapter is `serve({ hello, open_memory, open_index, drop_namespace, … })`: functions of the request's arguments
// that may be asynchronous. What open_* returns is a client: an object with the calls' names as methods. Clients get a
// runtime: { now(), ask(question, args), askNow(question, args) }; askNow blocks, for callbacks that cannot wait.
import { readSync, writeSync } from 'node:fs';

const TAGS = new Set(['$at', '$float', '$object']);
const FLOATS = { nan: NaN, inf: Infinity, '-inf': -Infinity };

/** An error of the specification: its code, and what to tell people. */
export class Refused extends Error {
  constructor(code, message) {
    super(message);
    this.code = code;
  }
}

/** A value from the wire as JavaScript has it; instants are Dates. */
export function decode(value) {
  if (Array.isArray(value)) return value.map(decode);
  if (value === null || typeof value !== 'object') return value;
  const keys = Object.keys(value);
  if (keys.length === 1 && TAGS.has(keys[0])) {
    const given = value[keys[0]];
    if (keys[0] === '$at') return new RealDate(given);
    if (keys[0] === '$float') return FLOATS[given];
    return plain(given, decode);
  }
  return plain(value, decode);
}

/** A value for the wire; what is undefined is left out. */
export function encode(value) {
  if (value === undefined || value === null) return null;
  if (typeof value === 'bigint') return Number(value);
  if (typeof value === 'number') {
    if (Number.isFinite(value)) return value;
    return { $float: Number.isNaN(value) ? 'nan' : value > 0 ? 'inf' : '-inf' };
  }
  if (value instanceof RealDate) return instant(value);
  if (Array.isArray(value) || ArrayBuffer.isView(value)) return Array.from(value, encode);
  if (typeof value !== 'object') return value;
  const carried = plain(value, encode);
  const keys = Object.keys(carried);
  return keys.length === 1 && TAGS.has(keys[0]) ? { $object: carried } : carried;
}

/** Instants within the years 0001 to 9999 have a form of their own; what lies beyond, or is none, is shown as a string. */
function instant(date) {
  if (Number.isNaN(date.getTime())) return 'Invalid Date';
  const text = date.toISOString();
  return /^(?!0000)\d{4}-/.test(text) ? { $at: text } : text;
}

function plain(value, each) {
  // defineProperty, as `__proto__` is a key like any other.
  const copy = {};
  for (const key of Object.keys(value)) {
    if (value[key] === undefined) continue;
    Object.defineProperty(copy, key, { value: each(value[key]), enumerable: true, writable: true, configurable: true });
  }
  return copy;
}

const RealDate = Date;
let now = RealDate.now();

/** The program's clock instead of the machine's: what asks for the time gets the request's `now`. */
export function useClock() {
  globalThis.Date = class Date extends RealDate {
    constructor(...given) {
      super(...(given.length ? given : [now]));
    }
    static now() {
      return now;
    }
    static [Symbol.hasInstance](value) {
      return value instanceof RealDate;
    }
  };
}

let rest = Buffer.alloc(0);
const lines = [];
const asked = new Map();
let questions = 0;

function write(message) {
  let data = Buffer.from(JSON.stringify(message) + '\n');
  while (data.length) {
    try {
      data = data.subarray(writeSync(1, data));
    } catch (error) {
      if (error.code !== 'EAGAIN') throw error;
      pause();
    }
  }
}

function pause() {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);
}

function receive(chunk) {
  rest = rest.length ? Buffer.concat([rest, chunk]) : chunk;
  for (let end = rest.indexOf(10); end >= 0; end = rest.indexOf(10)) {
    lines.push(JSON.parse(rest.subarray(0, end).toString('utf8')));
    rest = rest.subarray(end + 1);
  }
}

function question(of, call, args) {
  questions += 1;
  write({ ask: questions, of, call, args });
  return questions;
}

function settled(answer) {
  if (answer.error) throw new Error(answer.error.message);
  return decode(answer.result);
}

function runtime(request) {
  return {
    now: () => new RealDate(now),
    ask: (call, args = {}) => {
      const number = question(request.id, call, args);
      return new Promise(resolve => asked.set(number, resolve)).then(settled);
    },
    askNow: (call, args = {}) => {
      const number = question(request.id, call, args);
      const buffer = Buffer.alloc(1 << 16);
      for (;;) {
        const found = lines.findIndex(message => message.answer === number);
        if (found >= 0) return settled(lines.splice(found, 1)[0]);
        try {
          const read = readSync(0, buffer);
          if (!read) throw new Error('stdin ended while an answer was awaited');
          receive(Buffer.from(buffer.subarray(0, read)));
        } catch (error) {
          if (error.code !== 'EAGAIN') throw error;
          pause();
        }
      }
    },
  };
}

/** Serve until stdin ends. */
export function serve(adapter) {
  const clients = new Map();

  async function answer(request) {
    if (request.now) now = new RealDate(request.now).getTime();
    const args = decode(request.args ?? {});
    switch (request.call) {
      case 'open_memory':
      case 'open_index':
        clients.set(request.client, await adapter[request.call](args, runtime(request)));
        return null;
      case 'close': {
        const client = clients.get(request.client);
        clients.delete(request.client);
        return client.close();
      }
    }
    if (request.client === undefined) return adapter[request.call](args);
    const client = clients.get(request.client);
    if (!client[request.call]) throw new Refused('unsupported', `there is no ${request.call}`);
    return client[request.call](args, runtime(request));
  }

  function dispatch() {
    while (lines.length) {
      const message = lines.shift();
      if (message.answer !== undefined) {
        const resolve = asked.get(message.answer);
        asked.delete(message.answer);
        resolve(message);
        continue;
      }
      answer(message).then(
        result => write({ id: message.id, result: encode(result) }),
        error => write({ id: message.id, error: adapter.error ? adapter.error(error, message.call) : told(error) }),
      );
    }
  }

  process.stdin.on('data', chunk => {
    receive(chunk);
    dispatch();
  });
  process.stdin.on('end', () => process.exit(0));
  // What libraries print is no message.
  console.log = console.info = console.debug = console.warn = console.error;
}

/** An error for the wire. */
export function told(error) {
  const code = error instanceof Refused ? error.code : (error?.id ?? error?.code ?? error?.name ?? 'Error');
  return { code: String(code), message: String(error?.message ?? error) };
}
