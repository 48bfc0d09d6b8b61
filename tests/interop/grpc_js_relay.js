'use strict';
/* The part of grpc_js_relay.py that runs in node: orders come in as lines of JSON, what happens goes out as such. Like the real
 * relay it is a grpc-js server without any options. */
const fs = require('fs');
const readline = require('readline');
const grpc = require('@grpc/grpc-js');
const loader = require('@grpc/proto-loader');

const [folder, settings] = process.argv.slice(2);
const { tls } = JSON.parse(fs.readFileSync(settings));
/* This is protobuf's own mapping to JSON, so the other side reads it with protobuf. */
const definition = loader.loadSync('sandbox/v1/sandbox.proto', { includeDirs: [folder], longs: String, enums: String,
  bytes: String, oneofs: false });
const { service } = grpc.loadPackageDefinition(definition).sandbox.v1.SandboxWorker;
/* A frame's bytes are made on the other side: from whatever wire it likes. */
service.Attach.responseSerialize = (raw) => raw;

function tell(event) {
  process.stdout.write(JSON.stringify(event) + '\n');
}

const calls = [];
function attach(call) {
  const number = calls.push(call) - 1;
  const authorization = call.metadata.get('authorization')[0];
  call.on('data', (frame) => tell({ call: number, authorization, frame }));
  call.on('end', () => {
    call.end();
    tell({ call: number, gone: true });
  });
  call.on('cancelled', () => tell({ call: number, gone: true }));
  call.on('error', () => tell({ call: number, gone: true }));
}

function credentials() {
  if (!tls) return grpc.ServerCredentials.createInsecure();
  const pair = { private_key: Buffer.from(tls.key), cert_chain: Buffer.from(tls.certificate) };
  return grpc.ServerCredentials.createSsl(tls.roots && Buffer.from(tls.roots), [pair], Boolean(tls.roots));
}

const server = new grpc.Server();
server.addService(service, { Attach: attach });
server.bindAsync(`127.0.0.1:${process.argv[4]}`, credentials(), (error, port) => {
  if (error) throw error;
  tell({ port });
});

const orders = {
  write: (call, { raw, file }) => {
    call.write(file ? fs.readFileSync(file) : Buffer.from(raw, 'base64'));
    if (file) fs.unlinkSync(file);
  },
  end: (call) => call.end(),
  fail: (call) => call.emit('error', { code: grpc.status.UNAVAILABLE, details: 'restarting' }),
};
readline.createInterface({ input: process.stdin }).on('line', (line) => {
  const order = JSON.parse(line);
  orders[order.order](calls[order.call], order);
});
/* Without whoever gives the orders there is nothing to do. */
process.stdin.on('end', () => process.exit(0));
