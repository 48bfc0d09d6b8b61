'use strict';
/* A harness on grpc-js: runs commands through the relay at argv[3] and prints what came back, a line of JSON each. */
const grpc = require('@grpc/grpc-js');
const loader = require('@grpc/proto-loader');

const [protos, address, ...commands] = process.argv.slice(2);
const definition = loader.loadSync('sandbox/v1/sandbox.proto', { includeDirs: [protos], longs: String, defaults: true });
const { SandboxExec } = grpc.loadPackageDefinition(definition).sandbox.v1;
const client = new SandboxExec(address, grpc.credentials.createInsecure());

/* A command with "abort" in it is aborted after its first Chunk. */
function exec(reqId, command) {
  return new Promise((resolve) => {
    const seen = { out: '', exitCode: null, error: null };
    const call = client.Exec({ sandboxId: 'sbx', exec: { reqId, command, streaming: true } });
    call.on('data', (event) => {
      if (event.chunk) seen.out += event.chunk.data;
      if (event.end) seen.exitCode = event.end.exitCode;
    });
    call.on('error', (error) => resolve({ ...seen, error: error.message }));
    call.on('end', () => resolve(seen));
    if (command.includes('abort')) call.once('data', () => client.Abort({ sandboxId: 'sbx', reqId }, () => {}));
  });
}

async function main() {
  for (const [i, command] of commands.entries()) console.log(JSON.stringify(await exec(i + 1, command)));
  client.close();
}

main();
