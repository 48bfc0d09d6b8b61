'use strict';
/* Run by check_grpc_js. The relay is, like the real one, a grpc-js server without any options. */
const { spawn } = require('child_process');
const crypto = require('crypto');
const fs = require('fs');
const os = require('os');
const path = require('path');
const grpc = require('@grpc/grpc-js');
const loader = require('@grpc/proto-loader');

const build = process.env.BUILD;
const proto = path.join(__dirname, '..', '..', 'proto');
const definition = loader.loadSync('sandbox/v1/sandbox.proto', { includeDirs: [proto], longs: String, enums: String,
  defaults: true });
const sandbox = grpc.loadPackageDefinition(definition).sandbox.v1;
const mark = `5002.${String(process.pid).padStart(7, '0')}`;

function fail(why) {
  throw new Error(why);
}

function equal(a, b, what) {
  if (JSON.stringify(a) !== JSON.stringify(b)) fail(`${what}: ${JSON.stringify(a)}, not ${JSON.stringify(b)}`);
}

/* Resolves when what() is true, asked whenever something has happened. */
class Events {
  constructor() {
    this.waiting = new Set();
  }
  happened() {
    for (const check of this.waiting) check();
  }
  until(what, why, ms = 20000) {
    return new Promise((resolve, reject) => {
      const check = () => {
        if (!what()) return;
        this.waiting.delete(check);
        clearTimeout(timer);
        resolve();
      };
      const timer = setTimeout(() => {
        this.waiting.delete(check);
        reject(new Error(`in ${ms} ms: ${why}`));
      }, ms);
      this.waiting.add(check);
      check();
    });
  }
}

class Relay {
  constructor() {
    this.token = 'token';
    this.events = new Events();
    this.workers = [];
    this.refused = 0;
    this.execs = new Map();
    this.complaints = [];
    this.server = new grpc.Server();
    this.server.addService(sandbox.SandboxWorker.service, { Attach: (call) => this.attach(call) });
  }

  listen() {
    return new Promise((resolve, reject) => {
      this.server.bindAsync('127.0.0.1:0', grpc.ServerCredentials.createInsecure(), (error, port) =>
        error ? reject(error) : resolve(port));
    });
  }

  attach(call) {
    const worker = { call, hello: null, heartbeats: 0, gone: false };
    const authorized = call.metadata.get('authorization')[0] === `Bearer ${this.token}`;
    const gone = () => {
      worker.gone = true;
      this.events.happened();
    };
    call.on('data', (frame) => {
      this.take(worker, frame, authorized);
      this.events.happened();
    });
    call.on('end', () => {
      call.end();
      gone();
    });
    call.on('cancelled', gone);
    call.on('error', gone);
  }

  take(worker, frame, authorized) {
    if (!worker.hello) {
      if (!frame.hello) this.complaints.push('the first frame is no Hello');
      if (!authorized || this.workers.some((w) => !w.gone)) {
        this.refused++;
        worker.call.end();
        return;
      }
      worker.hello = frame.hello;
      this.workers.push(worker);
    } else if (frame.heartbeat) {
      worker.heartbeats++;
    } else if (frame.chunk) {
      const seen = this.execs.get(frame.chunk.reqId);
      if (!seen || seen.terminals.length) return void this.complaints.push(`a chunk for ${frame.chunk.reqId}`);
      if (frame.chunk.data.length > 32768) this.complaints.push(`a chunk of ${frame.chunk.data.length} bytes`);
      seen[frame.chunk.stream === 'STREAM_STDERR' ? 'err' : 'out'].push(frame.chunk.data);
    } else {
      const last = frame.end || frame.error;
      const seen = last && this.execs.get(last.reqId);
      if (!seen) return void this.complaints.push(`a frame for ${last && last.reqId}`);
      seen.terminals.push(frame.end ? frame.end.exitCode : frame.error.message);
      seen.truncated = Boolean(frame.end && frame.end.truncated);
    }
  }

  async attached(number) {
    await this.events.until(() => this.workers.length >= number, `worker ${number} has not attached`);
    return this.workers[number - 1];
  }

  send(worker, reqId, command, more) {
    const seen = { out: [], err: [], terminals: [], truncated: false };
    this.execs.set(String(reqId), seen);
    worker.call.write({ exec: { reqId: String(reqId), command, streaming: true, ...more } });
    return seen;
  }

  async run(worker, reqId, command, more) {
    const seen = this.send(worker, reqId, command, more);
    await this.events.until(() => seen.terminals.length > 0, `${reqId} was not answered`);
    return { out: Buffer.concat(seen.out), err: Buffer.concat(seen.err), answer: seen.terminals[0], truncated: seen.truncated };
  }
}

function startWorker(port) {
  const { PATH, HOME, TMPDIR } = process.env;
  const env = { PATH, HOME, RELAY_ADDR: `127.0.0.1:${port}`, SANDBOX_ID: 'sbx', SANDBOX_TOKEN: 'token', HEARTBEAT_S: '1',
    LOG_LEVEL: 'error' };
  if (TMPDIR) env.TMPDIR = TMPDIR;
  return spawn(path.join(build, 'execd'), [], { env, stdio: ['ignore', 'ignore', 'inherit'] });
}

function exited(child) {
  return new Promise((resolve) => {
    if (child.exitCode !== null || child.signalCode !== null) resolve(child.exitCode);
    else child.once('exit', (code) => resolve(code));
  });
}

function alive() {
  let count = 0;
  for (const pid of fs.readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      if (fs.readFileSync(`/proc/${pid}/cmdline`, 'latin1').includes(mark)) count++;
    } catch { /* gone */ }
  }
  return count;
}

async function stopWorker(child) {
  child.kill('SIGTERM');
  const killer = setTimeout(() => child.kill('SIGKILL'), 6000);
  const code = await exited(child);
  clearTimeout(killer);
  return code;
}

const tests = {
  async outcomes({ relay, worker }) {
    const done = await relay.run(worker, 1, 'echo out; echo err >&2; exit 7');
    equal([String(done.out), String(done.err), done.answer], ['out\n', 'err\n', 7], 'exit');
    equal((await relay.run(worker, 2, 'kill -KILL $$')).answer, -1, 'signal');
    equal((await relay.run(worker, 3, `sleep ${mark}`, { timeoutS: 1 })).answer, 'timeout:1', 'timeout');
    equal((await relay.run(worker, '18446744073709551615', 'exit 3')).answer, 3, 'the largest id');
    equal(worker.hello.trust, 'untrusted', 'trust');
  },

  /* The server has said nothing yet, not even headers: that must go on for as long as it likes. */
  async heartbeats_before_any_header({ relay, worker }) {
    await relay.events.until(() => worker.heartbeats >= 3, 'no three heartbeats');
    equal((await relay.run(worker, 1, 'exit 4')).answer, 4, 'exit');
  },

  async fifteen_mib_of_stdin_and_back({ relay, worker }) {
    const stdin = crypto.randomBytes(15 << 20);
    const done = await relay.run(worker, 1, 'cat', { stdin });
    if (!done.out.equals(stdin)) fail(`${done.out.length} bytes came back`);
  },

  async not_streaming_is_cut_at_eight_mib({ relay, worker }) {
    const at = await relay.run(worker, 1, 'head -c 8388608 /dev/zero', { streaming: false });
    equal([at.out.length, at.truncated], [8388608, false], 'at the cap');
    const above = await relay.run(worker, 2, 'head -c 8388609 /dev/zero', { streaming: false });
    equal([above.out.length, above.truncated], [8388608, true], 'above the cap');
  },

  async a_flood_in_order({ relay, worker }) {
    const done = await relay.run(worker, 1, 'seq 1 1000000');
    const hash = crypto.createHash('sha256').update(done.out).digest('hex');
    const expected = crypto.createHash('sha256');
    for (let i = 1; i <= 1000000; i++) expected.update(`${i}\n`);
    equal(hash, expected.digest('hex'), 'output');
  },

  async abort_kills_the_group({ relay, worker }) {
    const seen = relay.send(worker, 1, `setsid sleep ${mark} & echo up; sleep ${mark}`);
    await relay.events.until(() => seen.out.length > 0, 'no output');
    worker.call.write({ abort: { reqId: '1' } });
    worker.call.write({ abort: { reqId: '1' } });
    await relay.events.until(() => seen.terminals.length > 0, 'no answer');
    equal([seen.terminals, alive()], [[-1], 0], 'after the abort');
  },

  async queue_overflow({ relay, worker }) {
    const execs = [];
    for (let i = 1; i <= 68; i++) execs.push(relay.send(worker, i, i <= 4 ? `exec sleep ${mark}` : 'true'));
    equal((await relay.run(worker, 69, 'true')).answer, 'busy: queue full', 'the 69th');
    for (let i = 1; i <= 4; i++) worker.call.write({ abort: { reqId: String(i) } });
    await relay.events.until(() => execs.every((e) => e.terminals.length === 1), 'not all answered');
  },

  async dedup_over_a_reconnect({ relay, worker, folder }) {
    const command = `echo >> '${folder}/ran'; exit 7`;
    equal((await relay.run(worker, 1, command)).answer, 7, 'first');
    worker.call.end();
    const next = await relay.attached(2);
    equal((await relay.run(next, 1, command)).answer, 7, 'replay');
    equal(fs.statSync(`${folder}/ran`).size, 1, 'runs');
  },

  async a_wrong_token_is_turned_away({ relay, worker }) {
    relay.token = 'other';
    worker.call.end();
    await relay.events.until(() => relay.refused >= 2, 'no two refusals');
    relay.token = 'token';
    const next = await relay.attached(2);
    equal((await relay.run(next, 1, 'exit 2')).answer, 2, 'exit');
  },

  /* A stream error of the server's own: RST_STREAM, or trailers with a status. */
  async a_status_of_failure_is_a_loss({ relay, worker }) {
    const seen = relay.send(worker, 1, `echo up; exec sleep ${mark}`);
    await relay.events.until(() => seen.out.length > 0, 'no output');
    worker.call.emit('error', { code: grpc.status.UNAVAILABLE, details: 'restarting' });
    const next = await relay.attached(2);
    equal(alive(), 0, 'what ran');
    equal((await relay.run(next, 2, 'exit 5')).answer, 5, 'exit');
  },

  async shutdown_answers_and_ends_in_good_order({ relay, worker, child }) {
    const running = relay.send(worker, 1, `echo up; exec sleep ${mark}`);
    await relay.events.until(() => running.out.length > 0, 'no output');
    child.kill('SIGTERM');
    equal(await exited(child), 0, 'exit code');
    await relay.events.until(() => worker.gone, 'the stream was left open');
    equal(running.terminals, [-1], 'what ran');
  },
};

async function withWorker(test) {
  const relay = new Relay();
  const port = await relay.listen();
  const child = startWorker(port);
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'sandbox-test.'));
  try {
    const worker = await relay.attached(1);
    await test({ relay, worker, child, folder });
    equal(await stopWorker(child), 0, 'exit code of the worker');
    equal([relay.complaints, alive()], [[], 0], 'complaints, and processes left');
  } finally {
    await stopWorker(child);
    relay.server.forceShutdown();
    fs.rmSync(folder, { recursive: true });
  }
}

/* Our relay, our worker, and a harness on grpc-js. */
async function harness_through_our_relay() {
  const relay = spawn(path.join(build, 'test-relay'), ['serve', '--listen', '127.0.0.1:0', '--token', 'token'],
    { stdio: ['ignore', 'pipe', 'ignore'] });
  const port = await new Promise((resolve) => relay.stdout.once('data', (line) => resolve(/port (\d+)/.exec(line)[1])));
  const child = startWorker(port);
  const client = new sandbox.SandboxExec(`127.0.0.1:${port}`, grpc.credentials.createInsecure());
  const exec = (reqId, command) => new Promise((resolve, reject) => {
    const seen = { out: '', answer: null };
    const call = client.Exec({ sandboxId: 'sbx', exec: { reqId, command, streaming: true } });
    call.on('data', (event) => {
      if (event.chunk) seen.out += event.chunk.data;
      if (event.end) seen.answer = event.end.exitCode;
    });
    call.on('error', reject);
    call.on('end', () => resolve(seen));
    if (command.includes(mark)) call.once('data', () => client.Abort({ sandboxId: 'sbx', reqId }, () => {}));
  });
  try {
    const end = Date.now() + 20000;
    let first = null;
    while (!first && Date.now() < end) {
      first = await exec(1, 'true').catch(() => null);
      if (!first) await new Promise((resolve) => setTimeout(resolve, 50));
    }
    equal(first && first.answer, 0, 'first');
    equal(await exec(2, 'echo out; exit 7'), { out: 'out\n', answer: 7 }, 'exit');
    equal(await exec(3, `echo up; exec sleep ${mark}`), { out: 'up\n', answer: -1 }, 'abort');
  } finally {
    client.close();
    equal(await stopWorker(child), 0, 'exit code of the worker');
    relay.kill('SIGTERM');
    await exited(relay);
  }
}

async function main() {
  let failed = 0;
  const all = Object.entries(tests).map(([name, test]) => [name, () => withWorker(test)]);
  all.push(['harness_through_our_relay', harness_through_our_relay]);
  for (const [name, run] of all) {
    try {
      await run();
      console.log(`ok grpc_js::${name}`);
    } catch (error) {
      failed++;
      console.log(`not ok grpc_js::${name}: ${error.message}`);
    }
  }
  process.exit(failed ? 1 : 0);
}

main();
